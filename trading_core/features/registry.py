"""The registry of features: what each name means, in which unit, and from which bar on it is known.

A name is a family with its lengths (`sma_20`, `trend_strength_20_50`), then, when it is read from higher
bars, their timeframe (`sma_20_1h`), then `_rank` for its rolling percentile rank (`sma_20_1h_rank`). Bands of
another width are called, `bollinger_upper(20, 2.5)`. Rules, snapshots and the regime know features by these
names only.

Two forms read other symbols of the same bars: `sma_200@SPY`, which quotes a symbol that is not letters,
digits, `_` and `.` (`close@"BTC/USDT"`), and `rank_cs(roc_20)`, the rank among the symbols of a row.
`x.funding` is a further column of the data.

Features on higher bars: the same graph, fed with longer bars that are seen once they are over.

A higher bar is the aggregate of the own bars of one UTC bucket. Its prices are known only on the one own bar
on which it is first seen and unknown on all others, so every operation, which leaves its state alone on an
unknown input, counts higher bars without knowing it; the result is held until the next one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from schemas.errors import ConfigError, RuleError, nearest
from schemas.timeframes import USUAL
from trading_core.features import nodes as f
from trading_core.features.calendar import bucket_column, check_above
from trading_core.features.families import ANY, FAMILIES, UNIT_INTERVAL, FeatureFamily
from trading_core.features.nodes import CLOSE, HIGH, LOW, OPEN, VOLUME, Node, Op, rank
from trading_core.features.own import OWN, Function, define, find, hashes_of
from trading_core.features.spelling import expand, spell
from trading_core.spacing import HIGHER_SECONDS

MAX_LENGTH = 5_000
RANK_EXAMPLES = ("realized_vol_20_rank", "bandwidth_20_rank", "volume_rank")
_NAME = re.compile(r"([a-z]+(?:_[a-z]+)*)((?:_[0-9]+)*)", re.ASCII)
_CALL = re.compile(
    r"([a-z]+(?:_[a-z]+)*)\(([0-9]{1,5}), ?([0-9]{1,9}(?:\.[0-9]{0,17})?(?:e-?[0-9]{1,3})?)\)", re.ASCII
)
_FURTHER = re.compile(r"x\.[a-z][a-z0-9_]*", re.ASCII)
_BARE_SYMBOL = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*", re.ASCII)
MAX_WIDTH = 100.0
CROSS_RANK = "rank_cs"
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
        unit: price, fraction, percent, ratio, rank, shares, bars, calendar, or own of what is not ours.
        doc: one sentence.
        bounds: closed interval of possible values.
        timeframe: of the higher bars it is read from; None: the symbol's own bars.
        base: what is read of other symbols; None: nothing is.
        symbol: whose base it is; None: that of every symbol of the bars.
        leaf_lookback: own bars before the first on which what the graph reads can be known.
    """

    name: str
    node: Node
    unit: str
    doc: str
    bounds: tuple[float, float]
    timeframe: str | None = None
    base: "FeatureSpec | None" = None
    symbol: str | None = None
    leaf_lookback: int = 0

    @property
    def lookback(self) -> int:
        """Own bars before the first bar on which the feature can be known.

        Of higher bars and of sessions it is the fewest that could do, when each of them were one own bar; of
        another symbol, which may have more bars, 0.
        """
        return self.leaf_lookback + self.node.lookback


def feature_names() -> tuple[str, ...]:
    """One usable name of every family, with its usual lengths, and the ranks the regime is made of."""
    return (*(family.example for family in FAMILIES), *RANK_EXAMPLES)


@lru_cache(maxsize=4_096)
def resolve(name: str) -> FeatureSpec:
    """The feature of this name.

    Raises:
        RuleError: no such feature, or lengths or a timeframe that it cannot have; names the nearest one.
    """
    if "@" in name or name.startswith(f"{CROSS_RANK}("):
        return _of_others(name)
    if (call := _CALL.fullmatch(name)) is not None:
        return _resolve_band(name, call.group(1), int(call.group(2)), float(call.group(3)))
    if _FURTHER.fullmatch(name):
        doc = f"Column {name[2:]} of the data, known at the close of the bar that carries it."
        return FeatureSpec(name, f.raw(name), "own", doc, ANY)
    if (own := find(name)) is not None:
        doc = f"Of a function of the caller's own, {own.source_hash[:12]}."
        return FeatureSpec(name, f.raw(f"{OWN}{name}"), "own", doc, ANY, leaf_lookback=own.lookback)
    ranked = name.endswith("_rank") and (name, 0) not in _BY_STEM
    text, timeframe = _split_timeframe(name.removesuffix("_rank") if ranked else name)
    family, lengths = _family(text, name, timeframe)
    node, unit, doc, bounds = family.node(lengths), family.unit, family.doc, family.bounds
    if ranked:
        node, unit, doc, bounds = rank(node), "rank", f"Rank of {text}.", UNIT_INTERVAL
    if timeframe is not None:
        node, doc = _at_timeframe(node, timeframe, name), f"On {timeframe} bars: {doc}"
    return FeatureSpec(name, node, unit, doc, bounds, timeframe)


def define_feature(name: str, function: Function, lookback: int) -> None:
    """Let rules read a function of the caller's own, see `own`; one of its name is replaced.

    Raises:
        ConfigError: the name is that of a feature of ours, or one of the arguments cannot be.
    """
    if name == "x" or any(name in (family.stem, family.example) for family in FAMILIES):
        raise ConfigError(f"feature {name!r} is a name of ours: take another one")
    define(name, function, lookback)
    resolve.cache_clear()


def own_features_of(names: Iterable[str]) -> dict[str, str]:
    """Hash by name of the functions of the caller's own that some features are, or are made of."""
    specs = (resolve(name) for name in names)
    return hashes_of(spec.name if spec.base is None else spec.base.name for spec in specs)


def symbol_text(symbol: str) -> str:
    """A symbol as a rule writes it behind `@`: bare, or in quotes."""
    if _BARE_SYMBOL.fullmatch(symbol):
        return symbol
    return f"'{symbol}'" if '"' in symbol else f'"{symbol}"'


def has_width(stem: str) -> bool:
    """Whether a call of this name means bands: `bollinger_upper(20, 2.5)`, or `bb_upper(20, 2.5)`."""
    return _find_band(stem) is not None


def _find_band(stem: str) -> FeatureFamily | None:
    family = _BY_STEM.get((expand(stem), 1))
    return family if family is not None and family.width is not None else None


def _resolve_band(name: str, stem: str, length: int, width: float) -> FeatureSpec:
    family = _find_band(stem)
    if family is None:
        raise RuleError(f"unknown feature {name[:60]!r}: {stem[:40]!r} takes no width", feature=name)
    _check_lengths(name, family, (length,))
    if not 0.0 < width <= MAX_WIDTH:
        raise RuleError(
            f"{name!r}: the width of {family.pattern} lies above 0 and up to {MAX_WIDTH:g}", feature=name
        )
    plain = f"{family.stem}_{length}"
    if width == family.width:
        return resolve(plain)
    text = f"{family.stem}({length}, {repr(width).removesuffix('.0')})"
    doc = f"{plain} with a width of {width:g}, not {family.width:g}."
    return FeatureSpec(text, family.node((length,), width), family.unit, doc, family.bounds)


def _of_others(name: str) -> FeatureSpec:
    ranked = name.startswith(f"{CROSS_RANK}(") and name.endswith(")")
    text, _, symbol = (name[len(CROSS_RANK) + 1 : -1], "", "") if ranked else name.partition("@")
    symbol = symbol.strip("\"'")
    if "@" in text or text.startswith(f"{CROSS_RANK}(") or not (ranked or symbol):
        reason = f"only what reads one symbol's own bars has a {CROSS_RANK} or a symbol behind '@'"
        raise RuleError(f"{name[:80]!r}: {reason}", feature=name)
    base = resolve(text)
    if ranked:
        whole = f"{CROSS_RANK}({base.name})"
        doc = f"Rank of {base.name} among the symbols that have a bar and know theirs."
        return FeatureSpec(
            whole, f.raw(whole), "rank", doc, UNIT_INTERVAL, base.timeframe, base, leaf_lookback=base.lookback
        )
    whole = f"{base.name}@{symbol_text(symbol)}"
    doc = f"Of {symbol}, as of its last bar: {base.doc}"
    return replace(base, name=whole, node=f.raw(whole), doc=doc, base=base, symbol=symbol, leaf_lookback=0)


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


def _family(text: str, question: str, timeframe: str | None) -> tuple[FeatureFamily, tuple[int, ...]]:
    match = _NAME.fullmatch(text)
    lengths = _lengths(match.group(2)) if match else None
    family = _BY_STEM.get((match.group(1), len(lengths))) if match and lengths is not None else None
    if lengths is None or family is None:
        hint = write_instead(question, text, timeframe) or f".{_nearest(question, text, timeframe)}"
        raise RuleError(f"unknown feature {question[:60]!r}{hint}", feature=question)
    _check_lengths(question, family, lengths)
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


def write_instead(question: str, text: str, timeframe: str | None = None) -> str:
    """`: write sma_20 (...)` for a text whose words are those of a feature of ours, else the empty string.

    Args:
        question: as written.
        text: the same without its timeframe.
        timeframe: of higher bars.
    """
    name = spell(text[:200], FAMILIES)
    if name is None:
        return ""
    whole = name if timeframe is None else f"{name}_{timeframe}"
    try:
        return "" if whole == question else f": write {whole} ({resolve(whole).doc.removesuffix('.')})"
    except RuleError:
        return ""


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
