"""What the strategist of a stored run was asked, ready to be asked again, and what each reply comes to.

The question is made of the snapshot, what was gathered beside it, the playbook versions that were active
when it was taken, and the plans frozen before it. A run by rules holds questions as well as one that asked a
model, but nothing was gathered there. Revisions are left out: they depend on what was answered first. The
reply takes the way of the running system, through `ModelStrategist`; no two outcomes share a name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar

from pydantic import ValidationError

from agents.strategies.configured import configured_rules, model_strategist
from agents.strategies.model_strategist import NOTHING_TO_CHOOSE
from agents.strategies.plan_changes import plan_bases
from agents.strategies.rule_strategist import RuleStrategist
from agents.strategies.strategist_reply import FORM, FaultKind
from schemas.background import DecisionBackground
from schemas.errors import ConfigError, StoreError
from schemas.playbook import PlaybookVersion
from schemas.proposal import PolicyProposal
from schemas.settings import Settings
from schemas.snapshot import PolicySnapshot
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import PlanKind
from services.journal.index import Event, JournalIndex
from services.model_calls.language_model import TIMEOUT
from services.model_calls.record import LATE
from services.model_calls.wording import Wordings
from services.playbooks.registry import RegistryReader
from services.slow_loop.evidence_epochs import follow
from worker.studies.models.panel import Cost, Panel, Questions, RecordedQuestion
from worker.studies.models.second_reader import run_wordings

DQ = TypeVar("DQ", bound="DecisionQuestion")
D = TypeVar("D", bound="Decided")
Plans = Mapping[str, PolicyProposal]
# What the model itself did. Any other failure is of the connection, the provider or a limit: no reply.
SAID_BY_THE_MODEL = frozenset({*map(str, FaultKind), "refusal", "cut", TIMEOUT, LATE})


@dataclass(frozen=True)
class Decided(Cost):
    """What one asking came to.

    Attributes:
        decision: `propose PLAYBOOK DIRECTION`, `hold`, `tighten`, `abstain`, or how it failed.
        replied: whether the model had its say; else there is no decision.
        plan: content hash of the proposal.
    """

    decision: str
    replied: bool
    plan: str | None = None


class DecisionQuestion(RecordedQuestion, Protocol):
    """A question that is answered by a decision."""

    @property
    def seq(self) -> int:
        """Its place."""
        ...

    def about(self) -> dict[str, Any]:
        """Where it comes from."""
        ...


class DecisionQuestions(Questions[DQ, D], Protocol[DQ, D]):
    """The questions of one run that are answered by decisions, in order."""

    @property
    def run_id(self) -> str:
        """Of the run."""
        ...

    @property
    def asked(self) -> Sequence[DQ]:
        """All that are asked."""
        ...

    @property
    def left_out(self) -> Mapping[str, int]:
        """How many were not asked, by the reason."""
        ...

    @property
    def without_background(self) -> int:
        """Questions beside which nothing was gathered."""
        ...

    def figures(self, *said: Sequence[D]) -> dict[str, Any]:
        """Further figures of the answers, for each way of asking."""
        ...


def name_decision(answer: StrategistAnswer) -> Decided:
    """An answer by its name; the rules' answer in the model's place goes by why they gave it."""
    if answer.fallback is not None:
        return Decided(answer.fallback, answer.fallback in SAID_BY_THE_MODEL)
    proposal = answer.proposal
    if answer.kind is not PlanKind.PROPOSE or proposal is None:
        return Decided(str(answer.kind), True)
    name = f"{answer.kind} {proposal.playbook_id} {proposal.direction}"
    return Decided(name, True, proposal.content_hash)


@dataclass(frozen=True)
class StrategistQuestion:
    """One question; `seq` is the row of its snapshot.

    Attributes:
        playbooks: versions active at the snapshot.
        frozen: plans frozen in the run so far, by policy id.
        background: what was gathered beside the snapshot; None in a run by rules.
    """

    seq: int
    snapshot: PolicySnapshot
    playbooks: RegistryReader
    frozen: Plans
    background: DecisionBackground | None = None

    def about(self) -> dict[str, Any]:
        """Where it comes from."""
        snapshot = self.snapshot
        return {
            "seq": self.seq,
            "known_at": snapshot.known_at,
            "symbol": snapshot.symbol,
            "state": str(snapshot.state),
        }

    def rules(self, settings: Settings) -> RuleStrategist:
        """The rules as they ranked the bases of this question."""
        return configured_rules(settings, self.playbooks, (self.snapshot.symbol,))


class StrategistPanel(Panel[StrategistQuestion, Decided]):
    """One strategist with one template."""

    form, seat, model_setting = FORM, "strategist", "strategist_model"
    setting = "the strategist: set policy_loop.strategist"

    async def _ask(self, question: StrategistQuestion) -> Decided:
        strategist = model_strategist(
            self._settings,
            self._model,
            question.rules(self._settings),
            question.playbooks,
            question.frozen.get,
            lambda snapshot: question.background,
            self._questions.wordings,
            self._template,
        )
        return name_decision(await strategist.answer(question.snapshot, None))


@dataclass(frozen=True)
class StrategistQuestions:
    """The questions of one run in order; `left_out` counts snapshots that leave nothing to choose.

    `wordings` is how they word their data.
    """

    run_id: str
    asked: tuple[StrategistQuestion, ...]
    left_out: dict[str, int]
    wordings: Wordings = Wordings()
    asks: ClassVar[type[StrategistPanel]] = StrategistPanel

    def figures(self, *said: Sequence[Decided]) -> dict[str, Any]:
        """Nothing more than what was decided."""
        return {}

    @property
    def without_background(self) -> int:
        """Questions beside whose snapshot nothing was gathered."""
        return sum(question.background is None for question in self.asked)


def read_strategist_questions(run_id: str, index: JournalIndex, settings: Settings) -> StrategistQuestions:
    """Every snapshot of a run that left the strategist something to say.

    Raises:
        ConfigError: there is none.
        StoreError: a row does not fit this version.
    """
    active: dict[str, PlaybookVersion] = {}
    frozen: dict[str, PolicyProposal] = {}
    found: list[StrategistQuestion] = []
    idle, asked = 0, set[str]()
    for event in index.events:
        try:
            if event.row.kind == "playbook_version":
                follow(active, PlaybookVersion.of_row(event.payload))
            elif event.row.kind == "policy_frozen":
                policy = event.payload["policy"]
                frozen[event.payload["policy_id"]] = PolicyProposal.model_validate(policy["proposal"])
            elif event.row.kind == "policy_snapshot" and event.payload["event_id"] not in asked:
                asked.add(event.payload["event_id"])  # one more is of a late answer: no model was asked on it
                question = _question(event, active, frozen)
                idle += not _has_choice(question, settings)
                found += [question] if _has_choice(question, settings) else []
            elif event.row.kind == "strategist_background":
                gathered = DecisionBackground.model_validate(event.payload["background"])
                if found and found[-1].snapshot.content_hash == gathered.snapshot_hash:
                    found[-1] = replace(found[-1], background=gathered)
        except (ValidationError, KeyError) as error:
            raise StoreError(
                f"row {event.row.seq} ({event.row.kind}) does not fit this version: read it with the version "
                "that made it"
            ) from error
    if not found:
        raise ConfigError(f"run {run_id!r} holds no snapshot on which a strategist had anything to choose")
    wordings = run_wordings(index, anonymise=settings.llm.anonymise)
    return StrategistQuestions(run_id, tuple(found), {NOTHING_TO_CHOOSE: idle} if idle else {}, wordings)


def _question(
    event: Event, active: Mapping[str, PlaybookVersion], frozen: Mapping[str, PolicyProposal]
) -> StrategistQuestion:
    reader = RegistryReader(MappingProxyType(dict(active)), MappingProxyType({}))
    snapshot = PolicySnapshot.model_validate(event.payload["snapshot"])
    return StrategistQuestion(event.row.seq, snapshot, reader, MappingProxyType(dict(frozen)))


def _has_choice(one: StrategistQuestion, settings: Settings) -> bool:
    if one.snapshot.position is not None:
        return True
    return bool(plan_bases(one.rules(settings), one.snapshot, None, one.frozen.get))
