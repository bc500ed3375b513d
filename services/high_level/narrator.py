"""The narrative of a report by a model: asked for, scored, improved, and held against the run.

Numbers never come from a model. Every claim of its text is held against the report and its trades; the model
is told what does not hold and asked again, and what is left after the last round is struck. Where nothing is
left, or an id is cited that was not offered, the rule text stands and the reason is kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from schemas.canonical import canonical_json
from schemas.deliberation import Deliberation, TextCandidate, TextFinding
from schemas.reflection import HighLevelReflectionReport
from schemas.settings.deliberation import DeliberationSettings
from schemas.vocabulary import Severity
from services.deliberation.budget import Budget
from services.deliberation.forms import OUTLINE, SECTION
from services.deliberation.policies import Round, fails_no_more
from services.deliberation.presets import combined, quality, review
from services.deliberation.presets.chunked import is_long
from services.deliberation.presets.combined import run_reviewed, write_sections
from services.deliberation.presets.quality import QualityLoop, struck
from services.deliberation.presets.review import TextTraits
from services.deliberation.refine import Critic, Draft, Generator, Task, Trace
from services.deliberation.rule_critics import (
    ClaimCritic,
    NewsCritic,
    RuleCritic,
    cut_off,
    end_whole,
    find_cut_off,
    find_repeats,
)
from services.deliberation.text_models import TextModels, usage_of
from services.evidence.run_facts import RunFacts
from services.high_level.narrative_reply import MAX_CHARACTERS, Narrative, read_narrative, with_known_numbers
from services.model_calls.asking import NoReply, ask
from services.model_calls.language_model import LanguageModel
from services.model_calls.quoting import quoted_json
from services.model_calls.wording import PLAIN, Wording

BYTES_PER_TOKEN = 4  # of English, roughly
DEADLINE_MS = 60_000.0
WHOLE_MS = 600_000.0  # of one narrative with everything that is asked about it
QUOTED = "deferred_seen"
REFUSED = "refused"
QUESTION = (
    "What happened in the window, what departed from what the playbooks expect, what drifted, what the "
    "evidence allows, and what is recommended? At most 350 words."
)
CORRECTION = (
    "\n\nYour last answer was not kept: these claims of it do not stand in the report (JSON). `would_pass` "
    "lists values that do.\n{claims}\nAnswer again without them."
)


class Prompt(Protocol):
    """A prompt template: fixed instructions, and a request to fill."""

    @property
    def hash(self) -> str:
        """Content hash of the template."""
        ...

    @property
    def system(self) -> str:
        """The instructions."""
        ...

    def render(self, **values: str) -> str:
        """The request with its placeholders filled."""
        ...


@dataclass
class NarrativeWriter:
    """Asks for a narrative, and again with the claims that do not hold.

    Attributes:
        request: the question, with report and evidence.
        offered: ids that may be cited.
    """

    model: LanguageModel
    prompt: Prompt
    request: str
    offered: Sequence[str]
    max_tokens: int

    async def generate(self, task: Task, budget: Budget) -> Draft | NoReply:
        """The first text."""
        return await self._ask(self.request, budget)

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """The next one, by a writer who knows what does not hold of the newest."""
        claims = [
            {"said": found.said, "in": found.within, "why": found.message, "would_pass": found.would_pass}
            for found in rounds[-1].view.findings
        ]
        return await self._ask(self.request + CORRECTION.format(claims=quoted_json(claims)), budget)

    async def _ask(self, request: str, budget: Budget) -> Draft | NoReply:
        reply = await ask(
            self.model,
            system=self.prompt.system,
            prompt=request,
            max_tokens=self.max_tokens,
            deadline_ms=min(DEADLINE_MS, budget.left_ms),
        )
        if isinstance(reply, NoReply):
            return NoReply(reply.kind, f"model failed: {reply.detail}")
        budget.charge(usage_of(reply))
        read = read_narrative(reply.text, self.offered)
        return Draft(read.text) if read.by_model else NoReply(REFUSED, str(read.refused))


@dataclass(frozen=True)
class Narrator:
    """Who tells the narrative of a report; without a model, the rules do.

    Attributes:
        critic_of: holds texts against the facts of a report.
        texts: who scores, improves, reviews and writes sections; empty where nobody does.
    """

    prompt: Prompt
    critic_of: Callable[[RunFacts], ClaimCritic]
    model: LanguageModel | None = None
    settings: DeliberationSettings = DeliberationSettings()
    texts: TextModels = field(default_factory=lambda: TextModels({}, {}))

    async def tell(
        self, report: HighLevelReflectionReport, facts: RunFacts, wording: Wording = PLAIN
    ) -> Narrative:
        """The narrative of a report whose `narrative` already holds the rule text.

        Without a model, or when the model fails or nothing of its text holds, the rule text stands. What the
        model may say is what it was shown, in the same words; `facts` calls the symbols what the model does.
        """
        if self.model is None:
            return Narrative(report.narrative, False)
        body = wording.word_value(report.payload())
        offered = sorted({ref for finding in report.clusters for ref in finding.evidence})
        request = self.prompt.render(report=quoted_json(body), evidence=quoted_json(offered))
        # A deferred need is a model's own text: a number in it was computed by nobody.
        shown = {key: body[key] for key in body if key != QUOTED}
        writer = NarrativeWriter(self.model, self.prompt, request, offered, self.settings.narrative_tokens)
        if self.settings.quality.fact_check == "numbers":
            source = canonical_json({"report": shown, "symbols": list(wording.symbols.values())})
            return await _by_numbers(report, writer, source)
        return await self._refine(report, writer, shown, self.critic_of(facts))

    async def _refine(
        self,
        report: HighLevelReflectionReport,
        writer: NarrativeWriter,
        shown: Mapping[str, Any],
        facts: ClaimCritic,
    ) -> Narrative:
        settings = self.settings
        task = Task(QUESTION, canonical_json(shown), report.request_hash)
        calls = (
            quality.calls_of(settings.quality)
            + combined.calls_of(settings)
            + review.calls_of(settings.review)
        )
        budget = Budget(0, calls, deadline_ms=WHOLE_MS, texts_ms=settings.quality.deadline_ms)
        trace = Trace()
        draft: str | Generator = writer
        if settings.quality.mode == "critique_only":
            draft = report.narrative
        elif is_long(settings.chunked, settings.narrative_tokens) and self.texts.has(OUTLINE, SECTION):
            draft = write_sections(task, settings, self.texts, trace, facts)
        rules: list[Critic] = [
            facts,
            NewsCritic(facts),
            RuleCritic("length", "clarity", self._too_long),
            RuleCritic("truncation", "completeness", find_cut_off),
            RuleCritic("consistency", "clarity", find_repeats),
        ]
        loop = QualityLoop(
            task, draft, settings.quality, budget, self.texts, facts, writer,
            application=fails_no_more, rules=rules, trace=trace,
        )  # fmt: skip
        done = await loop.run()
        if settings.review.enabled and done.status != "failed":
            done = await self._review(report, task, done, budget, facts, rules)
        return narrative_of(report, done, facts)

    async def _review(
        self,
        report: HighLevelReflectionReport,
        task: Task,
        done: Deliberation,
        budget: Budget,
        facts: ClaimCritic,
        rules: Sequence[Critic],
    ) -> Deliberation:
        """The outcome with its text reviewed, and the events of both."""
        traits = TextTraits(done.degraded_from is not None, len(report.clusters), len(report.recommendations))
        reviewed = await run_reviewed(
            task, done.final, self.settings, budget, models=self.texts, facts=facts, traits=traits,
            requested_tokens=self.settings.narrative_tokens, rules=rules,
        )  # fmt: skip
        update = {"final": reviewed.final, "events": (*done.events, *reviewed.events), "usage": budget.used}
        return done.model_copy(update=update)

    def _too_long(self, task: Task, candidate: TextCandidate) -> tuple[float | None, Sequence[TextFinding]]:
        """A text beyond what a report takes; one in sections may be as long as it was asked for."""
        asked = BYTES_PER_TOKEN * self.settings.narrative_tokens
        most = asked if is_long(self.settings.chunked, self.settings.narrative_tokens) else MAX_CHARACTERS
        if len(candidate.text) <= most:
            return None, ()
        message = f"{len(candidate.text):,} characters, more than {most:,}"
        found = TextFinding(code="too_long", severity=Severity.MAJOR, dimension="clarity", message=message)
        return None, (found,)


def narrative_of(report: HighLevelReflectionReport, done: Deliberation, facts: ClaimCritic) -> Narrative:
    """What stands of a model's text: all of it, the part that holds, or the rule text."""
    if done.status == "failed":
        return Narrative(report.narrative, False, done.error, None, done)
    checked = facts.check(done.final)
    kept = struck(done, facts)
    if checked is None or checked.holds:
        broken = cut_off(kept.final)
        if broken is None:
            return Narrative(kept.final, True, None, checked, kept)
        whole = end_whole(kept.final)
        text, reason = whole or report.narrative, f"the text breaks off: {broken}"
        return Narrative(text, bool(whole), reason, checked, kept.model_copy(update={"final": text}))
    counted = ", ".join(f"{count} {verdict}" for verdict, count in checked.counts.items() if count)
    reason = f"claims that do not hold: {counted}"
    text = kept.final or report.narrative
    return Narrative(text, bool(kept.final), reason, checked, kept.model_copy(update={"final": text}))


async def _by_numbers(report: HighLevelReflectionReport, writer: NarrativeWriter, source: str) -> Narrative:
    """As runs did before claims were checked: one question, and each number looked up."""
    budget = Budget(0, 1, deadline_ms=DEADLINE_MS)
    said = await writer.generate(Task(QUESTION), budget)
    told = (
        Narrative("", False, said.detail)
        if isinstance(said, NoReply)
        else with_known_numbers(Narrative(said.text, True), source)
    )
    return told if told.by_model else Narrative(report.narrative, False, told.refused)
