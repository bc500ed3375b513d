"""What a claim about trades begins with: how and when they ended, what they are held against, and bounds."""

from collections.abc import Sequence

from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings
from services.statistics.blocks import Trades
from services.statistics.track import Bounds


def trades_of(episodes: Sequence[Episode]) -> Trades:
    """Entry, exit and R of episodes, in their order."""
    return Trades.of([(item.exit_label, item.entry_label, item.r) for item in episodes])


def reference_of(definition: PlaybookDefinition | None, gate: GateSettings) -> float:
    """What trades are held against: the playbook's frozen measured contract, else the setting."""
    if definition is not None and definition.expectation.source == "measured":
        return definition.expectation.expectancy_r
    return gate.reference_r


def bounds_of(definition: PlaybookDefinition | None, gate: GateSettings, most_trades: int = 0) -> Bounds:
    """What is known of a trade's R before it is seen.

    `most_trades` of a block are all that the account allows.
    """
    target = None if definition is None else definition.expectation.target_r
    return Bounds(gate.winsor_low, gate.winsor_high, target, most_trades, gate.strict)
