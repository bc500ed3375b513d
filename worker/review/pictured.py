"""The picture of a run that has just been made, or of a stored one that was played again."""

import numpy as np

from services.journal.index import JournalIndex
from services.policy_loop.invariant_context import cost_bps
from trading_core.accounting import hold_curve
from worker.pages.run_picture import RunPicture
from worker.runs.run_result import RunResult
from worker.runs.why_no_trade import headline, headline_of_sent_back

NOWHERE = "memory"


def picture_of(run_id: str, status: str, done: RunResult, index: JournalIndex) -> RunPicture:
    """The picture of a run with its journal; `status` is how it ended."""
    settings, document, course = done.session.settings, done.document(run_id, NOWHERE), done.course
    return RunPicture(
        run_id,
        status,
        document,
        done.bars,
        np.asarray(done.equity[1], dtype=np.float64),
        tuple(done.trades),
        done.versions,
        index,
        course.curve,
        course.times,
        hold_curve(done.bars, settings.account.cash, cost_bps(settings.execution) * 1e-4),
        headline(document) if document["why_no_trade"] else None,
        headline_of_sent_back(document),
        done.stale_positions,
    )
