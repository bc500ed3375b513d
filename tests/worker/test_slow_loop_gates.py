"""The gates of the slow loop in running sessions: minima, intervals, overrides, blocked plans, the floor."""

import asyncio
from functools import cache
from typing import Any

import pytest

from schemas.playbook import PlaybookDefinition
from schemas.settings import EnvelopeSettings, HighLevelSettings, Settings
from schemas.vocabulary import OverrideReason
from services.playbooks.loader import load_playbooks
from services.playbooks.measures import alter
from tests.worker.shared_runs import Run, embedded_bars, losing_settings, run_on, slice_run
from tests.worker.test_session_wires import blocked, finished, payloads, plans_changed, session
from tests.worker.trading_hours import in_trading_hours
from worker.feeds.sample_data.worlds import make_world
from worker.session import Session, Timing
from worker.studies.scenarios import PLANTED

DAY = 86_400 * 10**9
NAME = "buys_strength"


def planted(**changes: Any) -> PlaybookDefinition:
    (found,) = load_playbooks(PLANTED)
    return alter(found, **changes)


def others(count: int) -> tuple[PlaybookDefinition, ...]:
    return load_playbooks(None)[:count]


@cache
def planted_world(bars: int, minimum: int = 20, interval_days: int = 7, symbols: int = 6) -> Run:
    settings = losing_settings().model_copy(
        update={"high_level": HighLevelSettings(structural_interval_days=interval_days)}
    )
    world = in_trading_hours(make_world("reverting", seed=3, bars=bars, symbols=symbols))
    return run_on(world, settings, (planted(minimum_episodes=minimum), *others(2)))


def requests(run: Run) -> list[dict[str, Any]]:
    return [request["request"] for request in run.of("high_level_request")]


def test_run_waits_for_the_minimum_of_episodes_in_the_settings() -> None:
    settings = Settings(high_level=HighLevelSettings(minimum_episodes=33))
    patient = run_on(embedded_bars("2003-01-01", "2005-10-31"), settings)
    ordinary = [request["new_episodes"] for request in requests(slice_run())]
    assert 20 <= min(ordinary) < 33
    assert requests(patient)
    assert all(request["new_episodes"] >= 33 for request in requests(patient))
    needed = {skip["facts"]["needed"] for skip in patient.of("slow_skip")}
    assert needed == {33}


def test_run_waits_for_the_minimum_that_a_playbook_asks_for_itself() -> None:
    first = requests(planted_world(500))[0]["new_episodes"]
    own = requests(planted_world(500, minimum=45))
    assert 20 <= first < 45
    assert own
    assert own[0]["new_episodes"] >= 45


def test_run_allows_one_structural_change_in_its_interval_but_for_an_override() -> None:
    days = 365
    run = planted_world(890, interval_days=days, symbols=12)
    query = {payload["request_hash"]: payload["request"] for payload in run.of("high_level_request")}
    reports = {report["report_id"]: query[report["request_hash"]] for report in run.of("high_level_report")}
    last, waited, overridden = None, 0, 0
    for verdict in run.of("replan_verdict"):
        request = reports[verdict["report_id"]]
        allowed = last is None or request["slot"] - last >= days * DAY
        overridden += not allowed and request["structural_override"] is not None
        allowed = allowed or request["structural_override"] is not None
        assert request["structural_allowed"] == allowed
        waited += not allowed
        kinds = {action["kind"] for action in verdict["verdict"]["actions"]}
        assert allowed or kinds <= {"open_experiment"}
        if kinds - {"open_experiment"}:
            last = request["slot"]
    assert last is not None
    assert waited > 0
    assert overridden > 0


def override_of(made: Session) -> OverrideReason | None:
    return made.slow_loop.facts.cadence(made.clock.now, made.clock.now).safety_override


def test_session_tells_the_slow_loop_of_a_breach_and_the_cadence_knows_it() -> None:
    made = session(Settings(envelope=EnvelopeSettings(max_drawdown=0.005)))
    shown = 0

    async def drive() -> None:
        nonlocal shown
        timing = Timing()
        while not shown and not made.engine.done:
            assert override_of(made) is None
            step = made.validate(timing)
            shown = sum(event.kind == "envelope_breach" for event in step.events)
            if shown:
                return
            for boundary in step.boundaries:
                if (evaluation := made.policy_loop.open(boundary)) is not None:
                    await made.policy_loop.think(evaluation)
                    made.policy_loop.close(evaluation)

    asyncio.run(drive())
    assert shown
    assert override_of(made) is OverrideReason.ENVELOPE_BREACH


def test_session_blocked_proposals_become_untraded_signals_of_the_next_request() -> None:
    made = session()
    plans_changed(made, blocked)
    rows = finished(made)
    assert payloads(rows, "order_accepted") == []
    request, report = asyncio.run(made.slow_loop.reflect_now(made.engine.t - 1))
    reasons = [signal.reason for signal in request.untraded_signals]
    assert reasons.count("blocked") > 20
    assert report.untraded["blocked"]["resolved"] > 10


@pytest.mark.parametrize(("others_open", "banned"), [(1, False), (2, True)])
def test_judge_bans_the_last_cell_of_a_playbook_only_above_the_floor(others_open: int, banned: bool) -> None:
    narrow = {
        side: alter(rules, trend=("sideways",), volatility=("mid",))
        for side, rules in planted().eligibility.items()
    }
    world = in_trading_hours(make_world("reverting", seed=3, bars=1_000, symbols=12))
    run = run_on(world, losing_settings(), (planted(eligibility=narrow), *others(others_open)))
    verdicts = [verdict["verdict"] for verdict in run.of("replan_verdict")]
    bans = [event for v in verdicts for event in v["actions"] if event["kind"] == "set_eligibility"]
    refused = {finding["code"] for v in verdicts for finding in v["refused"]}
    assert bool(bans) == banned
    assert ("floor" in refused) == (not banned)
