"""Families of the close's distance to an anchor, in ATR or as a fraction."""

from trading_core.features import nodes as f
from trading_core.features.families.family import FeatureFamily
from trading_core.features.formulas import previous_session, session_open, session_vwap
from trading_core.features.nodes import CLOSE, HIGH, LOW, Node


def _in_atr(anchor: Node, n: int) -> Node:
    return f.divide(f.subtract(CLOSE, anchor), f.atr(n))


def _off(extreme: Node) -> Node:
    return f.divide(f.subtract(CLOSE, extreme), extreme)


FAMILIES = (
    FeatureFamily(
        "distance_high_N",
        lambda n: _in_atr(f.highest(HIGH, n, before=True), n),
        "ratio",
        "Close less highest_N, in atr_N.",
        (20,),
    ),
    FeatureFamily(
        "distance_low_N",
        lambda n: _in_atr(f.lowest(LOW, n, before=True), n),
        "ratio",
        "Close less lowest_N, in atr_N.",
        (20,),
    ),
    FeatureFamily(
        "distance_sma_N",
        lambda n: _in_atr(f.mean(CLOSE, n), n),
        "ratio",
        "Close less sma_N, in atr_N.",
        (20,),
    ),
    FeatureFamily(
        "distance_ema_N",
        lambda n: _in_atr(f.ema(CLOSE, n), n),
        "ratio",
        "Close less ema_N, in atr_N.",
        (20,),
    ),
    FeatureFamily(
        "distance_session_open_N",
        lambda n: _in_atr(session_open(), n),
        "ratio",
        "Close less session_open, in atr_N.",
        (14,),
    ),
    FeatureFamily(
        "distance_session_vwap_N",
        lambda n: _in_atr(session_vwap(), n),
        "ratio",
        "Close less session_vwap, in atr_N.",
        (14,),
    ),
    FeatureFamily(
        "distance_previous_high_N",
        lambda n: _in_atr(previous_session("high"), n),
        "ratio",
        "Close less previous_session_high, in atr_N.",
        (14,),
    ),
    FeatureFamily(
        "distance_previous_low_N",
        lambda n: _in_atr(previous_session("low"), n),
        "ratio",
        "Close less previous_session_low, in atr_N.",
        (14,),
    ),
    FeatureFamily(
        "distance_previous_close_N",
        lambda n: _in_atr(previous_session("close"), n),
        "ratio",
        "Close less previous_session_close, in atr_N.",
        (14,),
    ),
    FeatureFamily(
        "off_high_N",
        lambda n: _off(f.highest(HIGH, n, before=False)),
        "fraction",
        "Close below the highest high of the last N bars, this one included; 0 at it.",
        (252,),
        1,
        (-1.0, 0.0),
    ),
    FeatureFamily(
        "off_low_N",
        lambda n: _off(f.lowest(LOW, n, before=False)),
        "fraction",
        "Close above the lowest low of the last N bars, this one included; 0 at it.",
        (252,),
        1,
        (0.0, float("inf")),
    ),
)
