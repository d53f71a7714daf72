"""The shop's products, read from a database that the `migrate` hook brings up to date."""

import serving
from database import connect, schema_of

VERSION = "1"


class Catalog(serving.Handler):
    def respond(self, method, path, body):
        if method != "GET":
            return serving.not_found()
        with connect() as database:
            if path == "/healthz":
                ready = schema_of(database) > 0
                return serving.json_response({"ready": ready}, 200 if ready else 503)
            if path == "/version":
                return serving.json_response(serving.version("catalog", VERSION, schema=schema_of(database)))
            if path == "/products":
                return serving.json_response(products(database))
        return serving.not_found()


def products(database):
    """All products; a price is in cents."""
    rows = database.execute("SELECT id, name, price, stock FROM products ORDER BY id")
    return [dict(zip(("id", "name", "price", "stock"), row)) for row in rows]


if __name__ == "__main__":
    serving.serve(Catalog)
