"""Builders of right plans: a request for each playbook and direction that passes, and ways to spoil it."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reflection import (
    InvariantContext,
    LocalEstimate,
    MemoryCase,
    MemorySummary,
    PolicyLevelReflectionRequest,
)
from schemas.regime import RegimeLabels, RegimeView
from schemas.snapshot import (
    DataWindow,
    ExpectationSummary,
    MemoryBaseRates,
    PolicySnapshot,
    PositionView,
    RiskState,
    SetupCount,
)
from schemas.timeframes import Timeframe
from schemas.vocabulary import Direction, PolicyState
from services.playbooks.loader import load_playbooks
from services.playbooks.rendering import number_text, render_rules, rule_texts
from trading_core.rules import parse

NOW = 1_262_304_000_000_000_000
DAY = 86_400 * 1_000_000_000
SEEN_IN = ("snapshot.risk", "invariants")
CLOSE = 100.0
M = TypeVar("M", bound=BaseModel)

PLAYBOOKS = load_playbooks(None)
PLANS: tuple[tuple[PlaybookDefinition, Direction], ...] = tuple(
    (playbook, direction) for playbook in PLAYBOOKS for direction in sorted(playbook.rules)
)
PLAN_IDS = [f"{playbook.id}-{direction}" for playbook, direction in PLANS]


def playbook_named(playbook_id: str) -> PlaybookDefinition:
    return next(playbook for playbook in PLAYBOOKS if playbook.id == playbook_id)


def right_request(playbook: PlaybookDefinition | None = None, direction: Direction = "long"):
    """A request that passes: a market that suits the playbook and the plan its file describes."""
    chosen = playbook or playbook_named("trend_pullback")
    return PolicyLevelReflectionRequest(
        snapshot=snapshot_for(chosen, direction),
        proposal=proposal_for(chosen, direction),
        playbook=chosen,
        state=PolicyState.IDLE,
        memory=summary(winners=(1.0, 1.2, 0.8), losers=(-1.0,), population=(20, 18), of=chosen.id),
        invariants=InvariantContext(),
    )


def noted_request():
    """A right request about which a second reader is asked: its playbook risks more than the cap."""
    return changed(right_request(), {"invariants.max_risk_fraction": 1e-4})


def on_timeframe(timeframe: Timeframe, request: PolicyLevelReflectionRequest | None = None) -> Any:
    """The request (a right one) with a decision bar of another length; its values stay as they are."""
    request = request or right_request()
    close = request.snapshot.ts_event
    window = changed(request.snapshot.data_window, {"last_label": close})
    bar = {"timeframe": timeframe, "bar_label": close, "data_window": window}
    return changed(request, {"snapshot": changed(request.snapshot, bar)})


def proposal_for(playbook: PlaybookDefinition, direction: Direction) -> PolicyProposal:
    return PolicyProposal(
        playbook_id=playbook.id,
        direction=direction,
        thesis=f"{playbook.title}, {direction}.",
        rationale=f"The picture is that of {playbook.id}; the regime is eligible.",
        activation_window_bars=playbook.activation_window_bars,
        horizon_bars=playbook.horizon_bars,
        conviction=playbook.expectation.hit_rate,
        argues_for=direction,
        **render_rules(playbook, direction).payload(),
        **playbook.terms(),
    )


def snapshot_for(playbook: PlaybookDefinition, direction: Direction) -> PolicySnapshot:
    eligible = playbook.eligibility[direction]
    labels = RegimeLabels(
        trend=eligible.trend[0], volatility=eligible.volatility[0], structure=eligible.structure[0]
    )
    texts = rule_texts(render_rules(playbook, direction)).values()
    names = sorted({name for text in texts for name in parse(text).features} | {"close"})
    return PolicySnapshot(
        symbol="AAA",
        timeframe="1d",
        bar_label=NOW - DAY,
        ts_event=NOW,
        known_at=NOW,
        close=CLOSE,
        events=("heartbeat",),
        state=PolicyState.IDLE,
        regime=RegimeView(labels=labels, fingerprint=(0.5, 0.5, 0.5, 0.5, 0.5)),
        features={name: feature_value(name, direction) for name in names},
        position=None,
        active_policy_id=None,
        risk=RiskState(
            equity=100_000.0,
            cash=100_000.0,
            gross_exposure=0.0,
            drawdown=0.0,
            daily_loss=0.0,
            risk_fraction=0.005,
            halted=False,
            kill_switch=False,
        ),
        base_rates=MemoryBaseRates(population=1_000, winners=500, losers=450),
        expectations=(expected(playbook),),
        setups=(SetupCount(playbook_id=playbook.id, direction=direction, plans=20, armed=8),),
        data_window=DataWindow(first_label=NOW - 500 * DAY, last_label=NOW - DAY, bars=400),
        staleness_bars=0,
    )


def feature_value(name: str, direction: Direction) -> float:
    """A quiet market around a close of 100 that leans the way of the plan; an ATR is 2."""
    sign = 1.0 if direction == "long" else -1.0
    stem, _, rest = name.partition("_")
    fixed = {"open": 99.8, "high": 100.6, "low": 99.4, "close": CLOSE, "volume": 1e6, "true": 2.0}
    if name.endswith("_rank"):
        return 0.5
    if stem in fixed:
        return fixed[stem]
    length = int(rest.split("_")[-1])
    return {
        "sma": CLOSE - sign * 0.05 * length,
        "ema": CLOSE - sign * 0.05 * length,
        "highest": CLOSE + 1.0 + 0.1 * length,
        "lowest": CLOSE - 1.0 - 0.1 * length,
        "atr": 2.0,
        "zscore": sign,
        "trend": sign,
        "rsi": 50.0 + 5.0 * sign,
    }[stem]


def expected(playbook: PlaybookDefinition, **measured: float) -> ExpectationSummary:
    prior = playbook.expectation
    names = ("expectancy_r", "hit_rate", "hold_p50_bars", "hold_p90_bars", "winner_mae_p80_r", "mfe_p50_r")
    values: dict[str, Any] = {name: getattr(prior, name) for name in names} | {"n": 40} | measured
    return ExpectationSummary(
        playbook_id=playbook.id, playbook_version=playbook.version, prior=prior, **values
    )


def summary(
    winners: tuple[float, ...] = (),
    losers: tuple[float, ...] = (),
    population: tuple[int, int] = (20, 18),
    modes: tuple[str, ...] = (),
    losers_nearer: bool = False,
    known_at: int = NOW - DAY,
    of: str = "trend_pullback",
    estimates: tuple[LocalEstimate, ...] = (),
) -> MemorySummary:
    """Retrieved winners and losers by R; distances ascend, winners nearer unless `losers_nearer`."""
    near, far = (0.1, 0.3) if losers_nearer else (0.3, 0.1)
    lost = tuple(_case(f"l{i}", r, near + 0.01 * i, known_at, of) for i, r in enumerate(losers))
    won = tuple(_case(f"w{i}", r, far + 0.01 * i, known_at, of) for i, r in enumerate(winners))
    failed = tuple(_case(f"f{i}", -1.0, 0.2 + 0.01 * i, known_at, of, mode) for i, mode in enumerate(modes))
    rates = MemoryBaseRates(population=sum(population) + 2, winners=population[0], losers=population[1])
    return MemorySummary(
        known_at=max(NOW, known_at),
        winners=won,
        losers=lost,
        failures=failed,
        base_rates=rates,
        estimates=estimates,
    )


def estimate(**changes: Any) -> LocalEstimate:
    """One that says: it is different here, and below zero."""
    values = {"basis": "own", "n": 150, "mean_r": -0.4, "lower_r": -0.7, "upper_r": -0.1}
    return LocalEstimate(**{**values, "departs": 0.9, "below_zero": 0.97, "unseen_r": 0.64, **changes})


def _case(
    name: str, r: float, distance: float, known_at: int, of: str, mode: str | None = None
) -> MemoryCase:
    return MemoryCase(
        episode_id=name,
        symbol="AAA",
        playbook_id=of,
        direction="long",
        r=r,
        distance=distance,
        failure_mode=mode,
        known_at=known_at,
    )


def acting(request: PolicyLevelReflectionRequest) -> PolicyLevelReflectionRequest:
    """The request with a setup, of its playbook too, that is true at this close: levels are those of now."""
    setup = f"close > {number_text(request.snapshot.close / 2)}"
    rules = {way: changed(own, {"setup": setup}) for way, own in request.playbook.rules.items()}
    return changed(request, {"proposal.setup": setup, "playbook.rules": rules})


def account(**values: Any) -> dict[str, Any]:
    """Changes to a request: what snapshot and guardrails both say of the account."""
    return {f"{where}.{name}": value for name, value in values.items() for where in SEEN_IN}


def held(request: PolicyLevelReflectionRequest) -> dict[str, Any]:
    """Changes to a request: the symbol has a position of the plan's direction, as the account shows."""
    snapshot, sign = request.snapshot, 1.0 if request.proposal.direction == "long" else -1.0
    position = PositionView(
        direction=request.proposal.direction,
        quantity=1.0,
        entry_price=snapshot.close,
        entry_label=snapshot.bar_label,
        stop=snapshot.close * (1.0 - 0.1 * sign),
        target=snapshot.close * (1.0 + 0.1 * sign),
        bars_held=0,
        r_now=0.0,
        mae_r=0.0,
        mfe_r=0.0,
        playbook_id=request.playbook.id,
        policy_id="0" * 16,
        thesis=request.proposal.thesis,
    )
    state = PolicyState.HOLD_LOCK
    exposure = account(gross_exposure=snapshot.close / snapshot.risk.equity)
    return {"state": state, "snapshot.state": state, "snapshot.position": position} | exposure


def changed(model: M, changes: dict[str, Any]) -> M:
    """A new model with other values, each part made once; a dot reaches into nested models and mappings."""
    values: dict[str, Any] = {name: getattr(model, name) for name in type(model).model_fields}
    inner: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        first, _, rest = path.partition(".")
        if rest:
            inner.setdefault(first, {})[rest] = value
        else:
            values[first] = value
    for name, found in inner.items():
        part = values[name]
        values[name] = {**part, **found} if isinstance(part, Mapping) else changed(part, found)
    return type(model)(**values)


def codes(findings) -> list[str]:
    return [found.code for found in findings]
