"""Shadow trials: what the slow loop trades on paper beside the account, and until when."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from schemas.playbook import PlaybookDefinition
from schemas.vocabulary import DIRECTIONS, Direction
from services.playbooks.measures import RISK, Composition, Measure

Evidence = Mapping[str, float | int | str | None]  # what trades have shown, by figure


@dataclass(frozen=True)
class ShadowTrial:
    """One version on trial.

    Attributes:
        version_hash: content hash of `definition`, a version that was recorded.
        directions: what to trade, long before short.
        regime_key: the one `trend/volatility` cell to trade; None for all that the definition allows.
        kind: `candidate` may be promoted, `experiment` may suggest one; `banned_cell` keeps the record of
        what a ban prevents. since, expires_at: ns.
    """

    version_hash: str
    definition: PlaybookDefinition
    directions: tuple[Direction, ...]
    regime_key: str | None
    kind: Literal["candidate", "experiment", "banned_cell"]
    since: int
    expires_at: int


@dataclass(frozen=True)
class OpenTrial:
    """A trial with what its promotion would bring: a baseline, and the end of some measures."""

    trial: ShadowTrial
    baseline: PlaybookDefinition
    lifts: tuple[tuple[str, str], ...] = ()


def banned_cells(compositions: Iterable[Composition]) -> tuple[ShadowTrial, ...]:
    """One trial per banned cell: the version from before the ban, in that cell, while the ban lasts."""
    groups: dict[tuple[str, str], list[Measure]] = {}
    for composition in compositions:
        for measure in composition.measures:
            if measure.key != RISK:
                groups.setdefault((measure.before.content_hash, measure.key[1]), []).append(measure)
    return tuple(
        ShadowTrial(
            version_hash=version_hash,
            definition=found[0].before,
            directions=tuple(side for side in DIRECTIONS if any(measure.key[0] == side for measure in found)),
            regime_key=cell,
            kind="banned_cell",
            since=found[0].since,
            expires_at=max(measure.expires_at for measure in found),
        )
        for (version_hash, cell), found in groups.items()
    )
