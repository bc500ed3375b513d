"""What a run with models will take, said once its first questions are answered."""

import time
from collections.abc import Callable
from typing import Any

from services.model_calls.account import ModelAccount

AFTER = 20  # questions


class RunForecast:
    """Forecast of one run over bars that are all there; `say` hears it once, in one line.

    Questions are taken to come as often, to cost as much and to last as long over the rows that are left as
    over those since the first one.
    """

    def __init__(
        self,
        account: ModelAccount,
        say: Callable[[str], None],
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._account, self._say, self._timer = account, say, timer
        self._began = 0, timer()

    def look(self, row: int, rows: int) -> None:
        """So many rows are done, of how many."""
        calls = self._account.ledger.run.calls
        if self._account.forecast is not None or row == rows:
            return
        if not calls:
            self._began = row, self._timer()
        elif calls >= AFTER:
            first, started = self._began
            share = (rows - first) / (row - first)
            found = {
                "after_calls": calls,
                "calls": round(calls * share),
                "usd": self._account.ledger.run.usd * share,
                "hours": (self._timer() - started) * share / 3_600,
            }
            self._account.forecast = found
            self._say(describe_forecast(found))


def describe_forecast(found: dict[str, Any]) -> str:
    """A forecast in one line."""
    hours = found["hours"]
    lasts = f"{hours:,.1f} hours" if hours >= 1.0 else f"{60 * hours:,.0f} minutes"
    return (
        f"after {found['after_calls']} questions to models: this run will take about {found['calls']:,}, "
        f"${found['usd']:,.2f} and {lasts}, unless a limit of `llm` ends the asking before"
    )
