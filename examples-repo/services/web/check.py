"""Looks whether this version can work at all, before any of it serves."""

import os
import sys

from page import NAMES, TEMPLATE

SHORTEST_KEY = 16  # characters


def problems():
    unknown = sorted(set(TEMPLATE.get_identifiers()) - NAMES)
    for name in unknown:
        yield f"page.html: there is no `${name}`; known are {', '.join(sorted(NAMES))}"
    if not os.environ.get("SHOP_NAME"):
        yield "SHOP_NAME is empty"
    if len(os.environ.get("SESSION_KEY", "")) < SHORTEST_KEY:
        yield f"SESSION_KEY is shorter than {SHORTEST_KEY} characters"


def main():
    found = list(problems())
    for problem in found:
        print(problem)
    if found:
        sys.exit("this version must not serve")
    print("page and settings fit together")


if __name__ == "__main__":
    main()
