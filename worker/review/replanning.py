"""Judge replanning on demand: a report about a run, the judge's verdict on it, and what its actions would do.

The effect is applied to the lifecycle as it stood at the report's time, rebuilt by a replay, through the same
door as in a run; the run itself stays as it is.

A judge beside a run is asked live, in the run's words, with an account of its own: what it says stands in the
verdict that is delivered, and in no journal. A cassette of the run is neither played nor written.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from agents.judging import evidence_of, judge_of
from schemas.errors import ConfigError
from schemas.evidence_plan import RecommendationEvidence
from schemas.judge import JudgeAction, RefusedAction, ReplanVerdict
from schemas.playbook import PlaybookVersion
from schemas.settings import Settings
from schemas.settings.providers import EXAMPLE, NO_MODEL
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from schemas.vocabulary import VersionState
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.wording import Wordings
from services.ports import Clock
from services.slow_loop.evidence_rows import evidence_rows
from worker.models import Models, check_models
from worker.operations.logs import EventSink
from worker.runs.replay import Rebuilt
from worker.session import Session
from worker.settings import load_settings
from worker.slow_worker.wiring import JudgeModels
from worker.studies.study_models import open_models

JudgeName = Literal["rules", "model"]


@dataclass(frozen=True)
class Effect:
    """What one action did to the rebuilt run.

    Attributes:
        transitions: playbook versions that moved, in order.
        refused: why the lifecycle did not carry it out, where it did not.
        boundaries: symbols whose frozen policy went out of force; they get a boundary at their next close.
    """

    action: JudgeAction
    transitions: tuple[PlaybookVersion, ...] = ()
    refused: RefusedAction | None = None
    boundaries: tuple[str, ...] = ()


async def report_now(rebuilt: Rebuilt) -> tuple[HighLevelReflectionRequest, HighLevelReflectionReport]:
    """The request and the report as of the bar at which the session stands; nothing in it changes."""
    return await rebuilt.session.slow_loop.reflect_now(rebuilt.row)


def demand_model(settings: Settings, environment: Mapping[str, str]) -> None:
    """Refuse a model judge that cannot be asked.

    Raises:
        ConfigError: it has no key, no address, or no price.
    """
    check_models(judging_settings(settings, "model"), environment)


async def ask_judge(
    session: Session, report: HighLevelReflectionReport, judge: JudgeName, environment: Mapping[str, str]
) -> tuple[ReplanVerdict, list[dict[str, Any]]]:
    """The verdict on a report under the playbooks in force; what was read for it, and the calls of a model.

    Raises:
        ConfigError: a model judge without a key.
    """
    settings = judging_settings(session.settings, judge)
    sink = MemorySink()
    journal = JournalWriter(sink)
    rules = None if judge == "model" else Models()
    definitions = tuple(version.definition for version in session.books.reader.active())
    experiments = sum(1 for trial in session.books.lifecycle.shadows() if trial.kind == "experiment")
    request = open_models(
        settings, environment, clock=session.clock, decides=True, given=rules, journal=journal
    )
    async with request as opened:
        wordings = Wordings.of_run(session.bars.symbols, anonymise=settings.llm.anonymise)
        client = judge_of(settings, opened.models.judge, wordings)
        evidence: tuple[RecommendationEvidence, ...] = ()
        if session.kept is not None:
            reader = evidence_of(settings, opened.models.texts, wordings, session.kept)
            evidence = () if reader is None else await reader.read(report, session.journal.events)
        for kind, payload, telemetry in evidence_rows(evidence, report.content_hash[:16]):
            at = report.known_at
            journal.append(kind, ts_event=at, known_at=at, payload=payload, telemetry=telemetry)
        verdict = await client.replan(report, definitions, experiments, evidence)
    await journal.flush()
    return verdict, [_call(row) for row in sink.rows]


def _call(row: JournalRow) -> dict[str, Any]:
    telemetry = json.loads(row.telemetry or "null")
    return {"kind": row.kind, "payload": json.loads(row.payload), "telemetry": telemetry}


def apply_verdict(session: Session, verdict: ReplanVerdict, timeframe: str) -> tuple[Effect, ...]:
    """Apply a verdict to the rebuilt session, action by action, and tell what each did."""
    return tuple(_one(session, verdict, action, timeframe) for action in verdict.actions)


def _one(session: Session, verdict: ReplanVerdict, action: JudgeAction, timeframe: str) -> Effect:
    before = len(session.books.lifecycle.refused)
    transitions = session.books.lifecycle.apply(
        [action],
        report_id=verdict.report_id,
        verdict_id=verdict.content_hash[:16],
        at=session.clock.now,
        timeframe=timeframe,
        proven=session.slow_loop.proven,
    )
    refused = session.books.lifecycle.refused[before:]
    return Effect(action, transitions, refused[0] if refused else None, _retire(session, action, transitions))


def _retire(session: Session, action: JudgeAction, moved: tuple[PlaybookVersion, ...]) -> tuple[str, ...]:
    """As in a run: a replan retires every frozen policy, a new active version those of its playbook."""
    if action.kind == "replan":
        return session.policy_loop.retire_playbook(None)
    names = [version.definition.id for version in moved if version.state is VersionState.ACTIVE]
    return tuple(symbol for name in names for symbol in session.policy_loop.retire_playbook(name))


def judging_settings(settings: Settings, judge: JudgeName) -> Settings:
    """The run's settings with this judge and no other model, asked live; rules plan for the rules.

    The environment names the model of a run that names none.

    Raises:
        ConfigError: neither names one.
    """
    llm = settings.llm
    if judge == "model" and llm.judge_model == NO_MODEL:
        llm = load_settings().settings.llm
        if llm.judge_model == NO_MODEL:
            raise ConfigError(
                f"the run names no model for its judge: set THINKTWICE_LLM__MODEL, like {EXAMPLE}"
            )
    planner = {"judge": "rules"} if (judge, settings.planner.judge) == ("rules", "model") else {}
    return settings.model_copy(
        update={
            "planner": settings.planner.model_copy(update=planner),
            "judge": settings.judge.model_copy(update={"replan": judge}),
            "llm": llm,
            "reflection": settings.reflection.model_copy(update={"mode": "deterministic"}),
            "policy_loop": settings.policy_loop.model_copy(update={"strategist": "rules"}),
            "runtime": settings.runtime.model_copy(update={"llm": "live", "cassette": None}),
        }
    )


@asynccontextmanager
async def judge_models(
    settings: Settings, symbols: Sequence[str], environment: Mapping[str, str], clock: Clock, note: EventSink
) -> AsyncIterator[JudgeModels | None]:
    """The model of the judge and that of its planner; None where rules judge, or where none can be asked.

    Args:
        settings: of the run.
        symbols: of its bars.
        environment: holds the key.
        clock: by which days of the account begin.
        note: told why no model is asked although the settings name one: `judge_without_model`.
    """
    if settings.judge.replan == "rules":
        yield None
        return
    asking = judging_settings(settings, "model")
    try:
        check_models(asking, environment)
    except ConfigError as error:
        note("judge_without_model", {"reason": str(error)})
        yield None
        return
    async with open_models(asking, environment, clock=clock, decides=True) as opened:
        wordings = Wordings.of_run(symbols, anonymise=settings.llm.anonymise)
        yield JudgeModels(opened.models.judge, opened.models.texts, wordings, opened.account.open_event)
