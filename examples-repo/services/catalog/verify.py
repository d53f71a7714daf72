"""Asks the catalog through its service whether it serves the data that this version needs."""

import sys
import time

from catalog import VERSION
from database import MIGRATIONS
from serving import call

PATIENCE = 10  # seconds until the new pod must have been noticed by its service


def problem():
    """What is wrong, if anything."""
    served = call("catalog", "GET", "/version")
    if served["version"] != VERSION:
        return f"version {served['version']} answers, not {VERSION}"
    if served["schema"] != len(MIGRATIONS):
        return f"the schema is {served['schema']}, not {len(MIGRATIONS)}"
    products = call("catalog", "GET", "/products")
    if not products:
        return "there are no products"
    unpriced = [product["name"] for product in products if product["price"] <= 0]
    return f"without a price: {', '.join(unpriced)}" if unpriced else None


def main():
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            found = problem()
        except (OSError, KeyError) as error:
            found = f"the catalog does not answer: {error}"
        if found is None:
            return print("the catalog serves what this version needs")
        if time.monotonic() > deadline:
            return sys.exit(found)
        time.sleep(0.2)


if __name__ == "__main__":
    main()
