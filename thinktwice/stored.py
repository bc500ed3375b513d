"""Results that a store keeps: written as runs that every command reads, and read back as results."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError
from schemas.settings import Settings
from services.journal.chain import JournalRow
from thinktwice.boundary import trims_errors
from thinktwice.loops import cancellable, in_own_loop
from thinktwice.result import BacktestResult
from thinktwice.stores import store_address
from trading_core.bars import BarSeries
from worker.pages.run_picture import RunPicture
from worker.review.pictured import picture_of, picture_of_rows
from worker.runs.run_result import RunResult
from worker.session import Session, Timing

if TYPE_CHECKING:
    from services.store import RunRecord
    from worker.runs.progress import Progress
    from worker.runs.replay import Script


@trims_errors
def load(run: str = "latest", *, db: str | None = None) -> BacktestResult:
    """A stored run as a result: of `save`, or of the commands `backtest` and `paper`.

    Its figures and everything that its journal says are read, and its page and its plots are drawn from that,
    as `thinktwice page` does; for equity and drawdown it is played again once.

    Args:
        run: its id, a unique start of one, or `latest`.
        db: URL of the store; None: that of the environment, or `sqlite:///thinktwice.db`.

    Raises:
        ConfigError: there is no such store or run, or it has not ended.
        StoreError: the store or the run cannot be read.
    """
    if not isinstance(run, str):
        raise ConfigError(f"run {run!r}: give its id, a unique start of one, or 'latest'")
    return in_own_loop(_load(run, store_address(db)))


async def _load(run: str, address: str) -> BacktestResult:
    from services.store import open_store

    async with await open_store(address, create=False) as store:
        record = await store.runs.find(run)
        if record.status == "running":
            raise ConfigError(f"run {record.run_id} is under way, or was killed: load it when it is over")
        rows = [row async for row in store.journal.rows(record.run_id)]
    return StoredResult(address, record, rows)


class StoredResult(BacktestResult):
    """A run that a store holds; it is played again for what its journal does not say."""

    def __init__(self, address: str, record: "RunRecord", rows: list[JournalRow]) -> None:
        self.rows, self.run_id, self.status = rows, record.run_id, record.status
        self._address, self._record = address, record

    @cached_property
    def document(self) -> dict[str, Any]:
        """What the run's command printed with `--json`; of one that broke off, what it would have printed."""
        return self._record.document or self._done.document(self.run_id, self._address)

    @property
    def settings(self) -> Settings:
        """Of the run, as they were stored."""
        from worker.runs.stored_settings import stored_settings

        return stored_settings(self._record)

    @property
    def head_hash(self) -> str:
        """Of the journal, as the store counts it."""
        return self._record.head_hash

    @trims_errors
    def verify(self) -> bool:
        """Whether its chain, its ids and what is stored beside them hold, and the same run again is the same.

        Raises:
            ConfigError: it cannot be played again: it asked parts of a script, or another version made it.
        """
        found = in_own_loop(self._verify())
        if found["replay"]["playable"]:
            return bool(found["ok"])
        held = all(found[part]["ok"] for part in ("chain", "references", "stored"))
        raise ConfigError(f"its chain {'holds' if held else 'is BROKEN'}; {found['replay']['problem']}")

    @trims_errors
    def save(self, db: str | None = None) -> str:
        """Its id: the store holds it already.

        Raises:
            ConfigError: another store is named.
        """
        if db is not None and store_address(db) != self._address:
            raise ConfigError(
                f"run {self.run_id} lies in {self._address}: copy that store with `thinktwice db backup`"
            )
        return self.run_id

    def _sketch(self) -> str:
        return ""  # to show a run is not worth playing it again

    @cached_property
    def _session(self) -> Session:
        return in_own_loop(self._play())

    @cached_property
    def _done(self) -> RunResult:  # type: ignore[override]  # likewise
        return RunResult(self._session, Timing())

    @cached_property
    def picture(self) -> RunPicture:
        """What a page of the run shows, of a finished one from what is stored."""
        bars = in_own_loop(self._traded_bars())
        if bars is None:
            return picture_of(self.run_id, self.status, self._done, self.index)
        return picture_of_rows(self._record, bars, self.index)

    async def _traded_bars(self) -> BarSeries | None:
        from services.store import open_store
        from worker.review.rebuilt import traded_bars

        async with await open_store(self._address, create=False) as store:
            return await traded_bars(store, self._record)

    async def _play(self) -> Session:
        from services.store import open_store
        from worker.review.rebuilt import stored_script
        from worker.runs.replay import Replay
        from worker.runs.stored_settings import stored_settings

        record = self._record
        async with await open_store(self._address, create=False) as store:
            script = await stored_script(store, record, stored_settings(record))
            return (await Replay(script, store, record).rebuild(progress=cancellable())).session

    async def _verify(self) -> dict[str, Any]:
        from services.store import open_store
        from worker.review.verification import verify_run

        async with await open_store(self._address, create=False) as store:
            return await verify_run(store, self._record, watch=_watch_nothing)


@contextmanager
def _watch_nothing(_script: "Script") -> Iterator["Progress"]:
    yield cancellable()
