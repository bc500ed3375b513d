"""The five human verification scenarios of the dual-reflection runbook, as runs that print their evidence.

Each one drives the same session as a backtest and looks at counters, artifacts and verdicts that came out
of it; none of them plants a result. `thinktwice scenarios` prints them, and the tests assert them.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from operator import sub
from pathlib import Path
from typing import Any, Final

from schemas.errors import FreezeRefused, InvariantViolation
from schemas.judge import BoundaryVerdict
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.slow_reflection import HighLevelReflectionReport, Recommendation
from schemas.vocabulary import EvidenceGrade, FindingClass, JudgeDecision, RecommendedAction, ReflectionStatus
from services.high_level.recommendations import gain_is_proven
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.loader import load_playbooks
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.policy_loop.freeze import ApprovedPlan, freeze
from services.ports import Plan, PlanRound
from trading_core.bars import BarSeries
from trading_core.trigger_engine import Advance
from worker.bootstrap import assemble
from worker.feeds import sample_data
from worker.feeds.sample_data import load_embedded_bars
from worker.feeds.sample_data.worlds import make_world
from worker.runs.run_result import tick_validation
from worker.session import Session, Timing

PLANTED: Final = Path(str(sample_data.__file__)).parent / "planted"
BESIDE: Final = ("channel_breakout", "mean_reversion")  # embedded ones that trade beside it
FROM, TO = "2003-01-01", "2005-06-30"


@dataclass(frozen=True)
class ScenarioResult:
    """One scenario: what was asked, whether it held, and what was seen."""

    title: str
    passed: bool
    evidence: list[str]


def run_scenarios() -> list[ScenarioResult]:
    """All five, in the order of the runbook."""
    return [asyncio.run(scenario()) for scenario in SCENARIOS]


def embedded_session(settings: Settings) -> Session:
    """A session over two and a half years of the embedded bars, not yet begun."""
    return session_on(settings, load_embedded_bars(start=FROM, end=TO))


def session_on(
    settings: Settings, bars: BarSeries, definitions: tuple[PlaybookDefinition, ...] | None = None
) -> Session:
    """A session whose journal stays in memory."""
    session = assemble(settings, bars, JournalWriter(MemorySink(), 1_000_000), definitions)
    session.begin()
    return session


def planted_books() -> tuple[PlaybookDefinition, ...]:
    """The playbook with a planted fault, and the embedded ones beside it."""
    return (
        *load_playbooks(PLANTED),
        *(playbook for playbook in load_playbooks(None) if playbook.id in BESIDE),
    )


async def only_tick_validation_between_policy_events() -> ScenarioResult:
    """1. Repeated bars: tick validation is all that runs; reads and writes happen at boundaries only."""
    session = embedded_session(Settings())
    advance, inside = session.engine.advance, Counter[str]()

    def count_seen() -> tuple[int, int, int]:
        memory, counters = session.experience.memory, session.policy_loop.counters
        return memory.reads, len(session.books.registry.history()), counters.evaluations

    def watch(until: int | None = None) -> Advance:
        before = count_seen()
        step = advance(until)
        after = count_seen()
        inside.update(
            dict(
                zip(("memory reads", "playbook writes", "evaluations"), map(sub, after, before), strict=True)
            )
        )
        return step

    session.engine.advance = watch  # type: ignore[method-assign]
    await to_the_end(session)
    result = tick_validation(session)
    raised = False
    with session.guard.tick_path():
        try:
            session.experience.memory.reader().base_rates(session.clock.now)
        except InvariantViolation:
            raised = True
    forbidden = (result.llm_calls, result.memory_reads, result.policy_writes)
    complete = result.bars_validated == session.bars.bar_count
    return ScenarioResult(
        "Repeated bars run deterministic tick validation only",
        complete
        and raised
        and not any(inside.values())
        and forbidden == (0, 0, 0)
        and session.experience.memory.reads > 0,
        [
            f"bars validated: {result.bars_validated} of {session.bars.bar_count}, events {result.events}",
            f"while bars were validated: {dict(inside)}; attempts the guard had to refuse: {sum(forbidden)}",
            f"at boundaries: {session.experience.memory.reads} memory reads, "
            f"{session.policy_loop.counters.evaluations} evaluations",
            f"a memory read forced into the tick path raised: {raised}",
        ],
    )


async def to_the_end(session: Session) -> None:
    """Step a session through all its bars."""
    timing = Timing()
    while not session.engine.done:
        await session.step(timing)


async def first_passing_plan(session: Session) -> tuple[Plan, PlanRound]:
    """Step until the provider has passed a proposal; that plan and its last round."""
    plans: list[Plan] = []
    provider = session.policy_loop.provider
    provide = provider.provide

    async def record(*args: object, **named: object) -> Plan:
        plan = await provide(*args, **named)  # type: ignore[arg-type]
        plans.append(plan)
        return plan

    provider.provide = record  # type: ignore[method-assign]
    timing = Timing()
    while not session.engine.done:
        await session.step(timing)
        for plan in plans:
            if plan.end == "passed" and plan.last.request is not None:
                return plan, plan.last
        plans.clear()
    raise InvariantViolation("no proposal passed on the embedded bars: the scenario has nothing to change")


async def inconsistent_plan_is_refused() -> ScenarioResult:
    """2. A plan whose stop contradicts its direction: revise or block, and freeze refuses it."""
    session = embedded_session(Settings())
    _, good = await first_passing_plan(session)
    request = good.request
    if request is None:
        raise InvariantViolation("a passed round has no request")
    proposal = request.proposal
    wrong = proposal.model_copy(update={"stop": proposal.target, "target": proposal.stop})
    question = request.model_copy(update={"proposal": wrong})
    result = await PolicyLevelReflectionService(session.settings.reflection).reflect(
        question, source="scenario"
    )
    verdict = BoundaryVerdict(
        decision=JudgeDecision.APPROVE,
        finding_class=FindingClass.NONE,
        reason="a judge that was fooled",
        snapshot_hash=question.snapshot.content_hash,
        proposal_hash=wrong.content_hash,
        reflection_hash=result.content_hash,
    )
    refusal = ""
    try:
        answer = good.answer.model_copy(update={"proposal": wrong})
        fooled = ApprovedPlan(PlanRound(answer, question, result), verdict)
        freeze(fooled, question.snapshot, question.playbook)
    except FreezeRefused as error:
        refusal = str(error)
    codes = [f"{finding.code} ({finding.severity})" for finding in result.findings]
    passed = result.status is not ReflectionStatus.PASS and bool(refusal)
    return ScenarioResult(
        "An inconsistent plan is sent back or blocked",
        passed,
        [
            f"{proposal.direction} {proposal.playbook_id} with stop and target exchanged",
            f"status: {result.status}; findings: {', '.join(codes)}",
            f"freeze refused it even with an approving verdict: {refusal}",
        ],
    )


async def one_window_is_reflected_once() -> ScenarioResult:
    """3. Bars within one policy window: neither reflection nor judge runs again until an event fires."""
    session = embedded_session(Settings())
    timing, quiet, reruns, fired = Timing(), 0, 0, 0
    counters = session.policy_loop.counters
    while not session.engine.done:
        before = (sum(counters.reflections.values()), sum(counters.decisions.values()), counters.evaluations)
        events = sum(counters.events.values())
        bars = session.bars_validated
        await session.step(timing)
        after = (sum(counters.reflections.values()), sum(counters.decisions.values()), counters.evaluations)
        if sum(counters.events.values()) == events:
            quiet += session.bars_validated - bars
            reruns += after != before
        else:
            fired += 1
    share = counters.evaluations / session.bars_validated
    return ScenarioResult(
        "Reflection and judge run once per policy event",
        reruns == 0
        and quiet > 0
        and 0 < counters.evaluations <= sum(counters.events.values())
        and share < 1 / 3,
        [
            f"steps with a policy event: {fired}; bars in steps without one: {quiet}; "
            f"reruns in those: {reruns}",
            f"evaluations: {counters.evaluations} on {session.bars_validated} bars ({share:.1%})",
            f"policy events skipped with a reason: {dict(sorted(counters.skips.items()))}",
        ],
    )


async def too_few_samples_stay_monitor_only() -> ScenarioResult:
    """4. A forced reflection on fewer than the minimum: `insufficient_sample`, nothing structural."""
    session = embedded_session(Settings())
    timing = Timing()
    while not session.engine.done and len(session.slow_loop.facts.episodes) < 12:
        await session.step(timing)
    skips = dict(sorted(session.slow_loop.counters.skips.items()))
    _, report = await session.slow_loop.reflect_now(session.engine.t - 1)
    actions = sorted({str(recommendation.action) for recommendation in report.recommendations} or {"none"})
    grades = sorted({str(cluster.grade) for cluster in report.clusters})
    passed = (
        report.insufficient_sample
        and report.n_episodes < session.settings.high_level.minimum_episodes
        and all(recommendation.action is RecommendedAction.HOLD for recommendation in report.recommendations)
        and set(grades) == {str(EvidenceGrade.INSUFFICIENT_SAMPLE)}
        and skips.get("insufficient_episodes", 0) > 0
    )
    return ScenarioResult(
        "Too few samples give monitoring findings only",
        passed,
        [
            f"slots skipped before: {skips}",
            f"forced report on {report.n_episodes} episodes: "
            f"insufficient_sample={report.insufficient_sample}",
            f"grades: {', '.join(grades)}; recommended actions: {', '.join(actions)}",
        ],
    )


def experiments_behind(
    changes: Sequence[Recommendation], report: HighLevelReflectionReport
) -> list[dict[str, Any]]:
    """What the experiments have shown that try just what some changes of a report ask for."""
    questions = {
        (change.playbook_id, change.change.get("parameter"), change.change.get("value")) for change in changes
    }
    return [
        shadow_trial
        for shadow_trial in report.shadow_trials
        if shadow_trial["kind"] == "experiment"
        and (shadow_trial["playbook_id"], shadow_trial["parameter"], shadow_trial["value"]) in questions
    ]


async def enough_samples_give_a_gated_report() -> ScenarioResult:
    """5. Enough samples on schedule: a batch report with drift findings and gated recommendations.

    The account trades the planted fault too little to prove its loss: the fast loop stops most of it. What
    the report may change rests on an experiment, whose trades on paper have to prove a gain.
    """
    world = make_world("reverting", seed=6, bars=2_000, symbols=6)
    session = session_on(Settings(), world, planted_books())
    timing = Timing()
    slow, settings = session.slow_loop, session.settings
    while not session.engine.done and not slow.counters.recommendations["policy_adjust"]:
        await session.step(timing)
    report = slow.last_report
    if report is None:
        return ScenarioResult("Enough samples give a gated batch report", False, ["no report"])
    structural = [
        recommendation
        for recommendation in report.recommendations
        if recommendation.action is RecommendedAction.POLICY_ADJUST
    ]
    tried = experiments_behind(structural, report)
    losing = [
        cluster
        for cluster in report.clusters
        if cluster.regime is None and cluster.playbook_id in {trial["playbook_id"] for trial in tried}
    ]
    passed = (
        report.n_episodes >= settings.high_level.minimum_episodes
        and bool(report.drift_findings)
        and bool(structural)
        and all(recommendation.grade is EvidenceGrade.SIGNIFICANT for recommendation in structural)
        and len(tried) == len(structural)
        and all(gain_is_proven(shadow, settings.judge.promotion_minimum_trades) for shadow in tried)
    )
    return ScenarioResult(
        "Enough samples give a gated batch report",
        passed,
        [
            f"reports so far: {slow.counters.runs}; "
            f"slots skipped: {dict(sorted(slow.counters.skips.items()))}",
            f"n_episodes: {report.n_episodes}; drift findings: {list(report.drift_findings)[:3]}",
            *(
                f"{cluster.playbook_id} on the account: n={cluster.n}, mean {cluster.mean_r:.2f}R, "
                f"E={cluster.e_value:.3g}, family of {cluster.family_size}, grade {cluster.grade}"
                for cluster in losing
            ),
            *(
                f"{shadow['playbook_id']} with {shadow['parameter']} {shadow['value']:g} on paper: "
                f"n={shadow['n']}, mean {shadow['mean_r']:.2f}R, "
                f"E={shadow['e_value']:.3g} of {shadow['e_needed']:.3g} needed"
                for shadow in tried
            ),
            f"recommendations: {[f'{advice.action} {advice.change}' for advice in structural]}",
            f"judge: {dict(sorted(slow.counters.replans.items()))}, "
            f"actions {dict(sorted(slow.counters.applied.items()))}",
        ],
    )


SCENARIOS: Final[tuple[Callable[[], Coroutine[Any, Any, ScenarioResult]], ...]] = (
    only_tick_validation_between_policy_events,
    inconsistent_plan_is_refused,
    one_window_is_reflected_once,
    too_few_samples_stay_monitor_only,
    enough_samples_give_a_gated_report,
)
