"""The configuration reference from `schemas.config`: every setting with type, default, limits and meaning.

A meaning is the field's own description; where the schema leaves the name to speak, it stands here. A setting
with neither is an error, so none can stay undocumented. Called by `docs_reference`.
"""

import json
import re
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from schemas.config import HEARTBEAT_BARS, Settings
from schemas.contract import Contract
from schemas.errors import ConfigError
from tools.docs_pages import table
from worker.settings import FIELDS, SECTIONS

MEANING = {
    "seed": "recorded in the first journal row; the rules tier draws nothing, so it changes no decision",
    "data.label": "whether a label is the open or the close of its bar",
    "data.timeframe": "spacing of the bars; unset: as the bars are spaced",
    "account.name": "part of every order id",
    "account.cash": "starting cash, in quote currency",
    "execution.fill": "where an entry fills: the next open, or the close of the signal bar",
    "execution.level_base": "stop and target are measured from the signal close, or moved along to the fill",
    "execution.entry_bar_exits": "whether stop and target may already close a position on its entry bar",
    "execution.both_hit": "which level counts when one bar holds both: see engine semantics",
    "execution.gap": "a bar that opens beyond a level fills at its open, or at the level",
    "execution.volatility_multiple": "ATRs that the risk fraction pays for, where sizing is by volatility",
    "execution.fixed_quantity": "units per entry, where sizing is fixed",
    "envelope.max_symbol_exposure": "position value of one symbol over equity; orders are clamped to it",
    "envelope.correlation_buckets": "tables of `name`, `symbols`, `max_exposure` (gross, of equity); orders "
    "are clamped to it",
    "envelope.loss_pause_bars": "own bars without entries after `max_symbol_losses`, and bars of the halt "
    "after `max_consecutive_losses`",
    "envelope.no_trade_windows": "tables of `reason` and either `start`, `end` or, every day, `from_minute`, "
    "`to_minute` of the UTC day and `weekdays` (Monday 0); with `symbol` for one symbol only",
    "policy_loop.regime.low_volatility": "rank of volatility below which its band is low",
    "policy_loop.regime.high_volatility": "rank from which it is high",
    "policy_loop.regime.extreme_volatility": "rank from which it is extreme",
    "policy_loop.regime.confirm_of": "last closes among which `confirm` must agree",
    "policy_loop.regime.sideways_confirm": "closes that must agree on sideways",
    "policy_loop.regime.sideways_confirm_of": "last closes among which they must agree",
    "envelope.max_gross_exposure": "sum of position values over equity; orders are clamped to it",
    "envelope.max_daily_loss": "loss of the UTC day that flattens and halts until the next day",
    "envelope.max_drawdown": "fall from the peak that flattens and halts",
    "envelope.drawdown_release_bars": "bars of the halt after a drawdown",
    "envelope.cooldown_bars": "own bars in COOLDOWN after an exit",
    "envelope.allowed_directions": "directions that may be proposed",
    "envelope.no_learn_zones": "tables of `start`, `end` (exclusive), `symbol`, `reason`; a bar that shares "
    "a moment with one is neither traded on nor learnt from",
    "policy_loop.events": "what may start an evaluation; an event left out is skipped as `event_disabled`",
    "policy_loop.minimum_interval_s": "least time between evaluations of a symbol",
    "policy_loop.minimum_interval_bars": "least own bars between evaluations; the larger of the two holds",
    "policy_loop.max_revisions": "revision rounds of one evaluation, shared by reflection and judge",
    "reflection.mode": "`off`, `deterministic` (rules only), or `full` (rules and a model)",
    "reflection.budget_event_ms": "time budget after regime, volatility and position events",
    "reflection.budget_heartbeat_ms": "time budget after a heartbeat",
    "reflection.min_reward_to_risk": "least reward to risk after the costs of both sides",
    "reflection.max_staleness_bars": "oldest last bar of a symbol, in bars of the portfolio",
    "memory.winners": "nearest winners in a retrieved bundle",
    "memory.losers": "nearest losers in a retrieved bundle",
    "memory.failures": "nearest losers with a known failure mode in a retrieved bundle",
    "high_level.enabled": "whether the slow loop runs at all",
    "high_level.interval": "cadence of the slow loop; unset: daily on intraday bars, weekly on daily bars",
    "high_level.minimum_episodes": "resolved trades since the last run that a run needs",
    "high_level.structural_interval_days": "least days between runs that may recommend structural changes",
    "gate.mode": "which grade allows which action: see the gate",
    "gate.q": "share of false findings that the family of hypotheses may spend",
    "gate.minimum_trades": "resolved trades below which a count says nothing",
    "gate.regime_minimum": "resolved trades that a change of eligibility in one regime needs",
    "gate.winsor_low": "R below it counts as it",
    "gate.winsor_high": "R above it counts as it",
    "gate.reference_r": "expectancy against which a cluster is tested",
    "judge.model": "who judges",
    "judge.minimum_eligible_playbooks": "playbooks that stay eligible whatever a report says",
    "judge.promotion_minimum_trades": "shadow trades that a promotion needs",
    "judge.promotion_alpha": "shared by all candidates of a run: the k-th needs an e-value of k (k + 1) over "
    "this, less after promotions",
    "judge.max_open_experiments": "experiments in shadow at one time",
    "llm.fast_model": "model of the fast reflection",
    "llm.slow_model": "model of the slow reflection",
    "deliberation.review_reports": "reserved: nothing reads it yet",
    "runtime.db": "the store; `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/DATABASE`",
    "runtime.tz": "zone of times in the file that have none",
    "runtime.start": "first bar label kept, UTC",
    "runtime.end": "last bar label kept, UTC; a date is its whole day",
    "runtime.out": "folder for summary, trades, equity and reports",
    "runtime.flush_rows": "journal rows per transaction",
}
_LIMITS = {"ge": ">= {}", "gt": "> {}", "le": "<= {}", "lt": "< {}"}


def configuration() -> str:
    """One table a section, in the order of the tree."""
    parts = [_section("seed", [key for key in FIELDS if "." not in key])]
    for section in [name for name in Settings.model_fields if name in SECTIONS]:
        keys = [key for key in FIELDS if key.startswith(f"{section}.")]
        model = Settings.model_fields[section].annotation
        text = " ".join((model.__doc__ or "").split()).replace("None:", "Unset:")
        parts.append(f"## [{section}]\n\n{text}\n\n{_rows(keys)}")
    return "\n\n".join(parts)


def _section(title: str, keys: list[str]) -> str:
    return f"## Top level: {title}\n\n{_rows(keys)}"


def _rows(keys: list[str]) -> str:
    rows = [
        (
            f"`{key.partition('.')[2] or key}`",
            type_text(FIELDS[key].annotation),
            _default(FIELDS[key]),
            meaning(key),
        )
        for key in keys
    ]
    return table(("key", "type", "default", "meaning"), rows)


def meaning(key: str) -> str:
    """What a setting means, and its limits.

    Raises:
        ConfigError: nobody has said so.
    """
    field = FIELDS[key]
    text = field.description or MEANING.get(key)
    if text is None:
        raise ConfigError(f"setting {key!r} has no description in schemas/config.py and none in {__name__}")
    limits = [
        form.format(f"{getattr(one, name):g}")
        for one in field.metadata
        for name, form in _LIMITS.items()
        if hasattr(one, name)
    ]
    text = re.sub(r"^None: ", "unset: ", text)
    return f"{text}{' (' + ', '.join(limits) + ')' if limits else ''}"


def type_text(annotation: Any) -> str:
    """A type as a reader of TOML knows it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin in (Union, UnionType):
        return " or ".join(type_text(one) for one in arguments if one is not NoneType)
    if origin is tuple:
        return f"list of {type_text(arguments[0])}"
    if isinstance(annotation, type) and issubclass(annotation, str) and annotation is not str:
        return "policy event"
    names = {str: "text", int: "integer", float: "number", bool: "true or false"}
    return names.get(annotation, "table")


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is None:
        return "unset"
    if isinstance(value, tuple):
        value = [one.payload() if isinstance(one, Contract) else one for one in value]
    return f"`{json.dumps(value)}`"


def heartbeats() -> str:
    """The heartbeat of each timeframe."""
    rows = [(f"`{timeframe}`", str(bars)) for timeframe, bars in HEARTBEAT_BARS.items()]
    return table(("timeframe", "own bars between heartbeats"), rows)
