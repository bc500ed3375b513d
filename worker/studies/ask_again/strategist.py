"""What the strategist of a stored run was asked, ready to be asked again, and what each reply comes to.

The question is made of the snapshot, what was gathered beside it, the playbook versions that were active
when it was taken, and the plans frozen before it. A run by rules holds questions as well as one that asked a
model, but nothing was gathered there. Revisions are left out: they depend on what was answered first. The
reply takes the way of the running system, through `ModelStrategist`; no two outcomes share a name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from agents.strategies.configured import configured_rules, model_strategist
from agents.strategies.model_strategist import NOTHING_TO_CHOOSE, PlanReaders
from agents.strategies.plan_changes import plan_bases
from agents.strategies.rule_strategist import RuleStrategist
from agents.strategies.strategist_reply import FaultKind
from prompts import PromptTemplate
from schemas.background import DecisionBackground
from schemas.errors import ConfigError, StoreError
from schemas.playbook import PlaybookVersion
from schemas.proposal import PolicyProposal
from schemas.settings import Settings
from schemas.snapshot import PolicySnapshot
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import PlanKind
from services.journal.index import Event, JournalIndex
from services.model_calls.language_model import TIMEOUT, LanguageModel
from services.model_calls.record import LATE
from services.model_calls.wording import Wordings
from services.playbooks.registry import RegistryReader
from services.slow_loop.evidence_epochs import follow
from worker.studies.ask_again.asking import STRATEGIST, Answer, RunQuestion, RunQuestions
from worker.studies.ask_again.second_reader import run_symbols

# What the model itself did. Any other failure is of the connection, the provider or a limit: no reply.
SAID_BY_THE_MODEL = frozenset({*map(str, FaultKind), "refusal", "cut", TIMEOUT, LATE})


def name_decision(answer: StrategistAnswer) -> Answer:
    """An answer by its name; the rules' answer in the model's place goes by why they gave it."""
    if answer.fallback is not None:
        return Answer(answer.fallback, answer.fallback in SAID_BY_THE_MODEL)
    proposal = answer.proposal
    if answer.kind is not PlanKind.PROPOSE or proposal is None:
        return Answer(str(answer.kind))
    return Answer(f"{answer.kind} {proposal.playbook_id} {proposal.direction}", plan=proposal.content_hash)


@dataclass(frozen=True, kw_only=True)
class StrategistQuestion(RunQuestion):
    """One question; what was `recorded` is of the run's own strategist, model or rules.

    Attributes:
        symbols: of the run.
        playbooks: versions active at the snapshot.
        frozen: plans frozen in the run so far, by policy id.
        background: what was gathered beside the snapshot; None in a run by rules.
    """

    snapshot: PolicySnapshot
    symbols: tuple[str, ...]
    playbooks: RegistryReader
    frozen: Mapping[str, PolicyProposal]
    background: DecisionBackground | None = None

    def rules(self, settings: Settings) -> RuleStrategist:
        """The rules as they ranked the bases of this question."""
        return configured_rules(settings, self.playbooks, (self.snapshot.symbol,))

    async def answer(
        self, model: LanguageModel, settings: Settings, template: PromptTemplate | None = None
    ) -> StrategistAnswer:
        """What a model answers under these settings."""
        request = model_strategist(
            settings,
            model,
            self.rules(settings),
            PlanReaders(self.playbooks, self.frozen.get, lambda snapshot: self.background),
            Wordings.of_run(self.symbols, anonymise=settings.llm.anonymise),
            template,
        )
        return await request.answer(self.snapshot, None)

    async def ask(self, model: LanguageModel, settings: Settings, template: PromptTemplate) -> Answer:
        """Its decision by name."""
        return name_decision(await self.answer(model, settings, template))


def read_strategist_questions(run_id: str, index: JournalIndex, settings: Settings) -> RunQuestions:
    """Every snapshot of a run that left the strategist something to say; those that left nothing are counted.

    Raises:
        ConfigError: there is none.
        StoreError: a row does not fit this version.
    """
    active: dict[str, PlaybookVersion] = {}
    frozen: dict[str, PolicyProposal] = {}
    found: list[StrategistQuestion] = []
    idle, questions, symbols = 0, set[str](), run_symbols(index)
    for event in index.events:
        try:
            if event.row.kind == "playbook_version":
                follow(active, PlaybookVersion.of_row(event.payload))
            elif event.row.kind == "policy_frozen":
                policy = event.payload["policy"]
                frozen[event.payload["policy_id"]] = PolicyProposal.model_validate(policy["proposal"])
            elif event.row.kind == "policy_snapshot" and event.payload["event_id"] not in questions:
                questions.add(
                    event.payload["event_id"]
                )  # one more is of a late answer: no model was asked on it
                question = _question(event, active, frozen, symbols)
                idle += not _has_choice(question, settings)
                found += [question] if _has_choice(question, settings) else []
            elif event.row.kind == "strategist_background":
                gathered = DecisionBackground.model_validate(event.payload["background"])
                if found and found[-1].snapshot.content_hash == gathered.snapshot_hash:
                    found[-1] = replace(found[-1], background=gathered)
            elif event.row.kind == "policy_proposal" and _answers(event, found):
                found[-1] = replace(found[-1], recorded=_name_recorded(event.payload))
        except (ValidationError, KeyError) as error:
            raise StoreError(
                f"row {event.row.seq} ({event.row.kind}) does not fit this version: read it with the version "
                "that made it"
            ) from error
    if not found:
        raise ConfigError(f"run {run_id!r} holds no snapshot on which a strategist had anything to choose")
    bare = sum(question.background is None for question in found)
    return RunQuestions(run_id, STRATEGIST, tuple(found), {NOTHING_TO_CHOOSE: idle} if idle else {}, bare)


def _answers(event: Event, found: Sequence[StrategistQuestion]) -> bool:
    about = event.payload["snapshot_hash"]
    return event.payload["round"] == 0 and bool(found) and found[-1].snapshot.content_hash == about


def _name_recorded(row: Mapping[str, Any]) -> str:
    proposal = row["proposal"]
    if row["fallback"] is not None or proposal is None:
        return str(row["fallback"] or row["answer"])
    return f"{row['answer']} {proposal['playbook_id']} {proposal['direction']}"


def _question(
    event: Event,
    active: Mapping[str, PlaybookVersion],
    frozen: Mapping[str, PolicyProposal],
    symbols: tuple[str, ...],
) -> StrategistQuestion:
    snapshot = PolicySnapshot.model_validate(event.payload["snapshot"])
    at, symbol = snapshot.known_at, snapshot.symbol
    return StrategistQuestion(
        about={"seq": event.row.seq, "known_at": at, "symbol": symbol, "state": str(snapshot.state)},
        known_at=at,
        symbol=symbol,
        snapshot=snapshot,
        symbols=symbols,
        playbooks=RegistryReader(MappingProxyType(dict(active)), MappingProxyType({})),
        frozen=MappingProxyType(dict(frozen)),
    )


def _has_choice(question: StrategistQuestion, settings: Settings) -> bool:
    if question.snapshot.position is not None:
        return True
    rules = question.rules(settings)
    return bool(plan_bases(rules, question.snapshot, None, question.frozen.get))
