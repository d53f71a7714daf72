"""Buys something through the service, as a visitor would."""

import http.client
import os
import sys
import time
from urllib.parse import urlencode

from serving import call
from web import VERSION

PATIENCE = 20  # seconds; in a first delivery the catalog and the cart may still be on their way


def visit(method, path, form=None, cookie=""):
    """What a browser gets; no redirect is followed."""
    connection = http.client.HTTPConnection(
        os.environ["WEB_SERVICE_HOST"], int(os.environ["WEB_SERVICE_PORT"]), timeout=5
    )
    headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
    connection.request(method, path, urlencode(form or {}), headers)
    response = connection.getresponse()
    return response, response.read().decode()


def problem():
    """What is wrong, if anything."""
    served = call("web", "GET", "/version")["version"]
    if served != VERSION:
        return f"version {served} answers, not {VERSION}"
    response, _ = visit("POST", "/cart", {"product": 1})
    if response.status != 303:
        return f"nothing can be put into the cart: status {response.status}"
    cookie = response.headers["Set-Cookie"].partition(";")[0]
    _, page = visit("GET", "/", cookie=cookie)
    return None if "In your cart: 1 " in page else "what was put into the cart is not on the page"


def main():
    deadline = time.monotonic() + PATIENCE
    while found := problem():
        if time.monotonic() > deadline:
            sys.exit(found)
        time.sleep(0.2)
    print("the shop sells")


if __name__ == "__main__":
    main()
