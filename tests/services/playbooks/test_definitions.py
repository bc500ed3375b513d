"""The embedded playbooks: complete, mirrored, honest in what they expect, and sound in their geometry."""

import re

import numpy as np
import pytest

from schemas.regime import RegimeLabels
from schemas.vocabulary import Structure, Trend, VolatilityBand
from services.playbooks.loader import load_playbooks
from services.playbooks.registry import PlaybookRegistry
from services.playbooks.rendering import KIND_OF_ROLE, render_rules
from trading_core.rules import parse
from trading_core.tick_guard import TickGuard

PLAYBOOKS = load_playbooks()
BOTH = [(item, direction) for item in PLAYBOOKS for direction in ("long", "short")]
NAMES = [f"{item.id}-{direction}" for item, direction in BOTH]


def test_embedded_playbooks_are_the_five_that_the_readme_names():
    assert [item.id for item in PLAYBOOKS] == [
        "channel_breakout",
        "mean_reversion",
        "momentum_continuation",
        "squeeze_breakout",
        "trend_pullback",
    ]


@pytest.mark.parametrize(("playbook", "direction"), BOTH, ids=NAMES)
def test_embedded_rules_use_no_price_constant(playbook, direction):
    # Scale-free: prices and ATRs times any factor leave a boolean rule as it is and scale a price with it.
    random = np.random.default_rng(7)
    rules = render_rules(playbook, direction).model_dump(exclude_none=True)
    for role, text in rules.items():
        values = priced(text, random)
        for factor in (0.01, 1_000.0):
            expected = evaluate(text, values)
            got = evaluate(
                text, {name: v * (factor if is_price(name) else 1.0) for name, v in values.items()}
            )
            if KIND_OF_ROLE[role] == "number":
                assert got == pytest.approx(expected * factor, rel=1e-9)
            else:
                assert got == expected


@pytest.mark.parametrize(("playbook", "direction"), BOTH, ids=NAMES)
def test_embedded_stop_lies_beyond_the_invalidation_and_the_target_pays_the_reward(playbook, direction):
    sign = 1.0 if direction == "long" else -1.0
    random = np.random.default_rng(11)
    for overrides in variants(playbook):
        rules = render_rules(playbook, direction, overrides)
        reward = overrides.get("reward", playbook.parameters["reward"].value)
        for _ in range(20):
            values = priced(rules.stop + rules.target + (rules.invalidation or "") or "", random)
            stop, target = evaluate(rules.stop, values), evaluate(rules.target, values)
            entry = evaluate(rules.entry or "close", values)
            assert (entry - stop) * sign > 0
            assert (target - entry) * sign == pytest.approx(reward * (entry - stop) * sign)
            just_inside = values | {"close": stop + sign * 0.01 * values["atr_14"]}
            assert evaluate(rules.invalidation or "", just_inside), "the invalidation comes before the stop"


@pytest.mark.parametrize(("playbook", "direction"), BOTH, ids=NAMES)
def test_embedded_refinement_lies_between_stop_and_invalidation(playbook, direction):
    rules = render_rules(playbook, direction)
    if rules.refinement is None or playbook.refinement_kind == "limit":
        return
    sign = 1.0 if direction == "long" else -1.0
    random = np.random.default_rng(13)
    for _ in range(50):
        values = priced(rules.stop + rules.refinement + (rules.invalidation or "") or "", random)
        refined = evaluate(rules.refinement, values)
        assert (refined - evaluate(rules.stop, values)) * sign > 0
        assert evaluate(rules.invalidation or "", values | {"close": refined})


@pytest.mark.parametrize(("playbook", "direction"), BOTH, ids=NAMES)
def test_embedded_limit_refinement_is_better_than_the_close_and_keeps_half_of_the_risk(playbook, direction):
    rules = render_rules(playbook, direction)
    if rules.refinement is None or playbook.refinement_kind == "stop":
        return
    sign = 1.0 if direction == "long" else -1.0
    random = np.random.default_rng(13)
    for _ in range(50):
        values = priced(rules.stop + rules.refinement, random)
        better, stop = evaluate(rules.refinement, values), evaluate(rules.stop, values)
        assert (values["close"] - better) * sign > 0
        assert (better - stop) * sign >= 0.5 * (values["close"] - stop) * sign


@pytest.mark.parametrize(("playbook", "direction"), BOTH, ids=NAMES)
def test_embedded_trail_lies_beyond_the_invalidation(playbook, direction):
    rules = render_rules(playbook, direction)
    if rules.trail is None:
        return
    random = np.random.default_rng(17)
    for _ in range(50):
        values = priced(rules.trail + (rules.invalidation or "") or "", random)
        assert evaluate(rules.invalidation or "", values | {"close": evaluate(rules.trail, values)})


def test_embedded_playbooks_use_every_way_to_enter_and_manage():
    used = {item.id: item for item in PLAYBOOKS}
    assert used["squeeze_breakout"].entry_kind == "stop"
    assert used["squeeze_breakout"].break_even_r == 1.0
    assert used["trend_pullback"].refinement_kind == "limit"
    assert (used["mean_reversion"].scale_out_r, used["mean_reversion"].scale_out_share) == (1.0, 0.5)
    trailing = [item.id for item in PLAYBOOKS if item.rules["long"].trail is not None]
    assert trailing == ["channel_breakout", "momentum_continuation"]


def test_two_embedded_playbooks_have_a_refinement():
    assert sum(item.rules["long"].refinement is not None for item in PLAYBOOKS) == 2


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda item: item.id)
def test_embedded_short_rules_mirror_the_long_ones(playbook):
    long, short = (render_rules(playbook, direction) for direction in ("long", "short"))
    for role, text in long.model_dump(exclude_none=True).items():
        assert parse(text).features == {mirror(name) for name in parse(getattr(short, role)).features}, role


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda item: item.id)
def test_embedded_expectation_is_the_driftless_bracket_of_its_reward(playbook):
    # Bracket -1R / +T R of a walk without drift: P(win) = 1/(1+T); 80 % of winners stay above -0.8T/(T+0.2);
    # median best excursion 1R. With the stop at the entry from B R on, P(win) = 1/(1+B) * B/T, and winners
    # have been to their lowest before B. Measured on nothing.
    reward, expected = playbook.parameters["reward"].value, playbook.expectation
    safe = playbook.break_even_r or reward
    assert expected.source == "design"
    assert expected.expectancy_r == 0.0
    assert expected.hit_rate == pytest.approx(safe / (1 + safe) / reward, abs=0.005)
    assert expected.winner_mae_p80_r == pytest.approx(-0.8 * safe / (safe + 0.2), abs=0.005)
    assert expected.mfe_p50_r == 1.0
    assert expected.hold_p90_bars == playbook.horizon_bars
    assert expected.hold_p50_bars == round(0.4 * playbook.horizon_bars)


def test_every_trending_and_quiet_cell_has_at_least_three_embedded_playbooks():
    reader = PlaybookRegistry(PLAYBOOKS, TickGuard(), 0).reader()
    for trend in Trend:
        for volatility in (VolatilityBand.LOW, VolatilityBand.MID):
            labels = RegimeLabels(trend=trend, volatility=volatility, structure=Structure.NEUTRAL)
            assert len({item.id for item, _ in reader.eligible(labels, "1d")}) >= 3, labels.key


def test_no_embedded_playbook_is_eligible_in_extreme_volatility():
    reader = PlaybookRegistry(PLAYBOOKS, TickGuard(), 0).reader()
    for trend in Trend:
        for structure in Structure:
            labels = RegimeLabels(trend=trend, volatility=VolatilityBand.EXTREME, structure=structure)
            assert reader.eligible(labels, "1d") == ()


def variants(playbook):
    yield {}
    for name, parameter in playbook.parameters.items():
        for value in parameter.grid:
            yield {name: value}


def mirror(name: str) -> str:
    pairs = {"highest": "lowest", "lowest": "highest", "high": "low", "low": "high"}
    return re.sub(r"^(highest|lowest|high|low)(?=_|$)", lambda found: pairs[found[1]], name)


def is_price(name: str) -> bool:
    return bool(re.match(r"(open|high|low|close|ema|sma|atr|highest|lowest|true_range|before_)", name))


def priced(text: str, random: np.random.Generator) -> dict[str, float]:
    """Random values of the names in some rule texts: prices near 100, ATRs near 2, the rest in [-3, 3]."""
    names = set(re.findall(r"[a-z][a-z_0-9]*", text)) - {"min", "max", "and", "or", "not", "prev"} | {
        "close",
        "atr_14",
    }
    values = {}
    for name in sorted(names | {f"before_{name}" for name in names}):
        if name.removeprefix("before_").startswith(("atr", "true_range")):
            values[name] = random.uniform(1.0, 3.0)
        elif is_price(name.removeprefix("before_")):
            values[name] = random.uniform(85.0, 115.0)
        else:
            values[name] = random.uniform(-3.0, 3.0)
    return values


def evaluate(text: str, values: dict[str, float]) -> float | bool:
    """A second, independent reading of the rules that playbooks use: Python's own arithmetic on one bar."""
    found: float | bool = eval(
        re.sub(r"prev\((\w+), 1\)", r"before_\1", text), {"min": min, "max": max}, values
    )
    return found
