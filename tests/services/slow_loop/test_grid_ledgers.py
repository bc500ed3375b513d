"""A grid search goes on where the one before it stood, and leaves nothing behind but where it stands."""

from typing import Any

import numpy as np
import pytest

from schemas.settings import EnvelopeSettings, ExecutionSettings
from services.playbooks.loader import load_playbooks
from services.playbooks.rendering import render_rules
from services.slow_loop import shadow_ledger
from services.slow_loop.shadow_ledger import ShadowLedgers
from services.statistics.blocks import Trades
from tests.worker.shared_runs import embedded_bars
from trading_core.features.registry import resolve
from trading_core.market import Market
from trading_core.rules import parse
from trading_core.trigger_engine import Advance, TriggerEngine

PULLBACK = next(book for book in load_playbooks() if book.id == "trend_pullback")
NAME = min(PULLBACK.parameters)
VALUES = PULLBACK.parameters[NAME].grid
SEARCH = 40  # bars between two searches


def ledgers(rows: int) -> ShadowLedgers:
    bars = embedded_bars("2003-01-01", "2005-12-31")
    market = Market.of(bars, now=int(bars.close_times[-1]))
    assert rows <= bars.shape[0]
    return ShadowLedgers(market, ExecutionSettings(), EnvelopeSettings())


def search(searched: ShadowLedgers, rows: int, value: float) -> Trades:
    """The trades of a value on the first `rows` bars."""
    closes = searched.market.bars.close_times
    return searched.evaluate(PULLBACK, NAME, value, int(closes[0]), int(closes[rows - 1]))


def columns_of(trades: Trades) -> list[Any]:
    return [trades.entry_ns.tolist(), trades.exit_ns.tolist(), trades.r.tolist()]


@pytest.mark.parametrize("value", VALUES)
def test_grid_value_searched_again_and_again_has_the_trades_of_its_whole_columns(value):
    step_by_step, rows = ledgers(700), 700
    for stop in range(SEARCH, rows, SEARCH):
        search(step_by_step, stop, value)
    found = search(step_by_step, rows, value)
    changed = PULLBACK.parameters[NAME].model_copy(update={"value": value})
    variant = PULLBACK.model_copy(update={"parameters": {**PULLBACK.parameters, NAME: changed}})
    whole = ledgers(rows)
    episodes = whole.open(variant, tuple(variant.rules), 0).advance(rows)
    assert len(episodes) > 20
    assert columns_of(found) == [
        [getattr(episode, name) for episode in episodes] for name in ("entry_label", "exit_label", "r")
    ]
    early = search(step_by_step, 300, value)
    assert columns_of(early) == columns_of(search(ledgers(300), 300, value))


def test_grid_search_validates_each_bar_once_however_often_it_is_asked(monkeypatch):
    validated = 0

    class Counted(TriggerEngine):
        def advance(self, until: int | None = None) -> Advance:
            nonlocal validated
            before, made = self.t, super().advance(until)
            validated += self.t - before
            return made

    monkeypatch.setattr(shadow_ledger, "TriggerEngine", Counted)
    work = []
    for rows in (160, 320, 640):
        searched, validated = ledgers(rows), 0
        for stop in range(SEARCH, rows + 1, SEARCH):
            for value in VALUES:
                search(searched, stop, value)
        work.append(validated)
    assert work == [rows * len(VALUES) * len(PULLBACK.rules) for rows in (160, 320, 640)]


def test_grid_search_leaves_no_column_of_a_rule_in_the_bank():
    searched = ledgers(300)
    features = searched.market.columns.features
    before = len(features.made)
    search(searched, 300, VALUES[0])
    texts = [
        text
        for side in PULLBACK.rules
        for text in render_rules(PULLBACK, side).model_dump().values()
        if isinstance(text, str)
    ]
    named = {name for text in texts for name in parse(text).features}
    left = [node for _, nodes in features.made[before:] for node, _ in nodes]
    assert {*left} <= {resolve(name).node for name in named}


def test_grid_search_of_another_window_begins_anew():
    searched = ledgers(400)
    search(searched, 400, VALUES[0])
    closes = searched.market.bars.close_times
    later = searched.evaluate(PULLBACK, NAME, VALUES[0], int(closes[200]), int(closes[399]))
    assert len(later)
    assert np.all(later.entry_ns >= searched.market.bars.times[200])
