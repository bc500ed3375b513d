"""The picture of a run from its rows and bars is that of the run itself, and grows with the bars alone."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from schemas.settings import ExecutionSettings, Settings
from services.journal.index import JournalIndex
from services.store import RunRecord
from tests.services.store.stores import new_run
from tests.worker.pages.test_run_page import index_of, picture
from tests.worker.shared_runs import Run, fewer_bars, run_on
from tests.worker.test_symbol_that_stops_trading import STOPPED, stopped_run
from worker.feeds.sample_data.worlds import make_world
from worker.pages.run_figures import run_figures
from worker.pages.run_page import run_html
from worker.pages.run_picture import RunPicture
from worker.review.pictured import picture_of, picture_of_rows

EXECUTIONS = {
    "defaults": ExecutionSettings(),
    "funding_and_borrow": ExecutionSettings(funding_bps=3.0, borrow_bps=2.0, fee_per_trade=1.5),
    "funding_that_shorts_get": ExecutionSettings(funding_bps=-1.0, lot_size=1.0, fee_rounding=0.01),
    "entries_at_the_close": ExecutionSettings(fill="close", funding_bps=5.0, level_base="fill"),
}


def record_of(run: Run) -> RunRecord:
    settings = run.result.session.settings
    described = new_run(config=json.loads(json.dumps(settings.payload())), config_hash=settings.config_hash)
    document = json.loads(json.dumps(run.document))
    return RunRecord(
        **vars(described), run_id="r0001", number=1, status="finished", events=len(run.rows),
        head_hash=run.rows[-1].hash, document=document,
    )  # fmt: skip


def both_pictures(run: Run) -> tuple[RunPicture, RunPicture]:
    index = index_of(run.rows)
    played = picture_of("r0001", "finished", run.result, index)
    return played, picture_of_rows(record_of(run), run.result.bars, index)


@pytest.mark.parametrize("execution", EXECUTIONS.values(), ids=EXECUTIONS)
def test_picture_of_rows_has_the_curve_of_the_engine_to_the_last_bit(execution):
    run = run_on(fewer_bars("2003-01-01", "2004-12-31"), Settings(execution=execution))
    kinds = {row.kind for row in run.rows}
    assert {"entry_filled", "scale_out_filled", "exit_filled"} <= kinds
    played, drawn = both_pictures(run)
    for name in ("curve", "times", "hold"):
        np.testing.assert_array_equal(getattr(drawn, name), getattr(played, name), strict=True)
    assert drawn.episodes == played.episodes
    assert drawn.versions == played.versions
    assert drawn.marks == played.marks
    assert (drawn.account, list(drawn.notices)) == (played.account, list(played.notices))
    document = replace(drawn, document=played.document)
    assert run_html(document) == run_html(played)


def test_picture_of_rows_names_the_open_position_of_a_symbol_that_stopped_trading():
    played, drawn = both_pictures(stopped_run())
    assert list(drawn.notices) == list(played.notices) == [STOPPED]
    np.testing.assert_array_equal(drawn.equity, played.equity)


def picture_of_bars(count: int) -> RunPicture:
    bars = make_world("reverting", seed=1, bars=count, symbols=1, timeframe="1m")
    curve = np.concatenate([[100.0], bars.close[:, 0]])
    times = np.concatenate([bars.close_times[:1] - bars.bar_ns, bars.close_times])
    empty = JournalIndex()
    found: RunPicture = replace(
        picture(), bars=bars, curve=curve, times=times, hold=curve, index=empty, episodes=()
    )
    return found


def test_page_and_figures_of_a_run_take_memory_that_grows_no_faster_than_the_bars():
    def draw(shown: RunPicture) -> None:
        run_html(shown)
        run_figures(shown)

    draw(picture_of_bars(1_000))
    peaks = []
    for count in (4_000, 8_000, 16_000):
        shown = picture_of_bars(count)
        tracemalloc.start()
        draw(shown)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] - peaks[1] < 2.5 * max(peaks[1] - peaks[0], 1_000_000)
    assert peaks[2] < 2.2 * peaks[1]
