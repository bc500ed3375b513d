"""The narrative of a report by a model: asked for, scored, improved, and held against the run.

A model picks claims and orders them; code looks each one up and writes it. What is not so goes back to the
model with what is, and is left out in the end. Where nothing is left, the text of the rules stands and the
reason is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from prompts import PromptTemplate, load_prompt
from schemas.deliberation import Deliberation
from schemas.settings.deliberation import DeliberationSettings
from schemas.slow_reflection import HighLevelReflectionReport
from services.deliberation.budget import Budget
from services.deliberation.claim_critics import ClaimText
from services.deliberation.forms import OUTLINE, SECTION
from services.deliberation.policies import Round, fails_no_more
from services.deliberation.presets import combined, quality, review
from services.deliberation.presets.chunked import is_long
from services.deliberation.presets.combined import run_reviewed, section_writer
from services.deliberation.presets.quality import QualityLoop, with_checks
from services.deliberation.presets.review import TextTraits, final_draft
from services.deliberation.refine import CLAIM_REFUSED, Draft, Generator, Task, Trace, sections_of
from services.deliberation.text_models import TextModels, read_as, usage_of
from services.evidence.run_facts import RunFacts
from services.high_level.narrative_reply import PROMPT_NAME, Narrative, read_narrative
from services.high_level.report_sections import TOPICS, cells_of, rule_narrative, rule_sections
from services.model_calls.asking import NoReply, ask
from services.model_calls.language_model import LanguageModel
from services.model_calls.quoting import quoted_json
from services.model_calls.wording import PLAIN, Wording

DEADLINE_MS = 60_000.0
WHOLE_MS = 600_000.0  # of one narrative with everything that is asked about it
QUESTION = (
    "What happened in the window, what departed from what the playbooks expect, what drifted, what the "
    "evidence allows, and what is recommended?"
)
CORRECTION = (
    "\n\nOf your last answer these claims are not so; `what_is_so` says what is (JSON):\n{claims}\n"
    "Answer again, the other claims as they were."
)


@dataclass
class NarrativeWriter:
    """Asks for a narrative, and again with the claims that do not hold; `request` is the whole question."""

    model: LanguageModel
    prompt: PromptTemplate
    claims: ClaimText
    request: str
    max_tokens: int

    async def generate(self, task: Task, budget: Budget) -> Draft | NoReply:
        """The first text."""
        return await self._ask(self.request, budget)

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """The next one, by a writer who knows what does not hold of the newest."""
        found = (item for item in rounds[-1].view.findings if item.code == CLAIM_REFUSED)
        refused = [{"claim": item.said, "what_is_so": item.message} for item in found]
        return await self._ask(self.request + CORRECTION.format(claims=quoted_json(refused)), budget)

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
        text = read_as(reply, read_narrative)
        return text if isinstance(text, NoReply) else self.claims.draft(text)


@dataclass(frozen=True)
class Narrator:
    """Who asks a model for the narrative of a report.

    Attributes:
        texts: who scores, improves, reviews and writes sections; empty where nobody does.
    """

    prompt: PromptTemplate
    model: LanguageModel
    settings: DeliberationSettings = DeliberationSettings()
    texts: TextModels = field(default_factory=lambda: TextModels({}, {}))

    async def tell(
        self, report: HighLevelReflectionReport, facts: RunFacts, wording: Wording = PLAIN
    ) -> Narrative:
        """The narrative of a report.

        When the model fails or nothing of its text holds, the text of the rules stands.
        `facts` call the symbols by their names; `wording` says what the model calls them.
        """
        cells = wording.json(cells_of(report, facts))
        request = self.prompt.render(cells=cells, topics=quoted_json(list(TOPICS)))
        claims = ClaimText(facts, {called: name for name, called in wording.symbols.items()}, TOPICS)
        writer = NarrativeWriter(self.model, self.prompt, claims, request, self.settings.narrative_tokens)
        done = await self._refine(report, writer, cells)
        return narrative_of(rule_narrative(report, facts), done, claims)

    async def _refine(
        self, report: HighLevelReflectionReport, writer: NarrativeWriter, cells: str
    ) -> Deliberation:
        settings, claims = self.settings, writer.claims
        task = Task(QUESTION, cells, TOPICS)
        calls = (
            quality.calls_of(settings.quality)
            + combined.calls_of(settings)
            + review.calls_of(settings.review)
        )
        budget = Budget(0, calls, deadline_ms=WHOLE_MS, texts_ms=settings.quality.deadline_ms)
        trace = Trace()
        draft: Draft | Generator = writer
        if settings.quality.mode == "critique_only":
            draft = claims.draft(rule_sections(report, claims.facts), author="given")
        elif is_long(settings.chunked, settings.narrative_tokens) and self.texts.has(OUTLINE, SECTION):
            draft = section_writer(task, settings, self.texts, trace, claims)
        loop = QualityLoop(
            task, draft, settings.quality, budget, self.texts, claims,
            corrector=writer, application=fails_no_more, trace=trace,
        )  # fmt: skip
        done = await loop.run()
        if settings.review.enabled and done.status != "failed":
            done = await self._review(report, task, done, budget, claims)
        return with_checks(done, claims)

    async def _review(
        self,
        report: HighLevelReflectionReport,
        task: Task,
        done: Deliberation,
        budget: Budget,
        claims: ClaimText,
    ) -> Deliberation:
        """The outcome with its text reviewed, and the candidates and events of both."""
        traits = TextTraits(done.degraded_from is not None, len(report.clusters), len(report.recommendations))
        reviewed = await run_reviewed(
            task, final_draft(done), self.settings, budget, claims, models=self.texts, traits=traits,
            requested_tokens=self.settings.narrative_tokens,
        )  # fmt: skip
        first = len(done.candidates)
        later = (c.model_copy(update={"number": c.number + first}) for c in reviewed.candidates)
        update = {
            "final": reviewed.final,
            "candidates": (*done.candidates, *later),
            "events": (*done.events, *reviewed.events),
            "usage": budget.used,
        }
        return done.model_copy(update=update)


def narrative_of(ruled: Narrative, done: Deliberation, claims: ClaimText) -> Narrative:
    """What stands of a model's text: what holds of it, or the text of the rules."""
    sections = () if done.standing is None else sections_of(done.standing)
    if done.status == "failed" or not sections:
        return Narrative(ruled.sections, ruled.text, False, done.error or "no text came", None, done)
    text, checked = claims.write(sections), claims.check(sections)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in checked.counts.items() if count)
    reason = None if checked.holds else f"claims that do not hold: {counted}"
    if not text.text:
        return Narrative(ruled.sections, ruled.text, False, reason or "it claims nothing", checked, done)
    return Narrative(text.sections, text.text, True, reason, checked, done)


def narrator_of(
    model: LanguageModel | None, settings: DeliberationSettings, texts: TextModels
) -> Narrator | None:
    """Who asks a model for narratives; None without one."""
    return None if model is None else Narrator(load_prompt(PROMPT_NAME), model, settings, texts)
