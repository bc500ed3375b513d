"""The strategist that asks a language model, within one deadline; where that fails, the rules answer.

What stays the same from call to call (instructions, tolerances, playbooks) goes first, as the part that the
provider caches; snapshot, background, bases and revision follow as quoted data. The prompt is a pure function
of what the snapshot and the readers hold, so a recorded run is played back question by question. The model
picks a base, names its reasons and says what to change; code writes the words. It never writes a plan from
nothing, sizes, or moves a stop away.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.strategies.plan_changes import ID_DIGITS, FrozenPlan, PlanBase, answer_of, plan_bases
from agents.strategies.reason_pass import ReasonText, reread
from agents.strategies.rule_strategist import RuleStrategist
from agents.strategies.strategist_reply import ReplyFault, TightenReply, read_strategist_reply
from prompts import PromptTemplate, load_prompt
from schemas.background import DecisionBackground, RecentBar
from schemas.playbook import PlaybookDefinition
from schemas.reflection import BUCKETS
from schemas.settings.deliberation import PassSettings
from schemas.snapshot import PolicySnapshot
from schemas.strategist_answer import StrategistAnswer
from services.deliberation.budget import Budget
from services.deliberation.presets.reflection_pass import calls_of
from services.deliberation.text_models import TextModels
from services.model_calls.asking import NoReply, ask
from services.model_calls.language_model import LanguageModel
from services.model_calls.quoting import keep_comment, quoted_json
from services.model_calls.wording import PLAIN_RUN, PRICED, Wording, Wordings
from services.policy_checks.reasons import with_reasons
from services.ports import BackgroundReader, PlaybookReader, Revision

DESIGN = ("playbook_id", "playbook_version", "n", "prior")
MEASURED = "measured"  # by a playbook's rules alone, which no playbook holds
PROMPT = "strategist"
MAX_TOKENS = 1_500
NOTHING_TO_CHOOSE = "nothing_to_choose"
NONE = "none"
NS_PER_MS = 1_000_000
BY_DEFAULT = PassSettings()
SHOWN_OF_CASE = ("symbol", "r", "distance", "failure_mode", "known_at")


def no_background(snapshot: PolicySnapshot) -> DecisionBackground | None:
    """Where nothing was gathered."""
    return None


@dataclass(frozen=True)
class Fallback:
    """Why the rules answer. What a reply said stands in the row of its call alone."""

    kind: str


@dataclass(frozen=True)
class PlanReaders:
    """What a model strategist reads beside a snapshot.

    Attributes:
        playbooks: read-only registry.
        frozen: the plan of a policy frozen earlier in the run, by policy id.
        background: what was gathered for a snapshot.
    """

    playbooks: PlaybookReader
    frozen: FrozenPlan
    background: BackgroundReader = no_background


@dataclass(frozen=True)
class PlanTerms:
    """The terms of every answer of a run.

    Attributes:
        deadline_ms: of one answer, its correction included.
        tolerances: what plans are measured by.
        own_rules: whether a plan may have rules in the model's own words; only with a reflection.
        tick: grid of stops; 0: none.
        reflection_pass: how a rationale is looked at again.
    """

    deadline_ms: float
    tolerances: Mapping[str, Any] = field(default_factory=dict)
    own_rules: bool = True
    tick: float = 0.0
    reflection_pass: PassSettings = BY_DEFAULT


class ModelStrategist:
    """Strategist of a language model, with the rules behind it."""

    def __init__(
        self,
        model: LanguageModel,
        rules: RuleStrategist,
        readers: PlanReaders,
        terms: PlanTerms,
        *,
        wordings: Wordings = PLAIN_RUN,
        timer: Callable[[], int] = time.perf_counter_ns,
        prompt: PromptTemplate | None = None,
        texts: TextModels | None = None,
    ) -> None:
        """Hold readers only.

        Args:
            model: asked once for each answer, and once more when its reply cannot be used.
            rules: ranks the bases, and answers where the model did not.
            readers: of playbooks, of plans frozen before, and of what was gathered beside a snapshot.
            terms: of every answer.
            wordings: how questions word their data.
            timer: monotonic ns, for what is left of the deadline.
            prompt: template of the question; None: the one in use.
            texts: who criticises and corrects a rationale; None: nobody does.
        """
        self._model = model
        self._rules = rules
        self._readers = readers
        self._terms = terms
        self._wordings = wordings
        self._timer = timer
        self._prompt = prompt or load_prompt(PROMPT)
        self._texts = texts
        self._static: tuple[tuple[str, ...], str] = ((), "")

    async def answer(self, snapshot: PolicySnapshot, revision: Revision | None) -> StrategistAnswer:
        """The model's answer, or that of the rules with the reason in `fallback`."""
        bases = plan_bases(self._rules, snapshot, revision, self._readers.frozen)
        if snapshot.position is None and not bases:
            return await self._by_rules(snapshot, revision, Fallback(NOTHING_TO_CHOOSE))
        reply = await self._ask(snapshot, revision, bases)
        return (
            reply if isinstance(reply, StrategistAnswer) else await self._by_rules(snapshot, revision, reply)
        )

    async def _by_rules(
        self, snapshot: PolicySnapshot, revision: Revision | None, why: Fallback
    ) -> StrategistAnswer:
        answer = await self._rules.answer(snapshot, revision)
        return answer.model_copy(update={"fallback": why.kind})

    async def _ask(
        self, snapshot: PolicySnapshot, revision: Revision | None, bases: tuple[PlanBase, ...]
    ) -> StrategistAnswer | Fallback:
        start = self._timer()
        reply = await self._attempt(snapshot, bases, self._request_text(snapshot, revision, bases), start)
        if isinstance(reply, ReplyFault):
            corrected = self._request_text(snapshot, revision, bases, reply)
            reply = await self._attempt(snapshot, bases, corrected, start)
        if isinstance(reply, StrategistAnswer) and self._texts is not None:
            return await self._reread(reply, self._texts, snapshot, bases, start)
        return Fallback(str(reply.kind)) if isinstance(reply, ReplyFault) else reply

    async def _reread(
        self,
        answer: StrategistAnswer,
        texts: TextModels,
        snapshot: PolicySnapshot,
        bases: tuple[PlanBase, ...],
        start: int,
    ) -> StrategistAnswer:
        """The answer with its reasons looked at again, within the same deadline; nothing else of it changes.

        A rationale that a base has already is the rules', or was looked at.
        """
        proposal = answer.proposal
        if proposal is None or proposal.rationale in {base.proposal.rationale for base in bases}:
            return answer
        playbook = self._readers.playbooks.get(proposal.playbook_id).definition
        wording, background = self._wordings.of(snapshot), self._readers.background(snapshot)
        given = ReasonText(proposal, playbook, snapshot, background, wording, self._keeper(snapshot))
        budget = Budget(
            0, calls_of(self._terms.reflection_pass), deadline_ms=self._left_ms(start), timer=self._timer
        )
        corrected, done = await reread(given, texts, self._terms.reflection_pass, budget)
        update: dict[str, Any] = {"deliberation": done}
        if corrected is not None:
            update["proposal"] = with_reasons(proposal, snapshot, corrected.because, background)
            update |= self._comment(corrected.comment, snapshot)
        return answer.model_copy(update=update)

    def _comment(self, given: str | None, snapshot: PolicySnapshot) -> dict[str, Any]:
        """The fields of an answer for its author's own words."""
        kept = self._keeper(snapshot)(given)
        return {"comment": kept, "dropped_comments": int(given is not None and kept is None)}

    def _keeper(self, snapshot: PolicySnapshot) -> Callable[[str | None], str | None]:
        """What is left of a model's own words: those without a figure and a name of the run."""
        names = {snapshot.symbol, *self._wordings.known, *self._wordings.of(snapshot).symbols.values()}
        for playbook in self._readers.playbooks.active():
            names |= {playbook.definition.id, *playbook.definition.parameters}
        return lambda given: keep_comment(given, names)

    def _left_ms(self, start: int) -> float:
        return max(0.0, self._terms.deadline_ms - (self._timer() - start) / NS_PER_MS)

    async def _attempt(
        self, snapshot: PolicySnapshot, bases: tuple[PlanBase, ...], prompt: str, start: int
    ) -> StrategistAnswer | ReplyFault | Fallback:
        """One call, made even without time left: the record then says so, and a replay ends there too."""
        reply = await ask(
            self._model,
            system=self._static_part(),
            prompt=prompt,
            max_tokens=MAX_TOKENS,
            deadline_ms=self._left_ms(start),
        )
        if isinstance(reply, NoReply):
            return Fallback(reply.kind)
        read = read_strategist_reply(self._wordings.of(snapshot).names_back(reply.text))
        if isinstance(read, ReplyFault):
            return read
        if isinstance(read, TightenReply) and (held := snapshot.position) is not None:
            shown = held.stop, held.entry_price, snapshot.close
            level = self._wordings.of(snapshot).price_back(read.stop, *shown)
            read = read.model_copy(update={"stop": level})
        text = answer_of(
            read, snapshot, bases, self._readers.playbooks,
            own_rules=self._terms.own_rules, tick=self._terms.tick,
            background=self._readers.background(snapshot),
        )  # fmt: skip
        if isinstance(text, ReplyFault):
            return text
        comment = self._comment(read.comment, snapshot)
        return text.model_copy(update={"model": reply.model, "prompt_hash": self._prompt.hash, **comment})

    def _static_part(self) -> str:
        """Instructions and playbooks: the same bytes until a playbook has another version."""
        active = [
            playbook.definition
            for playbook in self._readers.playbooks.active()
            if playbook.definition.enabled
        ]
        versions = tuple(playbook.content_hash for playbook in active)
        if self._static[0] != versions:
            # Numbers as they are: a parameter is named by the very value on its grid.
            shown = self._wordings.at(0).names(quoted_json([self._show_playbook(item) for item in active]))
            measures = quoted_json(self._terms.tolerances)
            text = f"What every plan is measured by (JSON):\n{measures}\n\nThe playbooks (JSON):\n{shown}"
            self._static = (versions, f"{self._prompt.system}\n\n{text}")
        return self._static[1]

    def _show_playbook(self, playbook: PlaybookDefinition) -> dict[str, Any]:
        """A playbook without the time of its version: the snapshot's lessons say since when."""
        return {name: value for name, value in playbook.payload().items() if name != "known_at"}

    def _request_text(
        self,
        snapshot: PolicySnapshot,
        revision: Revision | None,
        bases: tuple[PlanBase, ...],
        fault: ReplyFault | None = None,
    ) -> str:
        wording, background = self._wordings.of(snapshot), self._readers.background(snapshot)
        return self._prompt.render(
            snapshot=wording.json(shown_snapshot(snapshot)),
            background=NONE if background is None else wording.json(shown_background(background)),
            bases=wording.json([base.to_prompt(snapshot) for base in bases]),
            revision=NONE if revision is None else wording.json(_show_revision(revision)),
            task=_task(snapshot, revision),
            correction=NONE if fault is None else wording.json(_describe_fault(fault, wording)),
        )


def shown_snapshot(snapshot: PolicySnapshot) -> dict[str, Any]:
    """A snapshot as the prompt carries it: without counts of nothing, and designs that the playbooks hold."""
    payload = snapshot.payload()
    payload["expectations"] = [
        known if known["n"] else {name: known[name] for name in DESIGN}
        for known in payload["expectations"]
        if known["n"] or known["prior"]["source"] == MEASURED
    ]
    if not payload["base_rates"]["population"]:
        del payload["base_rates"]
    return payload


def shown_background(background: DecisionBackground) -> dict[str, Any]:
    """A background as the prompt carries it: bars by column, what tells cases apart, and no empty part."""
    payload = background.payload()
    del payload["snapshot_hash"]
    bars = payload["recent_bars"]
    payload["recent_bars"] = {name: [bar[name] for bar in bars] for name in RecentBar.model_fields}
    payload["cases"] = [plan for plan in payload["cases"] if plan["memory"]["base_rates"]["population"]]
    for plan in payload["cases"]:
        memory = plan.pop("memory")
        plan |= {name: memory[name] for name in ("base_rates", "insufficient")}
        for bucket in BUCKETS:
            plan[bucket] = [{name: case[name] for name in SHOWN_OF_CASE} for case in memory[bucket]]
    return {name: part for name, part in payload.items() if part}


def _describe_fault(fault: ReplyFault, wording: Wording) -> dict[str, str]:
    why = wording.with_prices(fault.message) if fault.kind in PRICED else fault.message
    return {"kind": str(fault.kind), "why": why}


def _task(snapshot: PolicySnapshot, revision: Revision | None) -> str:
    if snapshot.position is not None:
        return "manage"
    return "choose" if revision is None else "revise"


def _show_revision(revision: Revision) -> dict[str, Any]:
    """A revision request as the prompt carries it."""
    return {
        "refused": revision.proposal.content_hash[:ID_DIGITS],
        "round": revision.round,
        "reason": revision.reason,
        "findings": [finding.payload() for finding in revision.findings],
    }
