"""Puts something into a cart of its own and finds it again."""

import secrets
import sys

from cart import VERSION
from serving import call


def main():
    served = call("cart", "GET", "/version")["version"]
    if served != VERSION:
        sys.exit(f"version {served} answers, not {VERSION}")
    cart = f"test-{secrets.token_hex(8)}"
    for _ in range(2):
        call("cart", "POST", f"/carts/{cart}/items", {"product": 1})
    found = call("cart", "GET", f"/carts/{cart}")
    if found != [{"product": 1, "quantity": 2}]:
        sys.exit(f"two of product 1 were put into the cart; it holds {found}")
    print("a cart keeps what is put into it")


if __name__ == "__main__":
    main()
