"""Whether the state that a plan was made for still holds; each reason why it does not is a sentence. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.plan import ChangePlan, PlanBasis
from services.plans.drafting import PlanFacts

ATR_BARS = 14


def mean_true_range(high: NDArray[np.float64], low: NDArray[np.float64], close: NDArray[np.float64]) -> float:
    """Mean true range of the last 14 bars of one symbol, in price; 0 without two bars.

    The arrays have one value a bar, oldest first; bars without a close are left out.
    """
    there = ~np.isnan(close)
    high, low, close = (values[there][-ATR_BARS - 1 :] for values in (high, low, close))
    if close.size < 2:
        return 0.0
    before = close[:-1]
    ranges = np.maximum(high[1:], before) - np.minimum(low[1:], before)
    return float(np.mean(ranges))


def stale_reasons(
    plan: ChangePlan,
    now: PlanFacts,
    proven: Mapping[str, Mapping[str, Any]],
    max_move_atr: float,
) -> tuple[str, ...]:
    """Why a plan is stale; () while its basis holds.

    Args:
        plan: as it was approved.
        now: the facts as they are.
        proven: what the trades of each candidate show now, by version hash, of those that are proven.
        max_move_atr: how far a close may lie from that of the basis, in mean true ranges.
    """
    basis = plan.basis
    return (
        *_other_versions(basis, now),
        *_other_positions(basis, now),
        *_moved_closes(basis, now, max_move_atr),
        *(
            f"{name.replace('_', ' ')} is {'on' if getattr(now, name) else 'off'} since"
            for name in ("kill_switch", "safe_mode")
            if getattr(now, name) != getattr(basis, name)
        ),
        *(
            f"the trades of candidate {version_hash[:12]} no longer prove it"
            for version_hash in basis.evidence
            if version_hash not in proven
        ),
    )


def _other_versions(basis: PlanBasis, now: PlanFacts) -> Iterator[str]:
    for name, stood in basis.versions.items():
        present = now.definitions.get(name)
        if present is None or present.content_hash != stood.version_hash:
            found = "none" if present is None else f"version {present.version}"
            yield f"{name} version {stood.definition.version} was in force, now {found} is"
        elif now.next_versions[name] != stood.next_version:
            yield f"version {stood.next_version} of {name} is taken: a trial has begun since"


def _other_positions(basis: PlanBasis, now: PlanFacts) -> Iterator[str]:
    held = {(item.symbol, item.side, item.playbook_id) for item in basis.positions}
    holds = {
        (item.symbol, item.side, item.playbook_id)
        for item in now.positions
        if item.playbook_id in basis.versions
    }
    for symbol, side, name in sorted(held ^ holds):
        change = "was closed" if (symbol, side, name) in held else "was opened"
        yield f"a {side} position of {name} in {symbol} {change} since"


def _moved_closes(basis: PlanBasis, now: PlanFacts, max_move_atr: float) -> Iterator[str]:
    for symbol, close in basis.closes.items():
        moved, limit = abs(now.closes.get(symbol, close) - close), max_move_atr * basis.atr[symbol]
        if limit > 0 and moved > limit:
            yield f"the close of {symbol} moved by {moved:.6g}, more than {max_move_atr:g} ATR ({limit:.6g})"
