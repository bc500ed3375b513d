import sys

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schemas.errors import RuleError
from tests.each_case import check_each
from trading_core.features import feature_names
from trading_core.rules import parse

WORDS = [
    "and",
    "or",
    "not",
    "between",
    "crosses_above",
    "crosses_below",
    "prev",
    "abs",
    "min",
    "max",
    "close",
    "sma_20",
]
SYMBOLS = [
    "(",
    ")",
    ",",
    "+",
    "-",
    "*",
    "/",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
    "1",
    "2.5",
    "1e400",
    ".",
    "=",
    "{n}",
    "\0",
]


@check_each(
    ("text", "canonical", "kind"),
    [
        ("close>sma_20", "close > sma_20", "boolean"),
        ("((close)) > (sma_20)", "close > sma_20", "boolean"),
        ("close - (atr_14 * 2.0)", "close - atr_14 * 2", "number"),
        ("(close - atr_14) * 2", "(close - atr_14) * 2", "number"),
        ("close - (atr_14 - 1)", "close - (atr_14 - 1)", "number"),
        ("close / (atr_14 / 2)", "close / (atr_14 / 2)", "number"),
        ("--close", "--close", "number"),
        ("-(close + 1)", "-(close + 1)", "number"),
        ("not (close > 1 and close < 2) or not close > 3", None, "boolean"),
        ("close > 1 or (close < 2 or close == 3)", "close > 1 or close < 2 or close == 3", "boolean"),
        ("(close > 1 or close < 2) and close != 3", "(close > 1 or close < 2) and close != 3", "boolean"),
        ("crosses_above( sma_10 , sma_30 )", "crosses_above(sma_10, sma_30)", "boolean"),
        ("between(rsi_14, 30, 7e1)", "between(rsi_14, 30, 70)", "boolean"),
        ("prev(close > sma_20, 2)", "prev(close > sma_20, 2)", "boolean"),
        ("max(close, prev(high, 1), .5)", "max(close, prev(high, 1), 0.5)", "number"),
        ("close<bb_lower(20,1.50)", "close < bollinger_lower(20, 1.5)", "boolean"),
        ("keltner_upper( 10 , .00001 )", "keltner_upper(10, 1e-05)", "number"),
        ("abs(-zscore_20) + 1e-7", "abs(-zscore_20) + 1e-07", "number"),
    ],
)
def test_parse_valid_text_gives_kind_and_canonical_text(text, canonical, kind):
    rule = parse(text)
    assert rule.kind == kind
    assert rule.text == (canonical or text)
    assert parse(rule.text).tree == rule.tree


@check_each(
    ("text", "column", "words"),
    [
        ("close > sma(20)", 9, "write sma_20"),
        ("SMA(close, 20) < close", 1, "write sma_20"),
        ("sma(volume, 20) < volume", 1, "write volume_sma_20"),
        ("highest(high, 55) < close", 1, "write highest_55"),
        ("RSI(14) < 30", 1, "write rsi_14"),
        ("ta.sma(close,20) < close", 3, "write sma_20"),
        ("df.close > 1", 3, "write close"),
        ("macd(close, 8, 21, 5) > 0", 1, "write macd_8_21"),
        ("close < bb_lower_20", 9, "write bollinger_lower_20"),
        ("rsi14 < 30", 1, "write rsi_14"),
        ("true", 1, "write a comparison"),
        ("close > 1 or False", 14, "write a comparison"),
        ("close > 1 && high > 1", 11, "Write 'and'"),
        ("close > 1 & high > 1", 11, "Write 'and'"),
        ("close > 1 | high > 1", 11, "Write 'or'"),
        ("!(close > 1)", 1, "Write 'not'"),
        ("close > close[1]", 14, "Write prev(close, 1)"),
        ("close[0] > 1", 6, "Write close"),
        ("close > close.shift(2)", 14, "Write prev(close, 2)"),
        ("bb_upper(20) < close", 1, "write bollinger_upper_20"),
        ("bb_upper(20, 0) < close", 1, "lies above 0 and up to 100"),
        ("bb_upper(20, 101) < close", 1, "lies above 0 and up to 100"),
        ("bb_upper(1, 2) < close", 1, "lies in 2..5000"),
        ("bb_upper(20, close) < close", 1, "write bollinger_upper_20"),
        ("sma(high, 20) < close", 1, "Functions are between"),
        ("ta.crossover(close, sma_20)", 3, "Did you mean 'crosses_above'?"),
        ("qtpylib.crossed_below(close, sma_20)", 8, "Did you mean 'crosses_below'?"),
        ("ta.sma(close, 20) < close", 3, "write sma_20"),
        ("close.rolling(20).mean() < close", 6, "Functions are between"),
        ("", 1, "empty rule"),
        ("   ", 4, "empty rule"),
        ("close >", 8, "ends where a value"),
        ("close > smaa_20", 9, "Did you mean 'sma_20'?"),
        ("close > sma_0", 9, "lies in 1..5000"),
        ("close = 3", 7, "Write =="),
        ("close > 1 > 2", 11, "do not chain"),
        ("close and high", 1, "takes a boolean"),
        ("close > 1 and high", 15, "takes a boolean"),
        ("not close", 5, "takes a boolean"),
        ("(close > 1) + 2", 1, "takes a number"),
        ("1 + (close > 1)", 5, "takes a number"),
        ("-(close > 1)", 2, "takes a number"),
        ("(close > 1) < 2", 1, "takes a number"),
        ("abs(close > 1)", 5, "takes a number"),
        ("abs(close, 1)", 1, "takes 1 argument"),
        ("between(close, 1)", 1, "takes 3 arguments"),
        ("min(close)", 1, "at least 2"),
        ("prev(close, 0)", 13, "1..5000"),
        ("prev(close, 1.5)", 13, "1..5000"),
        ("prev(close, high)", 13, "1..5000"),
        ("cross_above(close, high)", 1, "Did you mean 'crosses_above'?"),
        ("abs", 1, "is a function"),
        ("(close", 7, "expected ')'"),
        ("close)", 6, "unexpected ')'"),
        ("close high", 7, "unexpected 'high'"),
        ("1e999 > close", 1, "too large"),
        ("close > `1`", 9, "unexpected character"),
        ("__import__('os')", 12, "unexpected character"),
        ("close.__class__", 6, "unexpected character"),
        ("and", 1, "expected a value"),
        ("close > ²", 9, "unexpected character"),
    ],
)
def test_parse_invalid_text_names_column_and_reason(text, column, words):
    with pytest.raises(RuleError) as caught:
        parse(text)
    assert f"column {column}:" in str(caught.value)
    assert words in str(caught.value)
    assert "Did you mean 'max'?" not in str(caught.value)


def test_rule_reports_features_and_lookback():
    rule = parse("crosses_above(close, prev(sma_10, 3)) and rsi_14 < 30 and volume > 0")
    assert rule.features == {"close", "sma_10", "rsi_14", "volume"}
    assert rule.lookback == 14
    assert parse("crosses_above(close, prev(sma_10, 3))").lookback == 9 + 3 + 1
    assert parse("crosses_above(close, prev(sma_10, 3))").tree.shift == 4


@pytest.mark.parametrize(
    "text",
    [
        "(" * 499 + "close" + ")" * 499,
        "not " * 240 + "close > 1",
        "-" * 900 + "close",
        "+".join(["1"] * 490),
        "abs(" * 240 + "1",
        "(" * 1000,
        "close > " * 120,
        "x" * 5_000,
    ],
)
def test_parse_deep_or_long_text_is_refused_not_overflowed(text):
    with pytest.raises(RuleError):
        parse(text)


def test_parse_flat_conjunction_of_many_terms_is_accepted():
    rule = parse(" and ".join(["1 < 2"] * 80))
    assert len(rule.tree.args) == 80


def _parses_or_refuses(text: str) -> None:
    try:
        rule = parse(text)
    except RuleError:
        return
    assert parse(rule.text).tree == rule.tree
    assert parse(rule.text).text == rule.text


@given(st.text(max_size=200))
def test_parse_any_text_gives_rule_or_rule_error(text):
    _parses_or_refuses(text)


@settings(max_examples=400)
@given(st.lists(st.sampled_from(WORDS + SYMBOLS), max_size=250))
def test_parse_any_token_sequence_gives_rule_or_rule_error(tokens):
    _parses_or_refuses(" ".join(tokens))


@given(st.lists(st.sampled_from(["(", "not ", "-", "abs(", "min(1,"]), min_size=50, max_size=400))
def test_parse_nested_openings_stay_within_the_stack(openings):
    limit = sys.getrecursionlimit()
    _parses_or_refuses("".join(openings) + "close")
    assert sys.getrecursionlimit() == limit


comparisons = ["<", "<=", ">", ">=", "==", "!="]
numbers = st.recursive(
    st.sampled_from(feature_names()) | st.floats(0, 1e6).map(repr),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda x: f"-{x}"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
        inner.map(lambda x: f"prev({x}, 2)"),
    ),
    max_leaves=6,
)
booleans = st.recursive(
    st.tuples(numbers, st.sampled_from(comparisons), numbers).map(" ".join)
    | st.tuples(numbers, numbers).map(lambda p: f"crosses_below({p[0]}, {p[1]})"),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda x: f"not {x}"),
    ),
    max_leaves=4,
)


@given(numbers | booleans)
def test_parse_generated_rule_round_trips_through_canonical_text(text):
    assume(len(text) <= 900)
    rule = parse(text)
    assert parse(rule.text).tree == rule.tree
    assert parse(rule.text).text == rule.text
