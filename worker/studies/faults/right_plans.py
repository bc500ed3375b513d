"""Plans to plant faults into: of a stored run, of a run by rules over embedded bars, or of a model."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from schemas.errors import ConfigError, nearest
from schemas.playbook import PlaybookVersion
from schemas.reflection import PolicyLevelReflectionRequest
from schemas.settings import Settings
from schemas.vocabulary import ReflectionStatus
from services.journal.consolidations import reflected_plans
from services.journal.index import Event, JournalIndex
from services.journal.kinds import GENESIS
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.own_plans import playbook_of
from services.playbooks.registry import RegistryReader
from services.policy_loop.invariant_context import invariant_context
from services.slow_loop.evidence_epochs import follow
from worker.runs import run_inputs
from worker.studies.ask_again.strategist import StrategistQuestion, read_strategist_questions
from worker.studies.faults.planting import CheckedPlan
from worker.studies.plan_check.plan_check import reflect
from worker.studies.study_models import OpenModels

FROM, TO = "2003-01-01", "2004-12-31"  # of the embedded bars, where no run is named
DEFAULT_PLAYBOOK = "trend_pullback"


@dataclass(frozen=True)
class ProposedPlan:
    """A question of a run to which a model of these settings proposes a plan, or none."""

    question: StrategistQuestion
    settings: Settings
    symbols: tuple[str, ...]

    async def ask(self, opened: OpenModels | None) -> CheckedPlan | None:
        """The plan that the model proposes; None where it proposes none of a playbook."""
        question, settings = self.question, self.settings
        model = None if opened is None else opened.at(question.known_at, question.symbol).strategist
        if model is None:
            raise ConfigError("no model is configured for the strategist: set the model of `[llm]`")
        answer = await question.answer(model, settings)
        proposal, snapshot = answer.proposal, question.snapshot
        if answer.fallback is not None or proposal is None:
            return None
        cases = () if question.background is None else question.background.cases
        names = (proposal.playbook_id, proposal.direction)
        request = PolicyLevelReflectionRequest(
            snapshot=snapshot,
            proposal=proposal,
            playbook=playbook_of(proposal, question.playbooks),
            state=snapshot.state,
            memory=next((c.memory for c in cases if (c.playbook_id, c.direction) == names), None),
            invariants=invariant_context(settings, snapshot, question.playbooks, self.symbols),
        )
        return CheckedPlan(request, question.playbooks)


Source = CheckedPlan | ProposedPlan


def plans_of_run(index: JournalIndex, settings: Settings, *, strategist: bool = False) -> Sequence[Source]:
    """Every plan by a playbook that a run reflected on, under the guardrails of its settings, in order.

    With `strategist` the questions, at which the strategist of the settings is to propose anew.

    Raises:
        ConfigError: there is none.
        StoreError: its rows cannot be read.
    """
    active: dict[str, PlaybookVersion] = {}
    symbols: tuple[str, ...] = ()
    found: list[CheckedPlan] = []
    requests = {event.row.seq: request for event, request in reflected_plans(index)}
    for event in index.events:
        if event.row.kind == GENESIS:
            symbols = tuple(event.payload["symbols"])
        elif event.row.kind == "playbook_version":
            follow(active, PlaybookVersion.of_row(event.payload))
        elif (request := requests.get(event.row.seq)) is not None:
            reader = RegistryReader(MappingProxyType(dict(active)), MappingProxyType({}))
            limits = invariant_context(settings, request.snapshot, reader, symbols)
            found.append(CheckedPlan(request.model_copy(update={"invariants": limits}), reader))
    if strategist:
        requested = read_strategist_questions("given", index, settings).requested
        flat = [
            each for each in requested if isinstance(each, StrategistQuestion) and not each.snapshot.position
        ]
        return [ProposedPlan(question, settings, symbols) for question in flat]
    if not found:
        raise ConfigError(
            "the run reflected on no plan by a playbook: name another run, or none for the embedded bars"
        )
    return found


async def embedded_index(settings: Settings) -> JournalIndex:
    """The journal of a run by rules over two years of the embedded bars, with the playbooks of settings."""
    from worker.feeds.sample_data import load_embedded_bars
    from worker.runs.backtest import run_backtest

    sink, index = MemorySink(), JournalIndex()
    await run_backtest(rules_alone(settings), load_embedded_bars(start=FROM, end=TO), JournalWriter(sink))
    for row in sink.rows:
        index.add(Event(row, json.loads(row.payload)))
    return index


def rules_alone(settings: Settings, **others: dict[str, str]) -> Settings:
    """The settings with nobody to ask but rules, and those whom `others` name by their parts."""
    parts = {"reflection": {"mode": "deterministic"}, "policy_loop": {"strategist": "rules"}}
    parts |= {"judge": {"replan": "rules"}, "planner": {"judge": "rules"}} | others
    copies = {name: getattr(settings, name).model_copy(update=values) for name, values in parts.items()}
    return settings.model_copy(update=copies)


async def example_request(
    settings: Settings, playbook_id: str | None = None, direction: str | None = None
) -> PolicyLevelReflectionRequest:
    """The newest plan of a playbook and direction that passes, of a run by rules over the embedded bars.

    Args:
        settings: limits in force, and playbooks.
        playbook_id: None takes the trend pullback, else the first.
        direction: None takes long if the playbook has it.

    Raises:
        ConfigError: there is no such playbook or direction, or no plan of it passed.
    """
    books = {book.id: book for book in run_inputs.playbooks(settings)}
    name = playbook_id or (DEFAULT_PLAYBOOK if DEFAULT_PLAYBOOK in books else next(iter(books)))
    _require("--playbook", name, sorted(books))
    sides: list[str] = sorted(books[name].rules)
    _require("--direction", direction or sides[0], sides)
    wanted = name, direction or sides[0]
    for source in reversed(plans_of_run(await embedded_index(settings), settings)):
        plan = await source.ask(None)
        if plan is not None and (plan.request.playbook.id, plan.request.proposal.direction) == wanted:
            done = await reflect(plan.request, rules_alone(settings))
            if done.result is not None and done.result.status is ReflectionStatus.PASS:
                return plan.request
    raise ConfigError(
        f"no {wanted[1]} plan of {name} passes on the embedded daily bars of {FROM} to {TO}: name another "
        "playbook or direction"
    )


def _require(option: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise ConfigError(f"{option} {given!r}: there are {', '.join(known)}.{nearest(given, known)}")
