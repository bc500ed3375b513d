"""The store: journal and runs in SQLite (embedded) or PostgreSQL, behind one set of repositories."""

from services.store.failures import StoreMissing
from services.store.records import NewRun, RunRecord, RunStatus
from services.store.store import Store, open_store
from services.store.urls import masked

__all__ = ["NewRun", "RunRecord", "RunStatus", "Store", "StoreMissing", "masked", "open_store"]
