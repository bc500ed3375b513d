"""The registry of features: what each name means, in which unit, and from which bar on it is known.

A name is a family with its lengths (`sma_20`, `trend_strength_20_50`); any name with `_rank` behind it is the
rolling percentile rank of that feature. Rules, snapshots and the regime know features by these names only.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from schemas.errors import RuleError, nearest
from trading_core.features.families import FAMILIES, UNIT_INTERVAL, FeatureFamily
from trading_core.features.nodes import Node, rank

MAX_LENGTH = 5_000
RANK_EXAMPLES = ("realized_vol_20_rank", "bandwidth_20_rank", "volume_rank")
_NAME = re.compile(r"([a-z]+(?:_[a-z]+)*)((?:_[0-9]+)*)", re.ASCII)

FEATURES: dict[str, FeatureFamily] = {family.pattern: family for family in FAMILIES}
_BY_STEM = {(family.stem, len(family.defaults)): family for family in FAMILIES}


@dataclass(frozen=True)
class FeatureSpec:
    """One resolved feature: its graph, unit and closed interval of possible values."""

    name: str
    node: Node
    unit: str
    doc: str
    bounds: tuple[float, float]

    @property
    def lookback(self) -> int:
        """Own bars before the first bar on which the feature can be known."""
        return self.node.lookback


def feature_names() -> tuple[str, ...]:
    """One usable name of every family, with its usual lengths, and the ranks the regime is made of."""
    return (*(family.example for family in FAMILIES), *RANK_EXAMPLES)


@lru_cache(maxsize=4_096)
def resolve(name: str) -> FeatureSpec:
    """The feature of this name.

    Raises:
        RuleError: no such feature, or lengths that it cannot have; names the nearest one.
    """
    if (name, 0) in _BY_STEM or not name.endswith("_rank"):
        return _spec(name, name)
    ranked = _spec(name.removesuffix("_rank"), name)
    return FeatureSpec(name, rank(ranked.node), "rank", f"Rank of {ranked.name}.", UNIT_INTERVAL)


def _spec(text: str, asked: str) -> FeatureSpec:
    match = _NAME.fullmatch(text)
    lengths = _lengths(match.group(2)) if match else None
    family = _BY_STEM.get((match.group(1), len(lengths))) if match and lengths is not None else None
    if lengths is None or family is None:
        raise RuleError(f"unknown feature {asked[:60]!r}.{_nearest(asked)}", feature=asked)
    _check_lengths(asked, family, lengths)
    return FeatureSpec(text, family.build(*lengths), family.unit, family.doc, family.bounds)


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


def _nearest(name: str) -> str:
    found = nearest(name[:60], feature_names())
    if found:
        return found
    return " Known are, for example, sma_20, ema_20, rsi_14, atr_14, highest_20, close."
