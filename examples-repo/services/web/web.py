"""The shop's page: products from the catalog, the visitor's cart from the cart service."""

import hashlib
import hmac
import html
import os
import secrets
from http.cookies import SimpleCookie
from urllib.parse import parse_qs

import serving
from page import render

VERSION = "1"


class Web(serving.Handler):
    def respond(self, method, path, body):
        match method, path:
            case "GET", "/healthz":
                return serving.json_response({"ready": True})
            case "GET", "/version":
                return serving.json_response(serving.version("web", VERSION, stage=stage()))
            case "GET", "/":
                return page(self.cart())
            case "POST", "/cart":
                return add(self.cart(), parse_qs(body.decode()))
        return serving.not_found()

    def cart(self):
        """The cart that the visitor's cookie names, if we signed it, else a new one."""
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("cart")
        cart, _, signature = (cookie.value if cookie else "").partition(".")
        return cart if cart and hmac.compare_digest(signature, sign(cart)) else secrets.token_hex(8)


def stage():
    return os.environ.get("STAGE", "by hand")


def sign(cart):
    return hmac.new(os.environ["SESSION_KEY"].encode(), cart.encode(), hashlib.sha256).hexdigest()


def add(cart, form):
    try:
        serving.call("cart", "POST", f"/carts/{cart}/items", {"product": int(form["product"][0])})
    except (OSError, KeyError):
        return serving.json_response({"error": "the cart is away for a moment"}, 503)
    cookie = f"cart={cart}.{sign(cart)}; Path=/; HttpOnly; SameSite=Lax"
    return serving.Response(303, "text/plain", b"", {"Location": "/", "Set-Cookie": cookie})


def page(cart):
    """The page; a part whose service is away says so, the others stay."""
    try:
        products = serving.call("catalog", "GET", "/products")
        shelf = "".join(row(product) for product in products)
    except (OSError, KeyError):
        products, shelf = [], '<tr><td colspan="4">The catalog is being updated. Please come back in a moment.</td></tr>'
    try:
        basket = contents(serving.call("cart", "GET", f"/carts/{cart}"), products)
    except (OSError, KeyError):
        basket = "The cart is away for a moment."
    text = render(
        shop=html.escape(os.environ["SHOP_NAME"]),
        stage=html.escape(stage()),
        products=shelf,
        cart=basket,
        version=VERSION,
        pod=html.escape(os.environ.get("POD_NAME", "by hand")),
    )
    return serving.Response(200, "text/html; charset=utf-8", text.encode())


def money(cents):
    return f"{cents / 100:.2f}&nbsp;{html.escape(os.environ['CURRENCY'])}"


def row(product):
    return (
        f"<tr><td>{html.escape(product['name'])}</td><td>{money(product['price'])}</td>"
        f"<td>{product['stock']} in stock</td>"
        f'<td><form method="post" action="/cart"><button name="product" value="{product["id"]}">Add</button></form></td></tr>'
    )


def contents(items, products):
    named = {product["id"]: product for product in products}
    known = [(named[item["product"]], item["quantity"]) for item in items if item["product"] in named]
    if not known:
        return "Your cart is empty."
    total = sum(product["price"] * quantity for product, quantity in known)
    lines = ", ".join(f"{quantity} × {html.escape(product['name'])}" for product, quantity in known)
    return f"In your cart: {lines}. Together {money(total)}."


if __name__ == "__main__":
    serving.serve(Web)
