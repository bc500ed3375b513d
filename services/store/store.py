"""Open a store: check what lies at the address before anything is read from it or written to it."""

from types import TracebackType
from typing import Self

from sqlalchemy import Connection, inspect
from sqlalchemy.ext.asyncio import AsyncEngine

from schemas.errors import StoreError
from services.store.change_plans import ChangePlanRepository
from services.store.checkpoints import SavepointRepository
from services.store.claims import ClaimRepository
from services.store.conversations import Conversations
from services.store.engine import build_engine
from services.store.failures import StoreMissing
from services.store.integrity import SealRepository
from services.store.journal_repository import JournalRepository
from services.store.leases import LeaseRepository
from services.store.opening import check_file, transaction
from services.store.operator_requests import OperatorRequests
from services.store.reports import ReportRepository
from services.store.reports_on_demand import OnDemandRepository
from services.store.repository import at_once
from services.store.revision import RevisionState, ahead_error, behind_error, make_tables, revision_state
from services.store.run_repository import RunRepository
from services.store.tables import (
    CONVERSATIONS,
    OPERATOR,
    PLANS,
    SEALS,
    TOOL_PINS,
    TRADING,
    TRIALS,
    WORKER,
    metadata,
)
from services.store.tool_pins import ToolPins
from services.store.trading import TradingRepository
from services.store.trials import TrialRepository
from services.store.urls import StoreUrl, parse_url


class Store:
    """An open store with its repositories; close it, or use it as an async context manager.

    `has_worker_tables`, `has_operator_tables`, `has_trading_tables` and `has_plan_tables` are false for an
    older store that was opened for reading: it holds runs, but no reports of a worker, no requests of an
    operator, no paper runs, no change plans.
    `outdated` says so with the next step; None for a store of this revision. `upgraded` says from which
    revision opening it brought it to this one; None where it had nothing to do.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        url: StoreUrl,
        tables: frozenset[str] = frozenset(metadata.tables),
        outdated: str | None = None,
        upgraded: str | None = None,
    ) -> None:
        self._engine = engine
        self.url = url.text
        self.outdated, self.upgraded = outdated, upgraded
        self.has_worker_tables = tables >= WORKER
        self.has_operator_tables = tables >= OPERATOR
        self.has_trading_tables = tables >= TRADING
        sealing = tables >= SEALS
        self.seals = SealRepository(engine, url, tables)
        self.runs = RunRepository(engine, url, seals=sealing)
        self.journal = JournalRepository(engine, url)
        self.leases = LeaseRepository(engine, url)
        self.claims = ClaimRepository(engine, url)
        self.reports = ReportRepository(engine, url, seals=sealing)
        self.trading = TradingRepository(engine, url, seals=sealing)
        self.on_demand = OnDemandRepository(engine, url, seals=sealing)
        self.operator = OperatorRequests(engine, url)
        self.savepoints = SavepointRepository(engine, url)
        self.has_plan_tables = tables >= PLANS
        self.plans = ChangePlanRepository(engine, url)
        self.trials = TrialRepository(engine, url, there=tables >= TRIALS)
        self.tool_pins = ToolPins(engine, url, there=tables >= TOOL_PINS)
        self.conversations = Conversations(engine, url, there=tables >= CONVERSATIONS)

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
        create: make the file and the tables when they are missing, and upgrade a SQLite file that is behind;
            false opens for reading what is there.
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
            found, upgraded = await at_once(connection, lambda: connection.run_sync(_check, url, create))
    except BaseException:
        await engine.dispose()
        raise
    outdated = None if found.state == "current" else str(behind_error(url, found.revision))
    return Store(engine, url, found.tables, outdated, upgraded)


def _check(connection: Connection, url: StoreUrl, create: bool) -> tuple[RevisionState, str | None]:
    """What is there; on `create` an empty store gets our tables, and a SQLite file is upgraded."""
    found = revision_state(connection, url)
    if found.state == "empty":
        return _make_tables(connection, url, create), None
    if found.state == "ahead":
        raise ahead_error(url, found.revision)
    upgraded = None
    if found.state != "current" and create:
        if url.dialect == "postgresql":
            # Others may be at work in this database: when it changes is its operator's decision.
            raise behind_error(url, found.revision)
        upgraded = _upgrade(connection, url)
        found = revision_state(connection, url)
    _check_columns(connection, url, found)
    return found, upgraded


def _make_tables(connection: Connection, url: StoreUrl, create: bool) -> RevisionState:
    if not create:
        raise StoreMissing(f"store {url.text} is empty: `thinktwice backtest` fills it, or give another --db")
    make_tables(connection)
    return revision_state(connection, url)


def _upgrade(connection: Connection, url: StoreUrl) -> str:
    from services.store.migrate import upgrade  # loads the migration library, which few opened stores need

    done = upgrade(connection, url)
    return (
        f"store {url.text} was upgraded from revision {done.before!r} to {done.after!r}: an older version of "
        "this program cannot write to it any more"
    )


def _check_columns(connection: Connection, url: StoreUrl, found: RevisionState) -> None:
    expected = found.tables if found.state != "current" else set(metadata.tables)
    present = inspect(connection).get_multi_columns(filter_names=sorted(expected))
    columns = {name: {column["name"] for column in given} for (_, name), given in present.items()}
    for name in sorted(expected):
        if columns.get(name) == set(metadata.tables[name].c.keys()):
            continue
        if found.state != "current":
            raise behind_error(url, found.revision)
        raise StoreError(f"store {url.text} was made by another version (table {name!r}): give another --db")
