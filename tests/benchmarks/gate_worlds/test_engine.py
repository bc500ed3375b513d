"""Worlds of bars: what their markets do, what is compared, and how its figures are held to their targets."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.gate_worlds.engine import measure
from benchmarks.gate_worlds.engine.__main__ import curve, line_of
from benchmarks.gate_worlds.engine.rows import FOUND, GROUPS, HARMLESS, engine_rows
from benchmarks.gate_worlds.engine.world import PARAMETER, PLAYBOOK, EngineWorld
from benchmarks.gate_worlds.figures import document_of, figures_of
from benchmarks.gate_worlds.runs import ENGINE, KeptParts, gate_hash, measure_rows
from benchmarks.gate_worlds.section import sessions_section
from benchmarks.gate_worlds.table import Row
from schemas.errors import ConfigError
from schemas.settings import GateSettings
from schemas.vocabulary import VersionState
from services.playbooks.lifecycle import PROVEN
from worker.feeds.sample_data.worlds import make_market
from worker.studies.ablation.arms import Arm

GATE = GateSettings()
DAY_NS = 86_400 * 10**9
BARS = 6_000


def market(pull: float = 0.0, **changes: Any) -> Any:
    given: dict[str, Any] = {"seed": 3, "symbols": 4, "timeframe": "4h", "rho": 0.5} | changes
    return make_market(np.full(BARS, pull), **given)


def returns(bars: Any) -> Any:
    return np.diff(np.log(bars.close), axis=0)


def correlation(a: Any, b: Any) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def test_market_without_a_pull_wanders_and_one_with_it_falls_back():
    free, pulled = returns(market()), returns(market(0.12))
    assert abs(correlation(free[1:, 0], free[:-1, 0])) < 0.05
    level = np.log(market(0.12).close[:-1, 0])
    assert correlation(level, pulled[:, 0]) < -0.2
    assert np.log(market(0.12).close).std() < 0.25 * np.log(market().close).std()


def test_symbols_of_a_market_share_a_factor_and_their_volatility_clusters():
    found = returns(market())
    assert 0.35 < correlation(found[:, 0], found[:, 1]) < 0.6
    apart = returns(market(rho=0.0))
    assert abs(correlation(apart[:, 0], apart[:, 1])) < 0.06
    size = np.abs(apart[:, 0])
    assert correlation(size[1:], size[:-1]) > 0.08
    assert 0.004 < found.std() < 0.008


def test_drift_of_a_market_lasts():
    drifting = returns(market(momentum=np.full(BARS, 1.0)))
    assert correlation(drifting[1:, 0], drifting[:-1, 0]) > 0.2


def test_longer_market_begins_with_the_shorter_and_another_seed_is_another_one():
    short = make_market(np.zeros(50), seed=1, symbols=2, timeframe="1h", rho=0.3)
    longer = make_market(np.zeros(80), seed=1, symbols=2, timeframe="1h", rho=0.3)
    other = make_market(np.zeros(50), seed=2, symbols=2, timeframe="1h", rho=0.3)
    assert np.array_equal(longer.close[:50], short.close)
    assert not np.array_equal(other.close, short.close)


@pytest.mark.parametrize("changes", [{"timeframe": "4x"}, {"symbols": 0}, {"rho": 1.0}, {"rho": -0.1}])
def test_market_that_cannot_be_drawn_is_refused(changes):
    with pytest.raises(ConfigError, match="a market needs"):
        market(**changes)


@pytest.mark.parametrize(("timeframe", "days"), [("15m", 10), ("4h", 68), ("1d", 305)])
def test_world_is_as_long_as_its_blocks(timeframe, days):
    """From Wednesday 1 January 2020: ten days; to the Monday after ten weeks; to the end of October."""
    bars = EngineWorld("null", timeframe, blocks=10, symbols=1).draw(1)
    assert (int(bars.close_times[-1]) - int(bars.times[0])) // DAY_NS == days


def test_playbook_begins_on_the_wrong_side_only_where_the_fault_is_planted():
    sides = {
        kind: [
            playbook.parameters[PARAMETER].value
            for right in (False, True)
            for playbook in EngineWorld(kind).playbooks(right=right)
            if playbook.id == PLAYBOOK
        ]
        for kind in ("null", "planted", "turned")
    }
    assert sides == {"null": [1.0, -1.0], "planted": [1.0, -1.0], "turned": [-1.0, 1.0]}


def test_turned_market_falls_back_in_its_first_half_and_drifts_in_its_second():
    world = EngineWorld("turned", blocks=100, symbols=2)
    found = returns(world.draw(5))[:, 0]
    half = len(found) // 2
    level = np.log(world.draw(5).close[:-1, 0])
    assert correlation(level[:half], found[:half]) < -0.15
    late = found[half + 30 :]
    assert correlation(late[1:], late[:-1]) > 0.05


class Ran:
    """A finished session by shape."""

    def __init__(
        self, net: float, sharpe: float | None, r: float | None, versions: tuple[Any, ...] = ()
    ) -> None:
        self.performance = {"net_return": net, "sharpe": sharpe, "expectancy_r": r}
        self.versions = versions
        self.bars = EngineWorld("null", "1d", blocks=6, symbols=1).draw(1)

    def document(self, run_id: str, url: str) -> dict[str, Any]:
        return {"performance": self.performance}


def version(
    state: Any, side: float, since: int, *, reason: str = "", action: str | None = "a", name: str = PLAYBOOK
) -> Any:
    parameters = {PARAMETER: SimpleNamespace(value=side)}
    definition = SimpleNamespace(id=name, parameters=parameters)
    return SimpleNamespace(definition=definition, state=state, since=since, reason=reason, action_id=action)


def compared(monkeypatch: pytest.MonkeyPatch, kind: str, **ran: Ran) -> tuple[dict[str, Any], list[Any]]:
    """The outcome of faked sessions, and which were run."""
    questions = []

    def fake(world: Any, bars: Any, gate: Any, arm: Arm, *, right: bool = False) -> Ran:
        questions.append((arm, right))
        return ran["right" if right else "on" if arm is Arm.DETERMINISTIC else "off"]

    monkeypatch.setattr(measure, "_run", fake)
    world = EngineWorld(kind, "1d", blocks=6, symbols=1)
    return measure.on_and_off(world, GATE, [1, 2, 3]), questions


def test_planted_world_compares_on_with_off_and_with_the_right_side(monkeypatch):
    start = int(EngineWorld("null", "1d", blocks=6, symbols=1).draw(1).times[0])
    versions = (
        version(VersionState.ACTIVE, 1.0, start, action=None),
        version(VersionState.SHADOW, -1.0, start + 40 * DAY_NS),
        version(VersionState.ACTIVE, -1.0, start + 90 * DAY_NS, reason=PROVEN),
    )
    on, off, right = Ran(0.5, 2.0, 0.2, versions), Ran(-0.5, -1.0, -0.3), Ran(1.0, 3.0, 0.4)
    found, questions = compared(monkeypatch, "planted", on=on, off=off, right=right)
    assert questions == [(Arm.DETERMINISTIC, False), (Arm.FAST_ONLY, False), (Arm.FAST_ONLY, True)]
    assert found["log return"] == pytest.approx(np.log(1.5 / 0.5))
    assert found["fault"] == pytest.approx(np.log(2.0 / 0.5))
    assert (found["sharpe"], found["R"]) == (3.0, 0.5)
    assert (found["promoted"], found["harm"], found["acted"]) == (1.0, 0.0, 1.0)
    assert (found["blocks after"], found["blocks until"]) == (4.0, 2.0)  # March to June, January to March


@pytest.mark.parametrize(
    "one",
    [
        version(VersionState.SHADOW, -1.0, 1, reason=PROVEN),
        version(VersionState.ACTIVE, -1.0, 1, reason="rolled back"),
        version(VersionState.ACTIVE, 1.0, 1, reason=PROVEN),
        version(VersionState.ACTIVE, -1.0, 1, reason=PROVEN, name="channel_breakout"),
    ],
)
def test_only_the_right_side_proven_in_shadow_and_in_force_counts_as_promoted(monkeypatch, one):
    found, _ = compared(
        monkeypatch,
        "planted",
        on=Ran(0.0, None, None, (one,)),
        off=Ran(0.0, None, None),
        right=Ran(0.0, None, None),
    )
    assert found["promoted"] == 0.0
    assert found["sharpe"] is None


@pytest.mark.parametrize(("net", "harm"), [(-0.02, 1.0), (-0.005, 0.0), (0.02, 0.0), (-1.5, 1.0)])
def test_world_without_a_fault_counts_what_the_slow_loop_made_worse(monkeypatch, net, harm):
    found, request = compared(monkeypatch, "null", on=Ran(net, 0.0, 0.0), off=Ran(0.0, 0.0, 0.0))
    assert len(request) == 2
    assert (found["harm"], found["fault"], found["acted"], found["blocks after"]) == (harm, None, 0.0, None)


def test_curve_goes_from_slight_faults_to_none_and_counts_what_was_won_back():
    worlds = curve((0.02, 0.12), "4h")
    assert [(world.kind, world.pull) for world in worlds[:2]] == [("planted", 0.02), ("planted", 0.12)]
    assert worlds[2].kind == "null"
    found: list[Any] = [
        {"blocks until": 90.0, "harm": 0.0, "log return": 0.3, "fault": 0.5},
        {"blocks until": 140.0, "harm": 0.0, "log return": 0.0, "fault": 0.5},
        {"blocks until": None, "harm": 1.0, "log return": -0.1, "fault": 0.0},
    ]
    assert line_of(worlds[0], found) == (
        "4h planted 0.02: used within 120 blocks 1, by the end 2 of 3; fault +0.333, won back 20%; "
        "gain +0.067; harmed 1 of 3"
    )
    assert line_of(worlds[2], found).startswith("4h null: gain +0.067")


def test_sessions_on_the_same_bars_differ_by_the_slow_loop_alone():
    """Four weeks are too short for any action, so on and off come to the same."""
    row = Row("no harm", ENGINE, EngineWorld("null", blocks=4, symbols=1), (), part=1)
    (columns,) = measure_rows(
        [row], 2, 1, GATE, 1, KeptParts(None, 1, GATE, engine=True), lambda done, all_: None
    )
    assert columns["log return"] == [0.0, 0.0]
    assert columns["harm"] == columns["acted"] == [0.0, 0.0]


def row_of(kind: str = "planted") -> Row:
    return next(row for row in engine_rows() if row.world.kind == kind)


def columns_of(
    gained: list[float], fault: list[float | None], promoted: list[float | None]
) -> dict[str, Any]:
    n = len(gained)
    return {
        "promoted": promoted,
        "harm": [float(value < -0.01) for value in gained],
        "blocks after": [90.0] * n,
        "log return": gained,
        "sharpe": gained,
        "R": gained,
        "fault": fault,
    }


def test_difference_holds_where_all_of_its_interval_lies_beyond_its_target():
    found = figures_of(row_of(), columns_of([0.4, 0.5, 0.6], [1.0] * 3, [1.0] * 3))
    gained, share = found["differences"]["log return"], found["differences"]["share"]
    reach = 4.302653 * 0.1 / np.sqrt(3.0)
    assert (gained["mean"], gained["lower"], gained["upper"]) == pytest.approx(
        (0.5, 0.5 - reach, 0.5 + reach), abs=1e-5
    )
    assert gained["holds"]
    assert share["holds"]
    assert share["mean"] == pytest.approx(0.5)
    spread = figures_of(row_of(), columns_of([-0.4, 0.5, 1.0], [2.0] * 3, [1.0] * 3))
    assert not spread["differences"]["log return"]["holds"]
    assert not spread["differences"]["share"]["holds"]
    assert figures_of(row_of(), columns_of([0.4], [1.0], [1.0]))["differences"]["log return"]["holds"] is None


def test_document_counts_targets_of_differences_and_names_those_that_miss():
    rows = [row_of(), row_of("null")]
    planted = columns_of([-0.4, 0.5, 1.0], [2.0] * 3, [0.0, 0.0, 0.0])
    null = columns_of([0.0, 0.0, -0.5], [None] * 3, [0.0] * 3)
    document = document_of(rows, [planted, null], 3, 1, "hash")
    assert document["targets"] == len(FOUND) + len(HARMLESS)
    missed = [(item["group"], item["figure"]) for item in document["broken"]]
    assert missed == [
        ("planted fault", "promoted"),
        ("planted fault", "log return"),
        ("planted fault", "share"),
    ]
    text = sessions_section([document])
    assert "log return in planted, 15m" in text
    assert "(> 0, MISSED)" in text
    assert document["worst"] is None


def test_every_promised_timeframe_and_both_harmless_worlds_have_a_row():
    rows: Any = engine_rows()
    assert {row.group for row in rows} == set(GROUPS)
    assert [row.world.timeframe for row in rows if row.targets == FOUND] == ["15m", "1h", "4h", "1d"]
    assert [row.world.kind for row in rows if row.targets == HARMLESS] == ["null", "turned"]
    assert all((row.measure, row.part) == (ENGINE, 1) for row in rows)


def test_parts_of_sessions_are_kept_apart_from_those_of_the_gate(tmp_path):
    """A session depends on more source than the gate does."""
    KeptParts(tmp_path / "kept", 1, GATE)
    assert gate_hash(GATE) != gate_hash(GATE, engine=True)
    with pytest.raises(
        ConfigError, match="with of 'drawn worlds', this is 'whole sessions': their parts are kept in files"
    ):
        KeptParts(tmp_path / "kept", 1, GATE, engine=True)
