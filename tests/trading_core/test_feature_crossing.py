"""Features that read other symbols, `close@SPY` and `rank_cs(roc_5)`: against pandas and the future."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from schemas.errors import RuleError
from tests.trading_core.growing_bars import first_rows
from tests.trading_core.price_paths import columns_of, series, walk
from trading_core.bars import COLUMNS, BarSeries
from trading_core.features import FeatureColumns, resolve
from trading_core.rules import RuleColumns, lint, parse

ROWS = 300
SYMBOLS = ("AAA", "BRK.B", "BTC/USDT", "^GSPC")
OTHERS = (
    'close@"BTC/USDT"',
    "sma_20@BRK.B",
    'rsi_14@"^GSPC"',
    "bollinger_upper(20, 2.5)@BRK.B",
    "close_1w@AAA",
)
NAMES = (*OTHERS, "rank_cs(roc_5)", "rank_cs(sma_20)")
RULES = ('close > sma_20@BRK.B and close@"^GSPC" > 90', "rank_cs(roc_5) > prev(rank_cs(roc_5), 2)")


def market(seed: int = 1, share: float = 0.2, *, late: int = 60) -> BarSeries:
    """Four symbols that miss bars; the last but one begins late."""
    present = np.random.default_rng(seed).random((ROWS, len(SYMBOLS))) >= share
    present[:late, 2] = False
    shapes = {name: columns_of(walk(seed + k, ROWS), seed + k) for k, name in enumerate(SYMBOLS)}
    return series(shapes, present=present)


BARS = market()


def _own(bars, name, q):
    return pd.DataFrame(FeatureColumns(bars).scatter(name)[:, q])


@pytest.mark.parametrize("name", OTHERS)
def test_other_symbol_is_read_as_of_its_last_bar_at_or_before(name):
    spec = resolve(name)
    q = SYMBOLS.index(spec.symbol)
    values = FeatureColumns(BARS).scatter(str(spec.base and spec.base.name))[:, q]
    held, last = np.full(ROWS, np.nan), np.nan
    for t in range(ROWS):
        last = values[t] if BARS.present[t, q] else last
        held[t] = last
    expected = np.where(BARS.present, held[:, np.newaxis], np.nan)
    found = FeatureColumns(BARS).scatter(name)
    np.testing.assert_array_equal(found, expected)
    assert np.isfinite(found).any()


def test_other_symbol_that_begins_late_is_unknown_before_its_first_bar():
    found = FeatureColumns(BARS).scatter('close@"BTC/USDT"')[:, 0]
    first = int(np.argmax(BARS.present[:, 2]))
    assert first >= 60
    assert np.isnan(found[:first]).all()
    assert np.isfinite(found[first:][BARS.present[first:, 0]]).all()


@pytest.mark.parametrize("base", ["roc_5", "sma_20", "up_streak"])
def test_rank_among_symbols_equals_pandas_with_ties_averaged(base):
    frame = pd.DataFrame(FeatureColumns(BARS).scatter(base))
    expected = frame.rank(axis=1, pct=True, method="average")
    expected[frame.notna().sum(axis=1) < 2] = np.nan
    found = FeatureColumns(BARS).scatter(f"rank_cs({base})")
    np.testing.assert_allclose(found, expected.to_numpy(), rtol=1e-15)
    assert (found[np.isfinite(found)] > 0).all()


def test_rank_of_one_symbol_alone_is_unknown():
    one = series({"AAA": columns_of(walk(1, 50))})
    assert np.isnan(FeatureColumns(one).scatter("rank_cs(close)")).all()


@pytest.mark.parametrize("cuts", [(1, 2, 3, 59, 60, 61, 150), tuple(range(1, ROWS)), (100,)])
def test_columns_of_others_followed_bar_by_bar_give_the_same_bits(cuts):
    whole, live = RuleColumns(BARS), RuleColumns(first_rows(BARS, cuts[0]))
    for columns in (whole, live):
        columns.features.load(NAMES[:4])
        columns.load(RULES)
    for count in (*cuts[1:], ROWS):
        live.extend(first_rows(BARS, count))
    for name in NAMES:
        assert whole.features.scatter(name).tobytes() == live.features.scatter(name).tobytes(), name
    for text in RULES:
        for s in range(len(SYMBOLS)):
            assert whole.boolean(text, s).tobytes() == live.boolean(text, s).tobytes()
            assert whole.window(text, s, 80, 200).tobytes() == whole.boolean(text, s)[80:200].tobytes()
            assert (whole.boolean(text, s) == 1).any()


@pytest.mark.parametrize("row", [1, 61, 150, 298])
def test_columns_of_others_do_not_see_a_changed_future(row):
    arrays = {name: getattr(BARS, name).copy() for name in COLUMNS}
    for name in COLUMNS:
        arrays[name][row:] *= 3.0
    changed = FeatureColumns(dataclasses.replace(BARS, **arrays))
    for name in NAMES:
        np.testing.assert_array_equal(
            FeatureColumns(BARS).scatter(name)[:row], changed.scatter(name)[:row], err_msg=name
        )


def test_columns_made_again_in_their_order_stand_in_the_same_places():
    first, again = RuleColumns(BARS), RuleColumns(BARS)
    first.load(RULES)
    first.features.load([*OTHERS, "sma_20", "rank_cs(roc_5)"])
    first.boolean("rank_cs(atr_14) > 0.5 and close > open@BRK.B", 1)
    again.features.make_again(first.features.made)
    assert again.features.made == first.features.made
    for text in (*RULES, "rank_cs(atr_14) > 0.5 and close > open@BRK.B"):
        assert first.place(text, 1) == again.place(text, 1)
    for name in NAMES:
        assert first.features.place(name, 3) == again.features.place(name, 3), name


def test_symbol_that_the_bars_do_not_hold_is_refused_by_name():
    columns = RuleColumns(BARS)
    words = "'close@SPY': the bars hold no symbol 'SPY', only AAA, BRK.B, BTC/USDT, .GSPC: add its bars"
    for ask in (lambda: columns.features.load(["close@SPY"]), lambda: columns.boolean("close@SPY > 1", 0)):
        with pytest.raises(RuleError, match=words):
            ask()
    (finding,) = lint({"setup": "close@SPY > sma_5"}, columns, 0, ROWS)
    assert (finding.code, finding.role) == ("unknown_feature", "setup")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("close@SPY > sma_200@SPY", "close@SPY > sma_200@SPY"),
        ('close@"SPY" > 1', "close@SPY > 1"),
        ("close@BRK.B > 1", "close@BRK.B > 1"),
        ("close@'^GSPC' > 1", 'close@"^GSPC" > 1'),
        ('close @"BTC/USDT" > 1', 'close@"BTC/USDT" > 1'),
        ("close@600519 > 1", "close@600519 > 1"),
        ("rank_cs( roc_20 ) > 1", "rank_cs(roc_20) > 1"),
        ("rank_cs(bb_upper(20, 2.5)) > 1", "rank_cs(bollinger_upper(20, 2.5)) > 1"),
    ],
)
def test_rule_of_others_has_one_canonical_text(text, canonical):
    rule = parse(text)
    assert rule.text == canonical
    assert parse(rule.text).tree == rule.tree


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("close@BTC/USDT > 1", '''write @"BTC/USDT"'''),
        ("close@^GSPC > 1", "in quotes if need be"),
        ("rank_cs(close + 1) > 1", "expected ')'"),
        ("rank_cs(1) > 1", "takes a feature"),
        ("rank_cs(close@SPY) > 1", "only what reads one symbol's own bars"),
        ("rank_cs(rank_cs(close)) > 1", "only what reads one symbol's own bars"),
        ("rank_cs(close)@SPY > 1", "only what reads one symbol's own bars"),
        ("smaa_20@SPY > 1", "Did you mean 'sma_20'?"),
        ("(close + 1)@SPY > 1", "unexpected 'SPY'"),
    ],
)
def test_rule_of_others_that_cannot_be_says_why(text, words):
    with pytest.raises(RuleError) as caught:
        parse(text)
    assert words in str(caught.value)


def test_names_of_others_of_any_depth_are_refused_not_followed():
    for name in ("rank_cs(" * 3_000 + "close" + ")" * 3_000, "close@", 'close@""', "close" + "@SPY" * 500):
        with pytest.raises(RuleError):
            resolve(name) if "SPY" not in name else FeatureColumns(BARS).load([name])
