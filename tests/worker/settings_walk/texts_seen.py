"""Looks at settings of texts: what models are asked about a text, with how many tokens, and what stands."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from agents.model_seats import text_models_of
from agents.strategies.configured import model_strategist
from agents.strategies.model_strategist import PlanReaders
from agents.strategies.rule_strategist import RuleStrategist
from prompts import load_prompt
from schemas.settings import Settings
from services.deliberation.forms import (
    CRITIQUE,
    IMPROVEMENT,
    OUTLINE,
    QUALITY,
    QUALITY_REWRITE,
    REASONS,
    REVIEW,
    REVIEW_REWRITE,
    SECTION,
)
from services.deliberation.text_models import TextModels
from services.high_level.narrator import Narrator as Teller
from services.high_level.report_sections import TOPICS
from services.model_calls.language_model import ModelReply
from services.model_calls.wording import PLAIN_RUN
from tests.agents.strategies.test_model_strategist import SNAPSHOT, registry
from tests.services.deliberation.claim_texts import GRADE, MEAN
from tests.services.deliberation.recorded import at_last_report, last_report
from tests.services.deliberation.scripted import chunk, improved, section
from tests.services.high_level.narrators import FALSE, TRUE, Narrator
from tests.worker.test_reasons_of_models import GIVEN, MENDED, Strategist

LACKING = {"issues": ["one"], "suggestions": [], "missing_elements": []}
SCORES = dict.fromkeys(("completeness", "accuracy", "actionability", "confidence"), 78) | LACKING
NEEDS = {"assessment": "NEEDS CORRECTION", "confidence": 0.65, "explanation": "the first sentence repeats"}
YEARS = [MEAN | {"of": {"period": f"{year}"}} for year in range(2001, 2012)]
IMPROVED = improved(section(MEAN, GRADE))
REPLIES: dict[str, Any] = {
    CRITIQUE: NEEDS,
    REASONS: {"because": MENDED, "comment": None},
    QUALITY: SCORES,
    IMPROVEMENT: IMPROVED,
    QUALITY_REWRITE: SCORES | IMPROVED,
    REVIEW_REWRITE: {"score": 0.65, "critique": "thin", "improvements": ["more"]} | IMPROVED,
    REVIEW: {"score": 0.65, "critique": "thin", "improvements": ["more"]},
    OUTLINE: {"chunks": list(TOPICS[:4])},
    SECTION: chunk(MEAN),
}


@dataclass
class Scribe:
    """Answers each prompt about texts with one reply, and keeps what it was asked."""

    requested: list[tuple[str, int, str]] = field(default_factory=list)

    def models(self, settings: Settings) -> TextModels:
        """Those that the settings ask."""
        return self.of(text_models_of(settings))

    def of(self, names: Any) -> TextModels:
        """One for each name."""
        return TextModels(
            {name: Voice(name, self) for name in names}, {name: load_prompt(name) for name in names}
        )


@dataclass
class Voice:
    """One prompt of the scribe."""

    name: str
    scribe: Scribe

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.scribe.requested.append((self.name, max_tokens, prompt))
        times = sum(name == self.name for name, _, _ in self.scribe.requested)
        reply = dict(REPLIES[self.name])
        if self.name in (REVIEW, REVIEW_REWRITE):
            reply["score"] = min(0.69, 0.5 + 0.03 * times)  # each text is a little better than the last
        if self.name in (IMPROVEMENT, QUALITY_REWRITE, REVIEW_REWRITE):
            reply["sections"] = [section(MEAN, GRADE, *YEARS[:times])]
        return ModelReply(json.dumps(reply), "m", 10, 10, 0.0)


def read_shown(settings: Settings) -> Any:
    """What stands of a narrative, and everything that models were asked about it."""
    scribe, model = Scribe(), Narrator([(*TRUE, *FALSE), TRUE])
    teller = Teller(
        load_prompt("high_level_reflection"),
        model,
        settings.deliberation,
        scribe.models(settings),
    )
    narrative = asyncio.run(teller.tell(last_report(), at_last_report()))
    done = narrative.deliberation
    assert done is not None
    events = [event.payload() for event in done.events]
    return narrative.text, narrative.refused, len(model.prompts), scribe.requested, done.status, events


def told_in_one_look(settings: Settings) -> Any:
    """The same of a narrative in which nothing fails."""
    scribe, model = Scribe(), Narrator([TRUE])
    teller = Teller(
        load_prompt("high_level_reflection"),
        model,
        settings.deliberation,
        scribe.models(settings),
    )
    narrative = asyncio.run(teller.tell(last_report(), at_last_report()))
    assert narrative.deliberation is not None
    return narrative.text, len(model.prompts), scribe.requested, narrative.deliberation.status


def reread(settings: Settings) -> Any:
    """The reasons that stand of a model's plan, what became of its rationale, and what was asked about it."""
    scribe, mind = Scribe(), Strategist(GIVEN)
    reader = registry().reader()
    asking = model_strategist(
        settings, mind, RuleStrategist(reader), PlanReaders(reader, lambda name: None), PLAIN_RUN,
        texts=scribe.of((CRITIQUE, REASONS)),
    )  # fmt: skip
    answer = asyncio.run(asking.answer(SNAPSHOT, None))
    done = answer.deliberation
    assert answer.proposal is not None
    assert done is not None
    return answer.proposal.because, done.skip_reason, done.status, scribe.requested


def asked_models(settings: Settings) -> Any:
    """Which model is asked with which prompt."""
    return text_models_of(settings)


def patience(settings: Settings) -> Any:
    """How long a model is given for the critiques of a text."""
    given: list[float] = []

    @dataclass
    class Waiting:
        async def complete(
            self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float
        ) -> ModelReply:
            given.append(round(deadline_ms, -3))
            return ModelReply(json.dumps(SCORES), "m", 1, 1, 0.0)

    texts = TextModels({QUALITY: Waiting()}, {QUALITY: load_prompt(QUALITY)})
    teller = Teller(load_prompt("high_level_reflection"), Narrator([TRUE]), settings.deliberation, texts)
    asyncio.run(teller.tell(last_report(), at_last_report()))
    return given
