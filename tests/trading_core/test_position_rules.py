"""Rules that read an open position: what they may say, and that the kernel reads them as columns are read."""

from itertools import count

import numpy as np
import pytest

from schemas.errors import RuleError
from schemas.vocabulary import POSITION_VARIABLES
from tests.each_case import check_each
from tests.trading_core.market import series
from tests.trading_core.rule_oracle import oracle
from trading_core.kernel.fresh import fresh_state
from trading_core.kernel.programs import run_program
from trading_core.rules import RuleColumns, parse
from trading_core.rules.bounds import possible_of
from trading_core.rules.programs import compile_program
from trading_core.rules.tree import column_parts

NAN = float("nan")
VALUES = {
    "entry_price": 100.0, "bars_held": 3.0, "open_r": 0.6, "mfe_r": 1.4, "mae_r": -0.2, "best_price": 107.0,
    "worst_price": 99.0,
}  # fmt: skip
STAND_INS = ("high", "low", "volume", "hour", "month", "day_of_week", "day_of_month")
FEATURES = {"close": 103.0, "open": 102.0, "sma_20": NAN, "rsi_14": 71.0, "atr_14": 2.0}
RULES = (
    "bars_held >= 3",
    "bars_held > 3",
    "open_r < mfe_r / 2 and mfe_r >= 1",
    "close < entry_price - 3 * atr_14 or rsi_14 > 70",
    "close < entry_price and rsi_14 > 70",
    "sma_20 > close and open_r > 9",
    "sma_20 > close and open_r > 0",
    "sma_20 > close or open_r > 0",
    "not (sma_20 > entry_price)",
    "not (open_r > 1)",
    "between(mae_r, -0.5, 0)",
    "abs(mae_r) == 0.2",
    "-mae_r != 0.2",
    "max(open_r, mae_r, -1) >= min(mfe_r, 0.6, 2)",
    "entry_price + (close - entry_price) / 2",
    "max(entry_price, close - 3 * atr_14)",
    "entry_price / (open_r - open_r)",
    "rsi_14 > 70",
    "close - atr_14",
    "7 - bars_held",
    "best_price - 3 * atr_14",
    "close < worst_price + atr_14",
)


def _as_features(text: str) -> str:
    """The same rule over features that stand for what the position has."""
    for name, feature in zip(POSITION_VARIABLES, STAND_INS, strict=True):
        text = text.replace(name, feature)
    return text


@check_each("text", RULES)
def test_position_rule_is_read_as_the_same_rule_over_columns(text):
    known = FEATURES | dict(zip(STAND_INS, VALUES.values(), strict=True))
    (expected,) = oracle(
        parse(_as_features(text)), {name: np.array([value]) for name, value in known.items()}
    )
    if parse(text).kind == "boolean" and expected < 0:
        expected = NAN
    state, portfolio = fresh_state(1, 0.0)
    st, places = state[0], count()
    for name, value in {
        "direction": 1, "entry_price": 100.0, "entry_own": 4, "own": 7, "risk": 5.0, "highest": 107.0,
        "lowest": 99.0,
    }.items():  # fmt: skip
        st[name] = value
    truths, numbers = np.zeros((8, 1), dtype=np.int8), np.zeros((8, 1))

    def column(of: str) -> int:
        place = next(places)
        rule = parse(of)
        table = truths if rule.kind == "boolean" else numbers
        (table[place, 0],) = oracle(rule, {name: np.array([value]) for name, value in FEATURES.items()})
        return place

    program = compile_program(parse(text), column, column)
    found = run_program(program, st, portfolio[0], truths, numbers, 0, 103.0)
    assert found == pytest.approx(expected, rel=1e-15, nan_ok=True)
    assert not portfolio["stack"].any(), "nothing is left for the next rule"


def test_position_rule_reads_its_parts_over_bars_as_columns():
    rule = parse("close < entry_price - 3 * atr_14 and (rsi_14 > 70 or bars_held > 5)")
    assert tuple(column_parts(rule.tree)) == ("close", "3 * atr_14", "rsi_14 > 70")
    assert column_parts(parse("rsi_14 > 70").tree) == {"rsi_14 > 70": "boolean"}
    assert rule.position == {"entry_price", "bars_held"}
    assert rule.features == {"close", "atr_14", "rsi_14"}


def test_rule_columns_load_the_parts_of_a_position_rule():
    columns = RuleColumns(series([(100, 101, 99, 100)] * 3))
    columns.load(["close < entry_price", "close > 0"])
    assert columns.number("close", 0).tolist() == [100.0] * 3


@pytest.mark.parametrize(
    "read",
    [
        lambda text: RuleColumns(series([(100, 101, 99, 100)])).boolean(text, 0),
        lambda text: RuleColumns(series([(100, 101, 99, 100)])).window(text, 0, 0, 1),
    ],
)
def test_position_rule_where_no_position_is_says_where_it_belongs(read):
    with pytest.raises(RuleError, match="'open_r' is known while a position is open only: .* exit and trail"):
        read("open_r > 1")


@pytest.mark.parametrize("text", ["prev(open_r, 1) > 0", "crosses_above(close, entry_price)"])
def test_position_rule_that_looks_back_is_refused(text):
    with pytest.raises(RuleError, match="a position has no bars before it"):
        parse(text)


def test_position_rule_of_more_steps_than_the_kernel_takes_is_refused():
    fits, more = "mfe_r - (" * 14 + "open_r" + ")" * 14 + " > 0", " + ".join(["open_r"] * 16) + " > 0"
    assert compile_program(parse(fits), lambda _: 0, lambda _: 0).any()
    with pytest.raises(RuleError, match="in 33 steps, at most 32 are carried out: shorten it"):
        compile_program(parse(more), lambda _: 0, lambda _: 0)


def test_position_rule_has_the_bounds_of_a_position():
    assert not possible_of("bars_held < 0").true
    assert not possible_of("mae_r > 0").true
    assert not possible_of("mfe_r >= 0").false
    assert possible_of("open_r > 3").true
