"""What each preset of texts costs against a model that takes 100 ms: calls, tokens, time, cache hits.

The texts are narratives of a run over embedded bars, held against that run; tokens are bytes by four. The
single pass beside them is one call that writes the text; times are compared by their median, for the first
text of a process also compiles what texts are read with. `uv run python -m benchmarks.text_presets` prints
the table.
"""

import asyncio
import json
import sys
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prompts import load_prompt
from schemas.deliberation import Deliberation
from schemas.settings import DeliberationSettings, Settings
from schemas.slow_reflection import HighLevelReflectionReport
from services.deliberation.budget import Budget
from services.deliberation.claim_critics import ClaimText, claim_critics
from services.deliberation.forms import (
    CORRECTION,
    CRITIQUE,
    IMPROVEMENT,
    OUTLINE,
    QUALITY,
    QUALITY_REWRITE,
    REVIEW,
    REVIEW_REWRITE,
    SECTION,
    TEXT_FORMS,
)
from services.deliberation.model_revisers import Corrector, FirstDraft
from services.deliberation.presets.combined import run_chunked, run_reviewed
from services.deliberation.presets.quality import QualityLoop, with_checks
from services.deliberation.presets.reflection_pass import run_pass
from services.deliberation.refine import Draft, Task
from services.deliberation.text_models import TextModels
from services.evidence.run_facts import RunFacts
from services.high_level.report_sections import TOPICS, rule_sections
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.language_model import ModelReply
from services.statistics.quantiles import quantiles
from tools.docs_pages import table
from worker.feeds.sample_data import load_embedded_bars
from worker.runs.backtest import run_backtest

DELAY_S = 0.1
SPAN = ("2000-03-01", "2003-12-31")
REPEATS = 10
BYTES_PER_TOKEN = 4
QUESTION = "What happened, what departed from what was expected, and what is recommended?"
CALLS = 100
Preset = Callable[["Asked"], Awaitable[Deliberation]]


@dataclass(frozen=True)
class Cost:
    """One preset over all texts: means by text, and quantiles of ms."""

    preset: str
    calls: float
    tokens: float
    hits: int
    ms: Mapping[str, float | None]
    tokens_ratio: float
    time_ratio: float
    peak_kb: float


@dataclass
class Pausing:
    """A model that answers each prompt after a pause; its scores rise from too low to high enough."""

    name: str
    draft: Draft
    requested: int = 0

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        """The reply to one question."""
        self.requested += 1
        await asyncio.sleep(DELAY_S)
        reply = json.dumps(self._reply())
        size = len(system.encode()) + len(prompt.encode())
        return ModelReply(
            reply, "paused", size // BYTES_PER_TOKEN, len(reply.encode()) // BYTES_PER_TOKEN, 1e3 * DELAY_S
        )

    def _reply(self) -> dict[str, Any]:
        high = self.requested > 1
        lists: dict[str, Any] = dict.fromkeys(("issues", "suggestions", "missing_elements"), [])
        scores = ("completeness", "accuracy", "actionability", "confidence")
        quality = dict.fromkeys(scores, 90 if high else 70) | lists
        review = {"score": 0.9 if high else 0.6, "critique": "thin", "improvements": []}
        sections = [section.payload() for section in self.draft.source]
        improvement = {"reasoning": "thought", "sections": sections[:-1]}
        rewrite = {"reasoning": "", "sections": []} if high else improvement
        claims = sections[0]["claims"]
        replies: dict[str, dict[str, Any]] = {
            CRITIQUE: {
                "assessment": "NEEDS CORRECTION",
                "confidence": 0.8,
                "explanation": "the end is missing",
            },
            CORRECTION: {"sections": sections[:-1]},
            QUALITY: quality,
            QUALITY_REWRITE: quality | rewrite,
            IMPROVEMENT: improvement,
            REVIEW: review,
            REVIEW_REWRITE: review | rewrite,
            OUTLINE: {"chunks": list(TOPICS[:3])},
            SECTION: {"reasoning": "thought", "claims": claims, "comment": None},
        }
        return replies[self.name]


@dataclass
class Asked:
    """The models of one text, its facts, and the settings."""

    claims: ClaimText
    models: TextModels
    task: Task
    draft: Draft
    settings: DeliberationSettings = DeliberationSettings()
    budget: Budget = field(default_factory=lambda: Budget(0, CALLS, deadline_ms=600_000.0))


def ask_models(report: HighLevelReflectionReport, facts: RunFacts) -> Asked:
    """Fresh models for one text."""
    claims = ClaimText(facts, topics=TOPICS)
    draft = claims.draft(rule_sections(report, facts), author="given")
    models = {name: Pausing(name, draft) for name in TEXT_FORMS}
    prompts = {name: load_prompt(name) for name in TEXT_FORMS}
    return Asked(claims, TextModels(models, prompts), Task(QUESTION, draft.text), draft)


async def single(request: Asked) -> Deliberation:
    """One call that writes the text, and nothing after it."""
    text = request.draft.text
    await FirstDraft(request.models, request.claims, 1_500).generate(request.task, request.budget)
    return Deliberation(
        preset="single", status="accepted", initial=text, final=text, usage=request.budget.used,
        elapsed_ms=request.budget.elapsed_ms,
    )  # fmt: skip


async def reflect_once(request: Asked) -> Deliberation:
    """The reflection pass."""
    of = request.settings.reflection_pass
    return await run_pass(
        request.task, request.draft, of, request.budget,
        rules=claim_critics(request.claims), models=request.models,
        reviser=Corrector(request.models, request.claims, of.correction_tokens),
    )  # fmt: skip


async def improve_quality(request: Asked) -> Deliberation:
    """The quality loop on a given text."""
    of = request.settings.quality
    loop = QualityLoop(request.task, request.draft, of, request.budget, request.models, request.claims)
    done = with_checks(await loop.run(), request.claims)
    hits = 0 if loop.critic is None else loop.critic.hits
    return done.model_copy(update={"details": {**done.details, "hits": hits}})


async def review_once(request: Asked) -> Deliberation:
    """The review."""
    return await run_reviewed(
        request.task, request.draft, request.settings, request.budget, request.claims, models=request.models
    )


async def write_sections(request: Asked) -> Deliberation:
    """Chunked writing."""
    return await run_chunked(
        request.task, request.draft, request.settings, request.budget, request.claims, models=request.models
    )


PRESETS: dict[str, Preset] = {
    "single pass": single,
    "pass": reflect_once,
    "quality": improve_quality,
    "review": review_once,
    "chunked": write_sections,
}


Given = tuple[HighLevelReflectionReport, RunFacts]


def texts() -> list[Given]:
    """Reports of a run over embedded bars, each with the facts of its moment."""
    bars = load_embedded_bars(start=SPAN[0], end=SPAN[1])
    sink = MemorySink()
    result = asyncio.run(run_backtest(Settings(), bars, JournalWriter(sink)))
    report = result.session.slow_loop.last_report
    if report is None:
        raise ValueError(f"no report in {SPAN}")
    definitions = [version.definition for version in result.session.books.reader.active()]
    episodes = [episode for episode in result.trades if episode.known_at <= report.known_at]
    return [(report, RunFacts.of_report(report, episodes, definitions))]


def cost_of(
    name: str, given: Sequence[Given], before: Sequence[Deliberation]
) -> tuple[Cost, list[Deliberation]]:
    """What a preset costs over the texts; ratios are to `before`, the single pass, or to itself."""
    done = [
        asyncio.run(_run(PRESETS[name], ask_models(report, facts)))
        for report, facts in given
        for _ in range(REPEATS)
    ]
    base = before or done
    ms = [each.elapsed_ms for each in done]
    tokens = sum(each.usage.tokens for each in done)
    return Cost(
        name,
        sum(each.usage.calls for each in done) / len(done),
        tokens / len(done),
        sum(int(each.details.get("hits", 0)) for each in done),
        quantiles(ms),
        tokens / sum(each.usage.tokens for each in base),
        (quantiles(ms)["p50"] or 0.0) / (quantiles([each.elapsed_ms for each in base])["p50"] or 1.0),
        _peak_kb(PRESETS[name], *given[0]),
    ), done


def _peak_kb(preset: Preset, report: HighLevelReflectionReport, facts: RunFacts) -> float:
    """What one text takes at most beside the facts of its run, in kB; measured apart, for that is slow."""
    request = ask_models(report, facts)
    tracemalloc.start()
    asyncio.run(_run(preset, request))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e3


async def _run(preset: Preset, request: Asked) -> Deliberation:
    return await preset(request)


def all_costs() -> list[Cost]:
    """Every preset, the single pass first."""
    given = texts()
    found: list[Cost] = []
    single_pass: list[Deliberation] = []
    for name in PRESETS:
        cost, done = cost_of(name, given, single_pass)
        single_pass = single_pass or done
        found.append(cost)
    return found


def cost_table(costs: Sequence[Cost]) -> str:
    """One row a preset."""
    heads = ("preset", "calls", "tokens", "x single", "p50 ms", "p95 ms", "x single", "cache hits", "peak kB")
    rows = [
        (
            cost.preset,
            f"{cost.calls:.1f}",
            f"{cost.tokens:,.0f}",
            f"{cost.tokens_ratio:.1f}",
            f"{cost.ms['p50'] or 0:.0f}",
            f"{cost.ms['p95'] or 0:.0f}",
            f"{cost.time_ratio:.1f}",
            str(cost.hits),
            f"{cost.peak_kb:,.0f}",
        )
        for cost in costs
    ]
    return table(heads, rows)


def main() -> int:
    """Measure and print the table."""
    sys.stdout.write(f"{cost_table(all_costs())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
