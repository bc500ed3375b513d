"""Open a store: check what lies at the address before anything is read from it or written to it."""

from types import TracebackType
from typing import Self

from sqlalchemy import Connection, inspect

from schemas.errors import StoreError
from services.store.change_plans import ChangePlanRepository
from services.store.checkpoints import SavepointRepository
from services.store.claims import ClaimRepository, LeaseRepository
from services.store.console_users import ConsoleUsers
from services.store.conversations import Conversations, ToolPins
from services.store.engine import StoreEngine, build_engine, check_file, transaction
from services.store.failures import StoreMissing
from services.store.integrity import SealRepository
from services.store.journal_repository import JournalRepository
from services.store.migrate import make_tables, revision_state
from services.store.migrations import HEAD
from services.store.operator_requests import OperatorRequests
from services.store.reports import OnDemandRepository, ReportRepository
from services.store.retention import GrowthRepository, RetentionRepository
from services.store.run_repository import RunRepository
from services.store.tables import metadata
from services.store.trading import TradingRepository
from services.store.trials import TrialRepository
from services.store.urls import StoreUrl, parse_url


class Store:
    """An open store with its repositories; close it, or use it as an async context manager."""

    def __init__(self, engine: StoreEngine, url: StoreUrl) -> None:
        self._engine = engine
        self.url = url.text
        self.seals = SealRepository(engine, url)
        self.runs = RunRepository(engine, url)
        self.journal = JournalRepository(engine, url)
        self.leases = LeaseRepository(engine, url)
        self.claims = ClaimRepository(engine, url)
        self.reports = ReportRepository(engine, url)
        self.trading = TradingRepository(engine, url)
        self.on_demand = OnDemandRepository(engine, url)
        self.operator = OperatorRequests(engine, url)
        self.savepoints = SavepointRepository(engine, url)
        self.plans = ChangePlanRepository(engine, url)
        self.trials = TrialRepository(engine, url)
        self.tool_pins = ToolPins(engine, url)
        self.conversations = Conversations(engine, url)
        self.console = ConsoleUsers(engine, url)
        self.growth = GrowthRepository(engine, url)
        self.retention = RetentionRepository(engine, url)

    async def close(self) -> None:
        """Release every connection."""
        await self._engine.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def open_store(
    address: str,
    *,
    create: bool,
    timeout_s: float = 5.0,
    command_s: float | None = None,
    read_only: bool = False,
) -> Store:
    """The store at `sqlite:///PATH` or `postgresql://...`.

    Args:
        address: the `--db` value.
        create: make the file and the tables when they are missing; false opens for reading what is there.
        timeout_s: longest wait for a lock or a connection.
        command_s: longest wait for the answer of a server to one command; None leaves it time for long ones.
        read_only: on connections that the database itself keeps from writing.

    Raises:
        ConfigError: the address is not one.
        StoreMissing: nothing is there and `create` is false.
        StoreError: locked, damaged, foreign, unreachable, not writable, or of another revision.
    """
    url = parse_url(address)
    check_file(url, create=create)
    engine = build_engine(url, create=create, timeout_s=timeout_s, command_s=command_s, read_only=read_only)
    try:
        async with transaction(engine, url, writes=create) as connection:
            await connection.run_sync(_check, url, create)
    except BaseException:
        await engine.dispose()
        raise
    return Store(engine, url)


def _check(connection: Connection, url: StoreUrl, create: bool) -> None:
    """Refuse what this program does not work with; on `create` an empty store gets our tables."""
    found = revision_state(connection, url)
    if found.state == "empty":
        if not create:
            raise StoreMissing(
                f"store {url.text} is empty: `thinktwice backtest` fills it, or give another --db"
            )
        make_tables(connection)
    elif found.state == "behind":
        # Others may be at work in it: when its tables change is the operator's decision.
        raise StoreError(
            f"store {url.text} is at revision {found.revision!r}, this program works with {HEAD!r}: run "
            "`thinktwice db upgrade --db URL`"
        )
    else:
        _check_columns(connection, url)


def _check_columns(connection: Connection, url: StoreUrl) -> None:
    present = inspect(connection).get_multi_columns(filter_names=sorted(metadata.tables))
    columns = {name: {column["name"] for column in given} for (_, name), given in present.items()}
    for name in sorted(metadata.tables):
        if columns.get(name) != set(metadata.tables[name].c.keys()):
            raise StoreError(
                f"store {url.text} was made by another version (table {name!r}): give another --db"
            )
