"""The store: journal and runs in SQLite (embedded) or PostgreSQL, behind one set of repositories.

Names are loaded when first used: a command that needs no store loads no database library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from services.store.failures import StoreMissing
    from services.store.records import NewRun, RunRecord, RunStatus
    from services.store.store import Store, open_store
    from services.store.urls import mask_password

__all__ = ["NewRun", "RunRecord", "RunStatus", "Store", "StoreMissing", "mask_password", "open_store"]

HOMES = {
    "NewRun": "records",
    "RunRecord": "records",
    "RunStatus": "records",
    "Store": "store",
    "StoreMissing": "failures",
    "mask_password": "urls",
    "open_store": "store",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
