"""The picture of a run that has just been made or played again, or of a stored one from its rows and bars."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from schemas.episode import Episode
from schemas.playbook import PlaybookVersion
from schemas.settings import Settings
from services.journal.index import FILL_KINDS, Event, JournalIndex
from services.policy_loop.invariant_context import cost_bps
from trading_core.accounting import Fill, equity_of_fills, hold_curve
from trading_core.bars import BarSeries
from worker.pages.run_picture import RunPicture
from worker.runs.course import Course, stale_positions
from worker.runs.model_silence import model_silence
from worker.runs.signal_lines import account_lines
from worker.runs.stored_settings import stored_settings

if TYPE_CHECKING:
    from services.store import RunRecord
    from worker.runs.run_result import RunResult

NOWHERE = "memory"


def picture_of(run_id: str, status: str, done: "RunResult", index: JournalIndex) -> RunPicture:
    """The picture of a run with its journal; `status` is how it ended."""
    document = done.document(run_id, NOWHERE)
    held = done.versions, done.stale_positions
    return _picture((run_id, status, document), done.session.settings, done.course, index, *held)


def picture_of_rows(record: "RunRecord", bars: BarSeries, index: JournalIndex) -> RunPicture:
    """The picture of a finished run as its rows, its document and the bars that it traded have it."""
    settings, ended = stored_settings(record), index.events[-1].row.known_at
    done = int(np.searchsorted(bars.close_times, ended, side="right"))
    bars = bars if done >= bars.shape[0] else bars.select(end_ns=int(bars.times[done - 1]))
    trades = [Episode.model_validate(event.glance()["episode"]) for event in index.of_kind("episode")]
    versions = [PlaybookVersion.of_row(event.payload) for event in index.of_kind("playbook_version")]
    fills = sorted((e for kind in FILL_KINDS for e in index.of_kind(kind)), key=lambda event: event.row.seq)
    execution, cash = settings.execution, settings.account.cash
    carry = execution.funding_bps * 1e-4, execution.borrow_bps * 1e-4
    equity = equity_of_fills(bars, cash, [_fill(event, bars, index) for event in fills], *carry)
    course = Course.of_closes(bars, trades, equity, cash)
    entered: dict[str, tuple[str, str, int]] = {}
    for event in fills:
        symbol, payload = str(event.row.symbol), event.payload
        if event.row.kind == "entry_filled":
            entered[symbol] = payload["playbook_id"], payload["direction"], payload["bar_label"]
        elif event.row.kind == "exit_filled":
            entered.pop(symbol, None)
    stale = stale_positions(bars, settings, entered)
    named = record.run_id, record.status, record.document or {}
    return _picture(named, settings, course, index, tuple(versions), stale)


def _fill(event: Event, bars: BarSeries, index: JournalIndex) -> Fill:
    payload, kind = event.payload, event.row.kind
    order = index.get("order_accepted", payload["order_id"]) if kind == "entry_filled" else None
    return Fill(
        int(np.searchsorted(bars.times, payload["bar_label"])),
        bars.symbols.index(str(event.row.symbol)),
        1 if payload["direction"] == "long" else -1,
        payload["price"],
        payload["quantity"],
        payload["fee"],
        payload["quantity"] if kind == "entry_filled" else payload.get("remaining", 0.0),
        kind not in ("entry_filled", "add_filled"),
        order is not None and order.payload["bar_label"] == payload["bar_label"],
    )


def _picture(
    named: tuple[str, str, dict[str, Any]],
    settings: Settings,
    course: Course,
    index: JournalIndex,
    versions: tuple[PlaybookVersion, ...],
    stale: Sequence[str],
) -> RunPicture:
    run_id, status, document = named
    return RunPicture(
        run_id,
        status,
        document,
        course.bars,
        tuple(course.trades),
        versions,
        index,
        course.curve,
        course.times,
        hold_curve(course.bars, settings.account.cash, cost_bps(settings.execution) * 1e-4),
        account_lines(document),
        (*filter(None, [model_silence(document)]), *stale),
    )
