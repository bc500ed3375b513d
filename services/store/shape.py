"""The shape of tables as a database reports it, comparable between the dialects."""

from typing import Any

from sqlalchemy import Connection, inspect
from sqlalchemy.types import TypeEngine

Shape = dict[str, dict[str, Any]]


def shape_of(connection: Connection, tables: set[str]) -> Shape:
    """Columns, keys, constraints and indexes of some tables, by name; absent tables are left out."""
    inspector = inspect(connection)
    return {
        name: {
            "columns": {c["name"]: (_generic(c["type"]), c["nullable"]) for c in inspector.get_columns(name)},
            "primary key": inspector.get_pk_constraint(name)["constrained_columns"],
            "foreign keys": sorted(
                (fk["constrained_columns"], fk["referred_table"], fk["referred_columns"])
                for fk in inspector.get_foreign_keys(name)
            ),
            "unique": sorted(unique["column_names"] for unique in inspector.get_unique_constraints(name)),
            "indexes": sorted(
                (index["column_names"], bool(index["unique"]))
                for index in inspector.get_indexes(name)
                if "duplicates_constraint" not in index
            ),
        }
        for name in sorted(tables & set(inspector.get_table_names()))
    }


def _generic(kind: TypeEngine[Any]) -> str:
    """A type by the name that it has in every dialect: bytes are BYTEA in one and BLOB in another."""
    return str(kind.as_generic())


def first_difference(found: Shape, wanted: Shape) -> str | None:
    """Where two shapes part, for a message; None when they are equal."""
    for name in sorted(found.keys() | wanted.keys()):
        if name not in found or name not in wanted:
            return f"table {name!r} is {'missing' if name in wanted else 'not known'}"
        for aspect, value in wanted[name].items():
            if found[name][aspect] != value:
                return f"{aspect} of table {name!r}"
    return None
