"""The catalog's database, a file on its volume. SQLite's `user_version` tells which migrations it has had."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

DATA = Path(os.environ.get("DATA_DIR", "."))
FILE = DATA / "catalog.db"
MIGRATIONS = sorted(Path(__file__).parent.glob("migrations/*.sql"))


def connect():
    """A connection that is closed at the end of its `with` block."""
    return closing(sqlite3.connect(FILE, timeout=5))


def schema_of(database):
    return database.execute("PRAGMA user_version").fetchone()[0]
