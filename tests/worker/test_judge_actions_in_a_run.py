"""Each of the judge's six actions in a running backtest: what is traded, or tried, is other from then on."""

import asyncio
import json
from functools import cache
from types import SimpleNamespace
from typing import Any

from schemas.judge import JudgeAction, ReplanVerdict
from schemas.playbook import Parameter, PlaybookDefinition
from schemas.settings import HighLevelSettings
from schemas.slow_reflection import HighLevelReflectionReport
from schemas.vocabulary import RecommendedAction
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.measures import alter
from services.slow_loop.loop_facts import LoopFacts
from services.slow_loop.past_runs import PastRun
from tests.worker.planted_store import definitions
from tests.worker.shared_runs import losing_settings, played
from worker.bootstrap import assemble
from worker.feeds.sample_data.worlds import make_world
from worker.session import Timing

NAME, CELL = "buys_strength", "sideways/mid"
BAR = 4 * 3_600 * 10**9
WEEK = 7 * 24 * 3_600 * 10**9


class Judge:
    """Answers the first report with one action, every other one with hold."""

    def __init__(self, inner: Any, action: JudgeAction | None) -> None:
        self.inner = inner
        self.action = action

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def replan(self, report: HighLevelReflectionReport, *rest: Any) -> ReplanVerdict:
        actions, self.action = (() if self.action is None else (self.action,)), None
        return ReplanVerdict(
            decision=RecommendedAction.HOLD,
            report_id=report.content_hash[:16],
            actions=actions,
            reason="scripted",
            known_at=report.known_at,
        )


class Acted:
    """A run on the planted world whose judge carried out one action; `at` is when."""

    def __init__(self, action: JudgeAction | None) -> None:
        sink = MemorySink()
        world = make_world("reverting", seed=3, bars=420, symbols=6)
        made = assemble(losing_settings(), world, JournalWriter(sink), books())
        made.slow_loop._judge = Judge(made.slow_loop._judge, action)
        made.begin()
        played(made)
        assert made.slow_loop.counters.errors == 0
        self.structural = made.slow_loop.facts.cadence(made.clock.now, made.clock.now).last_structural
        self.rows: list[JournalRow] = sink.rows
        self.at = next(row.known_at for row in self.rows if row.kind == "replan_verdict")

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Payloads after the verdict."""
        return [json.loads(row.payload) for row in self.rows if row.kind == kind and row.known_at > self.at]

    def frozen(self) -> list[dict[str, Any]]:
        """Policies of the playbook that were frozen after the verdict."""
        return [
            frozen["policy"] for frozen in self.of("policy_frozen") if frozen["policy"]["playbook_id"] == NAME
        ]

    def states(self) -> list[tuple[int, str]]:
        """Versions that moved with or after the verdict."""
        rows = [row for row in self.rows if row.kind == "playbook_version" and row.known_at >= self.at]
        return [
            (version["version"], version["state"])
            for version in map(json.loads, (row.payload for row in rows))
        ]


@cache
def books() -> tuple[PlaybookDefinition, ...]:
    """The planted playbook with an invalidation of its own on a grid, and the others."""
    planted, *others = definitions()
    rules = planted.rules["long"]
    loose = alter(rules, invalidation="close < ema_3 - {give} * atr_14")
    give = Parameter(value=1.5, grid=(0.25, 1.5), role="invalidation")
    return (
        alter(planted, rules={"long": loose}, parameters={**planted.parameters, "give": give}),
        *others,
    )


@cache
def held() -> Acted:
    return Acted(None)


@cache
def acted(kind: Any, **fields: Any) -> Acted:
    made = Acted(JudgeAction(kind=kind, playbook_id=NAME, reason="scripted", **fields))
    assert made.at == held().at
    assert held().states() == []
    return made


def shadow_exits(made: Acted) -> list[str]:
    return [episode["episode"]["exit_reason"] for episode in made.of("shadow_episode")]


def test_set_eligibility_keeps_the_playbook_out_of_the_banned_cell_and_watches_it_on_paper() -> None:
    made = acted("set_eligibility", regime=CELL, eligible=False, life_blocks=20)
    assert made.states() == [(1, "retired"), (2, "active")]
    assert CELL in {entry["regime_key"] for entry in held().frozen()}
    assert CELL not in {entry["regime_key"] for entry in made.frozen()}
    assert {entry["playbook_version"] for entry in made.frozen()} == {2}
    watched = made.of("shadow_episode")
    assert {(row["kind"], row["episode"]["regime"]) for row in watched} == {("banned_cell", CELL)}


def test_set_eligibility_is_renewed_at_the_end_of_its_life_and_changes_no_version() -> None:
    made = acted("set_eligibility", regime=CELL, eligible=False, life_blocks=1)
    assert made.states() == [(1, "retired"), (2, "active")]
    (renewed,) = made.of("measure_renewed")
    (banned,) = [
        episode
        for episode in (json.loads(row.payload) for row in made.rows if row.kind == "playbook_version")
        if episode["playbook_id"] == NAME and episode["version"] == 2
    ]
    assert (renewed["playbook_id"], renewed["version"]) == (NAME, 2)
    assert renewed["version_hash"] == banned["version_hash"]
    assert renewed["measure"] == f"ban of {CELL} long"
    assert renewed["since"] == made.at
    assert renewed["until"] == renewed["expires_at"] == banned["expires_at"] + 26 * WEEK
    assert renewed["shown"]["n"] > 0
    assert renewed["shown"]["e_needed"] == 40.0
    assert CELL not in {entry["regime_key"] for entry in made.frozen()}
    epochs = [request["request"]["epochs"] for request in made.of("high_level_request")]
    assert {epoch[NAME] for epoch in epochs} == {0}, "a ban leaves the evidence of the other cells as it is"
    assert {epoch[f"{NAME}|*"] for epoch in epochs} == {1}, "and a renewal changes nothing for all together"


def test_set_risk_fraction_halves_what_the_next_orders_put_at_risk() -> None:
    made = acted("set_risk_fraction", value=0.0025, lowers_exposure=True)
    risked = {}
    for name, run in (("held", held()), ("made", made)):
        orders = [order for order in run.of("order_accepted") if order["playbook_id"] == NAME]
        frozen = {
            policy["policy_id"]
            for policy in run.of("policy_frozen")
            if policy["policy"]["playbook_id"] == NAME
        }
        risked[name] = [
            order["planned_risk"] * order["quantity"] for order in orders if order["policy_id"] in frozen
        ]
    assert {entry["risk_fraction"] for entry in made.frozen()} == {0.0025}
    assert len(risked["made"]) > 3
    assert max(risked["made"]) < 260.0 < min(risked["held"][:3])


def test_policies_of_a_replaced_version_go_out_of_force_without_a_replan() -> None:
    made = acted("set_risk_fraction", value=0.0025, lowers_exposure=True)

    def armed_later(run: Acted) -> list[dict[str, Any]]:
        before = {
            policy["policy_id"]
            for row in run.rows
            if row.kind == "policy_frozen" and row.known_at <= run.at
            for policy in [json.loads(row.payload)]
            if policy["policy"]["playbook_id"] == NAME
        }
        return [thesis for thesis in run.of("thesis_armed") if thesis["policy_id"] in before]

    assert armed_later(held()), "some of them are in force when the version is replaced"
    assert armed_later(made) == []


def test_experiment_does_not_use_up_the_structural_change_of_its_week() -> None:
    action = JudgeAction(
        kind="open_experiment", playbook_id=NAME, parameter="side", value=1.0, life_blocks=9, reason="w"
    )
    both = (action, alter(action, kind="replan", parameter=None, value=None, life_blocks=None))
    uses_up: Any = vars(PastRun)["changes_structure"]
    found = [uses_up.func(SimpleNamespace(done=done)) for done in ((), (action,), both)]
    assert found == [False, False, True]
    run = acted("open_experiment", parameter="side", value=1.0, life_blocks=6)
    assert run.structural is None, "the next report may change something"
    assert acted("set_risk_fraction", value=0.0025, lowers_exposure=True).structural is not None


def test_change_that_the_run_refuses_does_not_use_up_the_structural_change_of_its_week() -> None:
    same = books()[0].risk_fraction
    run = acted("set_risk_fraction", value=same)
    assert [json.loads(row.payload)["code"] for row in run.rows if row.kind == "action_refused"] == [
        "no_change"
    ]
    assert run.structural is None
    assert last_structural(run) is None, "nor for a worker that reads the journal"
    changed = acted("set_risk_fraction", value=0.0025, lowers_exposure=True)
    assert last_structural(changed) == changed.structural is not None


def last_structural(run: Acted) -> int | None:
    facts = LoopFacts(losing_settings())
    for row in run.rows:
        facts.add(row)
    end = run.rows[-1].known_at
    return facts.cadence(end, end).last_structural


def test_set_threshold_trades_the_other_value_on_paper_only() -> None:
    made = acted("set_threshold", parameter="side", value=-1.0)
    assert made.states() == [(2, "candidate"), (2, "shadow")]
    traded = made.of("shadow_episode")
    assert {(row["kind"], row["episode"]["playbook_version"]) for row in traded} == {("candidate", 2)}
    assert all(plan["proposal"]["setup"].startswith("1 * zscore_20") for plan in made.frozen())


def test_set_invalidation_trades_the_other_exit_on_paper_only() -> None:
    made = acted("set_invalidation", parameter="give", value=0.25)
    assert made.states() == [(2, "candidate"), (2, "shadow")]
    loose = acted("open_experiment", parameter="side", value=1.0, life_blocks=40)
    assert "invalidation" in shadow_exits(made)
    assert shadow_exits(made).count("invalidation") > shadow_exits(loose).count("invalidation")
    assert {plan["proposal"]["invalidation"] for plan in made.frozen()} == {"close < ema_3 - 1.5 * atr_14"}


def test_open_experiment_trades_on_paper_until_its_end_and_never_becomes_active() -> None:
    made = acted("open_experiment", parameter="side", value=-1.0, life_blocks=1)
    assert made.states() == [(2, "candidate"), (2, "shadow"), (2, "expired")]
    ended = [version for version in made.of("playbook_version") if version["state"] == "expired"]
    assert WEEK <= ended[0]["since"] - made.at < 2 * WEEK + BAR
    assert {episode["kind"] for episode in made.of("shadow_episode")} == {"experiment"}


def test_replan_retires_every_frozen_policy_and_opens_a_boundary_at_the_next_close() -> None:
    made = acted("replan")
    assert made.states() == []
    opened = [
        (row.known_at, row.symbol)
        for row in made.rows
        if '"replan"' in row.payload and row.kind == "policy_event"
    ]
    assert {at for at, _ in opened[:2]} == {made.at + BAR}
    quiet = [row for row in held().rows if '"replan"' in row.payload and row.kind == "policy_event"]
    assert quiet == []
    fresh = [row for row in made.rows if row.kind == "policy_frozen" and row.known_at == made.at + BAR]
    assert fresh


def test_replan_now_reflects_out_of_turn_and_carries_out_what_the_judge_decides() -> None:
    sink = MemorySink()
    world = make_world("reverting", seed=3, bars=420, symbols=6)
    made = assemble(losing_settings(), world, JournalWriter(sink), books())
    made.slow_loop._judge = Judge(
        made.slow_loop._judge,
        JudgeAction(
            kind="set_risk_fraction", playbook_id=NAME, value=0.0025, lowers_exposure=True, reason="now"
        ),
    )
    made.begin()

    async def drive() -> ReplanVerdict | None:
        timing = Timing()
        while made.engine.t < 200:
            await made.step(timing, end=200)
        text = await made.slow_loop.replan_now(made.engine.t - 1)
        while made.engine.t < 260:
            await made.step(timing, end=260)
        await made.journal.flush()
        return text

    reply = asyncio.run(drive())
    now = int(world.close_times[199])
    at = [row.kind for row in sink.rows if row.known_at == now]
    shown = [
        "high_level_request",
        "high_level_report",
        "replan_verdict",
        "playbook_version",
        "playbook_version",
    ]
    assert at[-5:] == shown
    assert reply is not None
    assert reply.known_at == now
    risks = {
        json.loads(row.payload)["policy"]["risk_fraction"]
        for row in sink.rows
        if row.kind == "policy_frozen" and row.known_at > now and NAME in row.payload
    }
    assert risks == {0.0025}


def test_replan_now_of_a_slow_loop_that_is_switched_off_does_nothing() -> None:
    off = losing_settings().model_copy(update={"high_level": HighLevelSettings(enabled=False)})
    made = assemble(
        off, make_world("reverting", seed=3, bars=150, symbols=1), JournalWriter(MemorySink()), books()
    )
    made.begin()
    rows = made.journal.events
    assert asyncio.run(made.slow_loop.replan_now(100)) is None
    assert made.journal.events == rows
