"""The types of what a store runs its statements on.

SQLAlchemy's package for asyncio brings its mapper of objects, a tenth of a second that each process would
spend on types: it is loaded where a server is opened, and here for the type check alone.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
else:
    AsyncConnection = AsyncEngine = Any

__all__ = ["AsyncConnection", "AsyncEngine"]
