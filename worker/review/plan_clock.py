"""The time by which plans of a run that trades expire: the close of the last bar that it took."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from schemas.vocabulary import TIMEFRAME_SECONDS

if TYPE_CHECKING:
    from services.store import RunRecord, Store

NS = 10**9


async def last_close(store: "Store", run: "RunRecord") -> int:
    """When the last bar of a run was closed, ns; 0 before the first."""
    last = await store.trading.last_bars(run.run_id)
    return 0 if last is None else bar_close(last[1], run.data)


def bar_close(label: int, data: Mapping[str, Any]) -> int:
    """When a bar is known, ns, by its label and the run's data."""
    return label if data["label"] == "close" else label + TIMEFRAME_SECONDS[data["timeframe"]] * NS
