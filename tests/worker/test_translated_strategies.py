"""Strategies of the how-to trade, bar by bar and price by price, what a plain loop over prices trades.

Each loop was written from the strategy's description; it knows no rule language, no engine and no policy.
"""

import re
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from schemas.playbook import PlaybookDefinition
from schemas.settings import EnvelopeSettings, ExecutionSettings, ReflectionSettings, Settings
from schemas.vocabulary import Direction
from services.playbooks.loader import load_playbooks
from tests.worker.shared_runs import Run, embedded_bars, run_on
from tests.worker.test_textbook_strategies import channel, frames, moved, true_range
from trading_core.bars import BarSeries

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "translate-a-strategy.md"
BLOCK = re.compile(r'```toml title="further/(\w+)\.toml"\n(.*?)```', re.DOTALL)
TEXTS: dict[str, str] = dict(BLOCK.findall(PAGE.read_text("utf-8")))
FREE = ExecutionSettings(fee_bps=0.0, slippage_bps=0.0)
Order = dict[str, Any]  # side, stop, and the price of a resting entry or the target
Held = dict[str, Any]
Trade = tuple[Any, ...]  # labels of entry and exit, their prices


class Strategy:
    """What a description says, over the prices of one symbol."""

    def __init__(self, bars: pd.DataFrame) -> None:
        self.bars = bars
        self.open, self.high, self.low, self.close = (bars[name] for name in ("open", "high", "low", "close"))
        self.range, self.true_range = self.high - self.low, cache(lambda n: true_range(bars, n))
        self.highest = channel(bars, 20)[0]

    def order(self, row: int) -> Order | None:
        """What is ordered at the close of a bar while nothing is held."""
        raise NotImplementedError

    def leaves(self, held: Held, row: int) -> bool:
        """Whether the position is sold at the next open; may move its stop."""
        return False


class Chandelier(Strategy):
    def order(self, row: int) -> Order | None:
        if self.close.iloc[row] > self.highest.iloc[row]:
            return {"stop": self.close.iloc[row] - 3 * self.true_range(22).iloc[row]}
        return None

    def leaves(self, held: Held, row: int) -> bool:
        held["stop"] = max(held["stop"], held["best"] - 3 * self.true_range(22).iloc[row])
        return False


class ChandelierAbove(Chandelier):
    """In whenever the close lies above its mean, so at the close that ended a position as well."""

    def order(self, row: int) -> Order | None:
        if self.close.iloc[row] > self.close.iloc[row - 49 : row + 1].mean() and row >= 49:
            return {"stop": self.close.iloc[row] - 3 * self.true_range(22).iloc[row]}
        return None


class NarrowRange(Strategy):
    def order(self, row: int) -> Order | None:
        if row >= 6 and self.range.iloc[row] < self.range.iloc[row - 6 : row].min():
            return {"price": self.high.iloc[row], "stop": self.low.iloc[row]}
        return None

    def leaves(self, held: Held, row: int) -> bool:
        return bool(row - held["row"] >= 4)


class GoldenCross(Strategy):
    @cached_property
    def crosses(self) -> pd.Series:
        return moved(self.close.rolling(20).mean(), self.close.rolling(50).mean())

    def order(self, row: int) -> Order | None:
        close, reach = self.close.iloc[row], 2 * self.true_range(14).iloc[row]
        if self.crosses.iloc[row]:
            return {"stop": close - reach, "target": close + 2 * reach}
        return None


class Keltner(Strategy):
    side = 1

    def order(self, row: int) -> Order | None:
        far = self.close.iloc[row] - self.mean.iloc[row]
        if far * self.side > 2 * self.true_range(20).iloc[row]:
            return {"stop": self.close.iloc[row] - 10 * self.side * self.true_range(14).iloc[row]}
        return None

    def leaves(self, held: Held, row: int) -> bool:
        return bool((self.close.iloc[row] - self.mean.iloc[row]) * self.side < 0)

    @cached_property
    def mean(self) -> pd.Series:
        seeded = self.close.copy()
        seeded.iloc[:19], seeded.iloc[19] = np.nan, self.close.iloc[:20].mean()
        return seeded.ewm(span=20, adjust=False).mean()


class KeltnerShort(Keltner):
    side = -1


class InsideBar(Strategy):
    def order(self, row: int) -> Order | None:
        high, low = self.high.iloc[row - 1 : row + 1], self.low.iloc[row - 1 : row + 1]
        if row >= 1 and high.iloc[1] < high.iloc[0] and low.iloc[1] > low.iloc[0]:
            return {"price": high.iloc[0], "stop": low.iloc[0]}
        return None

    def leaves(self, held: Held, row: int) -> bool:
        return bool(row - held["row"] >= 3)


class Monday(Strategy):
    def order(self, row: int) -> Order | None:
        close, is_friday = self.close.iloc[row], self.bars.index[row].weekday() == 4
        if is_friday and close < self.open.iloc[row] and not np.isnan(self.true_range(14).iloc[row]):
            return {"stop": close - 3 * self.true_range(14).iloc[row]}
        return None

    def leaves(self, held: Held, row: int) -> bool:
        return True


STRATEGIES: dict[str, Callable[[pd.DataFrame], Strategy]] = {
    "chandelier": Chandelier, "narrow_range": NarrowRange, "golden_cross": GoldenCross, "keltner": Keltner,
    "inside_bar": InsideBar, "monday": Monday,
}  # fmt: skip


@cache
def traded(plan: Callable[[pd.DataFrame], Strategy], side: int = 1) -> list[Trade]:
    """Trades of a strategy, bought at the open or where a bar meets the price."""
    strategy = plan(frames(bars_of_apple())["AAPL"])
    labels, found = pd.DatetimeIndex(strategy.bars.index).asi8.tolist(), list[Trade]()
    held: Held | None = None
    order: Order | None = None
    for row, (first, high, low, _) in enumerate(strategy.bars.itertuples(index=False)):
        if held is None and order is not None:
            price = max(first, order.get("price", first))
            if price <= high:
                held = {"row": row, "price": price, "best": high, "target": np.nan, "leaves": False} | order
                held["price"] = price
        if held is not None:
            begins = held["price"] if row == held["row"] else first
            out = None
            if held["leaves"] or (begins - held["stop"]) * side <= 0 or (begins - held["target"]) * side >= 0:
                out = begins
            elif (low if side > 0 else high - 2 * high) <= held["stop"] * side:
                out = held["stop"]
            elif high >= held["target"]:
                out = held["target"]
            if out is not None:
                found.append((labels[held["row"]], labels[row], held["price"], out))
                held = None
        if held is not None:
            held["best"] = max(held["best"], high)
            held["leaves"] = strategy.leaves(held, row)
        order = strategy.order(row) if held is None else None
    return found


@cache
def bars_of_apple() -> BarSeries:
    return embedded_bars("2003-01-01", "2009-06-30").select(("AAPL",))


def made(
    definition: PlaybookDefinition, side: Direction = "long", mode: Any = "off"
) -> tuple[list[Trade], int]:
    """Trades of a run, and the time of its first plan."""
    envelope = EnvelopeSettings(
        cooldown_bars=0, max_symbol_losses=1_000, max_consecutive_losses=1_000, allowed_directions=(side,)
    )
    settings = Settings(execution=FREE, reflection=ReflectionSettings(mode=mode), envelope=envelope)
    run: Run = run_on(bars_of_apple(), settings, [definition])
    episodes = [row["episode"] for row in run.of("episode")]
    fields = ("entry_label", "exit_label", "entry_price", "exit_price")
    first = run.of("policy_frozen")[0]["policy"]["frozen_at"]
    account = run.document["signals"]["playbooks"][0]
    assert account["met"] + sum(account["not_met"].values()) == account["entry_rule_true"]
    return [tuple(map(episode.get, fields)) for episode in episodes], first


def playbook(name: str, tmp_path: Path, without: str = "", setup: str = "") -> PlaybookDefinition:
    text = TEXTS[name].replace(without, "") if without else TEXTS[name]
    text = re.sub(r'^setup = ".*"$', f'setup = "{setup}"', text, flags=re.MULTILINE) if setup else text
    path = tmp_path / f"{name}.toml"
    path.write_text(text)
    return load_playbooks(path)[0]


def shared(expected: list[Trade], found: list[Trade]) -> int:
    """Trades with the same bars and prices."""
    at = {trade[:2]: trade for trade in found}
    return sum(trade[:2] in at and at[trade[:2]] == pytest.approx(trade, rel=1e-9) for trade in expected)


def test_translated_strategies_are_files_of_at_most_fifteen_lines():
    assert set(STRATEGIES) == set(TEXTS)
    assert max(len(text.splitlines()) for text in TEXTS.values()) <= 15


@pytest.mark.parametrize("mode", ["off", "deterministic"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_translated_strategy_trades_what_a_plain_loop_trades(name, mode, tmp_path):
    sides: dict[Direction, tuple[Any, int]] = {"long": (STRATEGIES[name], 1)}
    if name == "keltner":
        sides["short"] = KeltnerShort, -1
    for side, (strategy, sign) in sides.items():
        found, first = made(playbook(name, tmp_path), side, mode)
        expected = traded(strategy, sign)
        assert len(expected) > 10
        assert shared(expected, found) >= 0.9 * len(expected)
        begun = [trade for trade in expected if trade[0] > first]
        assert shared(begun, found) == len(begun) >= len(found), "what is missing warms up"


def test_plan_that_repeats_enters_at_the_close_that_ended_its_position_and_another_does_not(tmp_path):
    setup = "close > sma_50"
    expected = traded(ChandelierAbove)
    again, _ = made(playbook("chandelier", tmp_path, setup=setup))
    once, _ = made(playbook("chandelier", tmp_path, "repeats = true\n", setup))
    assert shared(expected, again) >= 0.9 * len(expected)
    assert shared(expected, once) < 0.5 * len(expected)


def test_position_whose_plan_does_not_let_evaluations_tighten_keeps_its_stop(tmp_path):
    expected = traded(NarrowRange)
    kept, _ = made(playbook("narrow_range", tmp_path))
    moved_up, _ = made(playbook("narrow_range", tmp_path, "tightens = false\n"))
    assert shared(expected, kept) == len(expected)
    assert shared(expected, moved_up) < len(expected)
