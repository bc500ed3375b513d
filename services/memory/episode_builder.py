"""Build the episode of a closed trade from the trade record and the context of its decision.

The context is that of the decision (regime, fingerprint, conviction at the freeze), so nothing of the
outcome leaks into what an episode is compared by.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from schemas.canonical import content_id
from schemas.episode import Episode
from schemas.no_learn import NoLearnZone
from schemas.policy import FrozenPolicy
from schemas.vocabulary import Direction
from services.high_level.failure_modes import classify
from trading_core.bars import BarSeries
from trading_core.tick_events import REASONS


@dataclass(frozen=True)
class EpisodeContext:
    """What was known when the policy behind a trade was decided; nothing of the outcome is among it."""

    playbook_id: str
    playbook_version: int
    playbook_hash: str
    policy_id: str
    regime: str
    structure: str
    fingerprint: tuple[float, ...]
    conviction: float
    ledger: Literal["live", "shadow"]

    @classmethod
    def of_policy(cls, policy: FrozenPolicy, structure: str) -> "EpisodeContext":
        """Context of a frozen policy; `structure` is the label at its freeze."""
        return cls(
            playbook_id=policy.playbook_id,
            playbook_version=policy.playbook_version,
            playbook_hash=policy.playbook_hash,
            policy_id=policy.policy_id,
            regime=policy.regime_key,
            structure=structure,
            fingerprint=policy.fingerprint,
            conviction=policy.proposal.conviction,
            ledger="live",
        )


def build_episode(
    trade: Any, bars: BarSeries, context: EpisodeContext, no_learn_zones: Sequence[NoLearnZone] = ()
) -> Episode:
    """The episode of one trade record, with the failure mode of a losing one.

    Args:
        trade: one element of the engine's trade buffer.
        bars: the bars it was traded on.
        context: what was known at the decision.
        no_learn_zones: declared intervals; an episode one of whose bars touches one teaches nothing.
    """
    symbol = bars.symbols[int(trade["s"])]
    direction: Direction = "long" if int(trade["direction"]) > 0 else "short"
    entry, exit_ = int(bars.times[int(trade["entry_t"])]), int(bars.times[int(trade["exit_t"])])
    known_at = int(bars.close_times[int(trade["exit_t"])])
    opened_at = bars.open_of(int(trade["entry_t"]))  # of the entry bar, not its label
    episode = Episode(
        episode_id=content_id([context.policy_id, symbol, direction, entry, exit_, context.ledger]),
        symbol=symbol,
        timeframe=bars.timeframe,
        direction=direction,
        entry_label=entry,
        exit_label=exit_,
        known_at=known_at,
        entry_price=float(trade["entry_price"]),
        exit_price=float(trade["exit_price"]),
        quantity=float(trade["quantity"]),
        fees=float(trade["fees"]),
        pnl=float(trade["pnl"]),
        r=float(trade["r"]),
        mae_r=float(trade["mae_r"]),
        mfe_r=float(trade["mfe_r"]),
        hold_bars=int(trade["bars_held"]),
        exit_reason=REASONS[int(trade["reason"])],
        no_learn=any(zone.touches(symbol, opened_at, known_at) for zone in no_learn_zones),
        **asdict(context),
    )
    return episode.model_copy(update={"failure_mode": classify(episode)})
