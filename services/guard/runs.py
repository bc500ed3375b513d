"""The run that a guard is in its store, and the settings of it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from schemas.errors import ConfigError, nearest
from schemas.guard import GuardSettings
from schemas.settings import Settings

if TYPE_CHECKING:
    from services.store import Store

MODE = "guard"
# Checks that may lack their input, by the names that `not_checked` and `required` have.
CHECKS: Mapping[str, str] = {
    "daily_loss": "account.day_result",
    "max_drawdown": "account.drawdown",
    "symbol": "envelope.allowed_symbols",
    "staleness": "bars of a week or more",
    "bar_jump": "16 bars, the last right behind the one before it",
    "exposure": "account, and a price or bars; prices of its open orders, too",
    "share_of_equity": "account, and a price or bars",
    "risk": "account, and a price or bars",
    "notional": "`price` (where it is expected to fill) or `bars`",
    "cash": "account.cash",
    "averaging_down": "account, and a price or bars",
    "flip": "account",
    "price_collar": "bars",
    "levels": "a price or bars",
    "stop_distance": "15 bars",
    "coherence": "bars and a stop",
    "memory": "bars, a stop, and settled orders of the strategy",
    "expectation": "bars, a stop, and settled orders of the strategy",
}


def run_settings(settings: GuardSettings) -> Settings:
    """Those of a guard as those of a run."""
    shared = {name: getattr(settings, name) for name in GuardSettings.model_fields if name != "limits"}
    return Settings(**{name: value for name, value in shared.items() if name in Settings.model_fields})


def requiring(
    settings: GuardSettings, names: Sequence[str], always: Sequence[str] | None = None
) -> GuardSettings:
    """The settings with further required checks beside those of `always`, or of the settings.

    Raises:
        ConfigError: there is no such check, or it never lacks its input.
    """
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ConfigError(f"required {names!r}: give a list of checks, such as ['staleness'], or []")
    required = (*(settings.limits.required if always is None else always), *names)
    for name in required:
        if name not in CHECKS:
            guess = nearest(str(name), CHECKS) or f" There are {', '.join(CHECKS)}."
            raise ConfigError(f"required {name!r} is no check that may lack its input.{guess}")
    limits = settings.limits.model_copy(update={"required": tuple(dict.fromkeys(required))})
    return settings.model_copy(update={"limits": limits})


async def find_run(
    store: "Store", settings: GuardSettings, name: str, now: int, environment: Mapping[str, str | None]
) -> str:
    """The id of the oldest open run of this guard; processes that make one at once all take the older."""
    from services.store import NewRun

    async def find_oldest() -> str | None:
        runs = await store.runs.all()
        return next(
            (run.run_id for run in runs if (run.mode, run.name, run.status) == (MODE, name, "running")), None
        )

    if (found := await find_oldest()) is None:
        tree = run_settings(settings)
        data = {"source": MODE, "symbols": list(settings.envelope.allowed_symbols), "timeframe": "-"}
        new = NewRun(name, now, MODE, tree.config_hash, tree.payload(), data, dict(environment))
        made = await store.runs.create(new)
        if (found := await find_oldest()) != made.run_id:
            await store.runs.close(made.run_id, "interrupted")
    return (await store.runs.find(found or "")).run_id
