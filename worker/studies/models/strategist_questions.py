"""What the strategist of a stored run was asked: each recorded snapshot with the playbooks of its moment.

The question is made of the snapshot, what was gathered beside it, the playbook versions that were active
when it was taken, and the plans frozen before it. A run by rules holds questions as well as one that asked a
model, but nothing was gathered there. Revisions are left out: they depend on what was answered first. Called
by `thinktwice prompts diff`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from pydantic import ValidationError

from agents.strategies.model_strategist import NOTHING_TO_CHOOSE
from agents.strategies.plan_bases import plan_bases
from agents.strategies.rule_strategist import RuleStrategist
from schemas.background import DecisionBackground
from schemas.errors import ConfigError, StoreError
from schemas.playbook import PlaybookVersion
from schemas.proposal import PolicyProposal
from schemas.settings import Settings
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import VersionState
from services.journal.index import Event, JournalIndex
from services.model_calls.wording import Wordings
from services.playbooks.registry import RegistryReader
from worker.studies.models.model_questions import run_wordings

Plans = Mapping[str, PolicyProposal]


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

    def rules(self, settings: Settings) -> RuleStrategist:
        """The rules as they ranked the bases of this question."""
        envelope = settings.envelope
        return RuleStrategist(self.playbooks, envelope.allowed_directions, envelope.allowed_playbooks)


@dataclass(frozen=True)
class StrategistQuestions:
    """The questions of one run in order; `left_out` counts snapshots that leave nothing to choose.

    `wordings` is how they word their data.
    """

    run_id: str
    asked: tuple[StrategistQuestion, ...]
    left_out: dict[str, int]
    wordings: Wordings = Wordings()

    @property
    def without_background(self) -> int:
        """Questions beside whose snapshot nothing was gathered."""
        return sum(one.background is None for one in self.asked)


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
                _move(active, event)
            elif event.row.kind == "policy_frozen":
                policy = event.payload["policy"]
                frozen[event.payload["policy_id"]] = PolicyProposal.model_validate(policy["proposal"])
            elif event.row.kind == "policy_snapshot" and event.payload["event_id"] not in asked:
                asked.add(event.payload["event_id"])  # one more is of a late answer: nobody was asked on it
                one = _question(event, active, frozen)
                idle += not _has_choice(one, settings)
                found += [one] if _has_choice(one, settings) else []
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


def _move(active: dict[str, PlaybookVersion], event: Event) -> None:
    """Follow one transition, as the registry does."""
    fields = {name: event.payload[name] for name in PlaybookVersion.model_fields if name in event.payload}
    version = PlaybookVersion.model_validate(fields)
    name = version.definition.id
    if version.state is VersionState.ACTIVE:
        active[name] = version
    elif name in active and active[name].definition.content_hash == version.definition.content_hash:
        del active[name]
