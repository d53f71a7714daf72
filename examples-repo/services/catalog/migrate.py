"""Applies the migrations that the database has not had, each in a transaction of its own."""

from database import MIGRATIONS, connect, schema_of


def migrate():
    with connect() as database:
        applied = schema_of(database)
        for number, migration in enumerate(MIGRATIONS, start=1):
            if number > applied:
                database.executescript(f"BEGIN;{migration.read_text()};PRAGMA user_version = {number};COMMIT;")
                print(f"applied {migration.name}")
        print(f"the schema is {schema_of(database)}")


if __name__ == "__main__":
    migrate()
