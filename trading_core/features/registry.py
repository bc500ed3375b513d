"""The registry of features: what each name means, in which unit, and from which bar on it is known.

A name is a family with its lengths (`sma_20`, `trend_strength_20_50`), then, when it is read from higher
bars, their timeframe (`sma_20_1h`), then `_rank` for its rolling percentile rank (`sma_20_1h_rank`). Rules,
snapshots and the regime know features by these names only.

Features on higher bars: the same graph, fed with longer bars that are seen once they are over.

A higher bar is the aggregate of the own bars of one UTC bucket. Its prices are known only on the one own bar
on which it is first seen and unknown on all others, so every operation, which leaves its state alone on an
unknown input, counts higher bars without knowing it; the result is held until the next one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from schemas.errors import RuleError, nearest
from schemas.timeframes import USUAL
from trading_core.features import nodes as f
from trading_core.features.calendar import bucket_column, check_above
from trading_core.features.families import FAMILIES, UNIT_INTERVAL, FeatureFamily
from trading_core.features.nodes import CLOSE, HIGH, LOW, OPEN, VOLUME, Node, Op, rank
from trading_core.spacing import HIGHER_SECONDS

MAX_LENGTH = 5_000
RANK_EXAMPLES = ("realized_vol_20_rank", "bandwidth_20_rank", "volume_rank")
_NAME = re.compile(r"([a-z]+(?:_[a-z]+)*)((?:_[0-9]+)*)", re.ASCII)
_TIMEFRAME = re.compile(r"(.+)_([1-9][0-9]{0,3}[a-zM])", re.ASCII)

FEATURES: dict[str, FeatureFamily] = {family.pattern: family for family in FAMILIES}
_BY_STEM = {(family.stem, len(family.defaults)): family for family in FAMILIES}
HIGHER_TIMEFRAMES = tuple(HIGHER_SECONDS)


@dataclass(frozen=True)
class FeatureSpec:
    """One resolved feature.

    Attributes:
        name: as asked for.
        node: its graph.
        unit: price, fraction, percent, ratio, rank, shares, bars or calendar.
        doc: one sentence.
        bounds: closed interval of possible values.
        timeframe: of the higher bars it is read from; None: the symbol's own bars.
    """

    name: str
    node: Node
    unit: str
    doc: str
    bounds: tuple[float, float]
    timeframe: str | None = None

    @property
    def lookback(self) -> int:
        """Own bars before the first bar on which the feature can be known.

        Of higher bars and of sessions it is the fewest that could do, when each of them were one own bar.
        """
        return self.node.lookback


def feature_names() -> tuple[str, ...]:
    """One usable name of every family, with its usual lengths, and the ranks the regime is made of."""
    return (*(family.example for family in FAMILIES), *RANK_EXAMPLES)


@lru_cache(maxsize=4_096)
def resolve(name: str) -> FeatureSpec:
    """The feature of this name.

    Raises:
        RuleError: no such feature, or lengths or a timeframe that it cannot have; names the nearest one.
    """
    ranked = name.endswith("_rank") and (name, 0) not in _BY_STEM
    text, timeframe = _split_timeframe(name.removesuffix("_rank") if ranked else name)
    family, lengths = _family(text, name, timeframe)
    node, unit, doc, bounds = family.build(*lengths), family.unit, family.doc, family.bounds
    if ranked:
        node, unit, doc, bounds = rank(node), "rank", f"Rank of {text}.", UNIT_INTERVAL
    if timeframe is not None:
        node, doc = _at_timeframe(node, timeframe, name), f"On {timeframe} bars: {doc}"
    return FeatureSpec(name, node, unit, doc, bounds, timeframe)


def check_timeframes(names: Iterable[str], timeframe: str) -> None:
    """Make sure that every feature can be had on bars of a timeframe.

    Raises:
        RuleError: one is unknown, or reads higher bars that are not above these; names it.
    """
    for name in names:
        higher = resolve(name).timeframe
        if higher is not None:
            try:
                check_above(higher, timeframe)
            except RuleError as error:
                words = f"{name!r}: {error}, or the feature without a timeframe"
                raise RuleError(words, feature=name) from error


def _split_timeframe(text: str) -> tuple[str, str | None]:
    match = _TIMEFRAME.fullmatch(text)
    return (match.group(1), match.group(2)) if match else (text, None)


def _family(text: str, asked: str, timeframe: str | None) -> tuple[FeatureFamily, tuple[int, ...]]:
    match = _NAME.fullmatch(text)
    lengths = _lengths(match.group(2)) if match else None
    family = _BY_STEM.get((match.group(1), len(lengths))) if match and lengths is not None else None
    if lengths is None or family is None:
        raise RuleError(f"unknown feature {asked[:60]!r}.{_nearest(asked, text, timeframe)}", feature=asked)
    _check_lengths(asked, family, lengths)
    return family, lengths


def _lengths(text: str) -> tuple[int, ...] | None:
    parts = text.split("_")[1:]
    if any((part.startswith("0") and part != "0") or len(part) > len(str(MAX_LENGTH)) for part in parts):
        return None
    return tuple(int(part) for part in parts)


def _check_lengths(name: str, family: FeatureFamily, lengths: tuple[int, ...]) -> None:
    for length in lengths:
        if not family.minimum <= length <= MAX_LENGTH:
            raise RuleError(
                f"{name!r}: a length of {family.pattern} lies in {family.minimum}..{MAX_LENGTH}", feature=name
            )
    if family.ascending and lengths[0] >= lengths[1]:
        raise RuleError(
            f"{name!r}: the first length of {family.pattern} must be below the second", feature=name
        )


def _at_timeframe(node: Node, timeframe: str, name: str) -> Node:
    if timeframe not in HIGHER_TIMEFRAMES:
        raise RuleError(
            f"{name!r}: {timeframe!r} is no timeframe of higher bars: use one of "
            f"{', '.join(name for name in USUAL if name in HIGHER_SECONDS)}",
            feature=name,
        )
    if not reads_only_bars(node):
        raise RuleError(
            f"{name!r}: calendar and session features have no timeframe: leave out '_{timeframe}'",
            feature=name,
        )
    return at_timeframe(node, timeframe)


def _nearest(name: str, text: str, timeframe: str | None) -> str:
    if timeframe is None:
        found = nearest(name[:60], feature_names())
    elif text.endswith("_rank"):
        found = f" The rank comes last: {text.removesuffix('_rank')}_{timeframe}_rank."
    else:
        found = nearest(name[:60], [f"{known}_{timeframe}" for known in feature_names()])
    return found or " Known are, for example, sma_20, ema_20, rsi_14, atr_14, highest_20, close."


def reads_only_bars(node: Node) -> bool:
    """Whether prices and volume are all that a graph reads: such a graph can be had on higher bars."""
    if node.op is Op.RAW:
        return node in (OPEN, HIGH, LOW, CLOSE, VOLUME)
    return all(reads_only_bars(part) for part in node.inputs)


def at_timeframe(node: Node, timeframe: str) -> Node:
    """The graph on bars of a higher timeframe, held from one such bar to the next.

    Args:
        node: a graph that `reads_only_bars`.
        timeframe: one of `HIGHER_TIMEFRAMES`.
    """
    bucket = f.raw(bucket_column(timeframe))
    higher = {
        OPEN: f.publish(f.first_of(OPEN, bucket), bucket),
        HIGH: f.publish(f.highest_of(HIGH, bucket), bucket),
        LOW: f.publish(f.lowest_of(LOW, bucket), bucket),
        CLOSE: f.publish(CLOSE, bucket),
        VOLUME: f.publish(f.total_of(VOLUME, bucket), bucket),
    }
    return f.hold(_replace(node, higher), higher[CLOSE])


def _replace(node: Node, higher: dict[Node, Node]) -> Node:
    if node not in higher:
        parts = tuple(_replace(part, higher) for part in node.inputs)
        higher[node] = f.with_inputs(node, parts)
    return higher[node]
