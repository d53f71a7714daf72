"""Visits the shop for a while, as everybody does; one page that is not there is one too many."""

import sys

from test import visit

VISITS = 40


def main():
    for number in range(1, VISITS + 1):
        response, _ = visit("GET", "/")
        if response.status != 200:
            sys.exit(f"visit {number} of {VISITS} got status {response.status}")
    print(f"all of {VISITS} visits went well")


if __name__ == "__main__":
    main()
