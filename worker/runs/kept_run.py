"""What the store keeps of a run of a script that no file has, and what it cannot keep.

Playbooks and the bars of a DataFrame are kept with the run; of own features, their hash. A strategist, a
judge or critics of the script's own are Python objects: of them only the names are kept, and a run that
asked them is not played again.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schemas.playbook import PlaybookDefinition
from services.model_calls.quoting import visible
from worker.runs.replay import NotReplayable

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from trading_core.bars import BarSeries

PLAYBOOKS, OWN, FEATURES = "playbooks", "own_parts", "own_features"


def keep_beside(
    playbooks: Sequence[PlaybookDefinition], own: Sequence[str], features: Mapping[str, str]
) -> dict[str, Any]:
    """What the row of a run says beside its bars; of own features, the hash by name."""
    books = {PLAYBOOKS: [book.payload() for book in playbooks]} if playbooks else {}
    return books | ({OWN: list(own)} if own else {}) | ({FEATURES: dict(features)} if features else {})


def keep_features(books: Sequence[PlaybookDefinition], timeframe: str) -> dict[str, Any]:
    """What the row of a run says of the own features that its playbooks read."""
    from services.policy_loop.snapshot_builder import feature_names
    from trading_core.features.registry import own_features_of

    return keep_beside((), (), own_features_of(feature_names(books, timeframe)))


def kept_playbooks(record: "RunRecord") -> tuple[PlaybookDefinition, ...]:
    """Those that were handed over as objects; none where the settings name them."""
    return tuple(PlaybookDefinition.model_validate(shown) for shown in record.data.get(PLAYBOOKS, ()))


def demand_no_own_parts(record: "RunRecord") -> None:
    """Refuse to play a run that asked objects of its script, or read features that are gone or others now.

    Raises:
        NotReplayable: it did.
    """
    if own := record.data.get(OWN):
        named = visible(", ".join(map(str, own)))
        raise NotReplayable(
            f"run {record.run_id} asked parts of a Python script that no store keeps ({named}): run that "
            "script again, where result.verify() and result.to_html(FILE) play it"
        )
    from trading_core.features.own import list_changed  # numpy: loaded only where a run is played

    if gone := list_changed(record.data.get(FEATURES, {})):
        named = visible(", ".join(map(str, gone)))
        raise NotReplayable(
            f"run {record.run_id} reads features of a Python script that are not defined here as they were "
            f"({named}): define them by tt.feature with the source that they had, then tt.load(...).verify() "
            "(their file: thinktwice verify --features FILE.py)"
        )


async def kept_bars(store: "Store", record: "RunRecord") -> "BarSeries":
    """The bars that a run keeps in the store.

    Raises:
        StoreDamaged: they are not what was written.
    """
    from services.feeds.port import series_of

    rows = [row async for row in store.trading.rows(record.run_id)]
    data = record.data
    return series_of(tuple(data["symbols"]), data["timeframe"], data["label"], rows, data.get("zone", "UTC"))
