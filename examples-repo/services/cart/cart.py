"""What visitors put into their carts."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import serving

VERSION = "1"
FILE = Path(os.environ.get("DATA_DIR", ".")) / "carts.db"


class Cart(serving.Handler):
    def respond(self, method, path, body):
        if (method, path) == ("GET", "/healthz"):
            return serving.json_response({"ready": True})
        if (method, path) == ("GET", "/version"):
            return serving.json_response(serving.version("cart", VERSION))
        match path.split("/")[1:]:
            case ["carts", cart] if method == "GET":
                return serving.json_response(items(cart))
            case ["carts", cart, "items"] if method == "POST":
                add(cart, int(json.loads(body)["product"]))
                return serving.json_response(items(cart), 201)
        return serving.not_found()


def connect():
    """A connection that is closed at the end of its `with` block."""
    return closing(sqlite3.connect(FILE, timeout=5, isolation_level=None))


def prepare():
    with connect() as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS items (cart TEXT, product INTEGER, quantity INTEGER, PRIMARY KEY (cart, product))"
        )


def items(cart):
    with connect() as database:
        rows = database.execute("SELECT product, quantity FROM items WHERE cart = ? ORDER BY product", (cart,))
        return [{"product": product, "quantity": quantity} for product, quantity in rows]


def add(cart, product):
    with connect() as database:
        database.execute(
            "INSERT INTO items VALUES (?, ?, 1) ON CONFLICT (cart, product) DO UPDATE SET quantity = quantity + 1",
            (cart, product),
        )


if __name__ == "__main__":
    prepare()
    serving.serve(Cart)
