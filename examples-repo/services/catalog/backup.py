"""Copies the database as it is before a migration, once per schema."""

import sqlite3
from contextlib import closing

from database import DATA, FILE, connect, schema_of


def backup():
    if not FILE.exists():
        print("there is no database yet, so nothing to keep")
        return
    with connect() as database:
        copy = DATA / f"catalog-schema-{schema_of(database)}.db"
        with closing(sqlite3.connect(copy)) as target:
            database.backup(target)
        print(f"kept {copy.name}")


if __name__ == "__main__":
    backup()
