"""Puts the questions of a run to a model again; an arm is a template and the settings of a model.

Accounted, retried and within the budget, on an account of its own; nothing is written to a run. The replies
of an arm are kept in a file of its own once all have come, and played back from there without a key.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agents.model_seats import seats_of
from agents.strategies import model_strategist
from prompts import PromptError, PromptTemplate, load_prompt, template_from_text
from schemas.canonical import content_hash
from schemas.errors import CassetteMiss, ConfigError
from schemas.settings import Settings
from services import policy_level_reflection_service
from services.model_calls.language_model import LanguageModel
from services.text.given_files import read_text
from worker.studies.study_models import open_models

READER, STRATEGIST = policy_level_reflection_service.PROMPT, model_strategist.PROMPT
SEATS = {READER: "fast", STRATEGIST: "strategist"}  # of `Models`
Progress = Callable[[int, int], None]
STEM_DIGITS = 16


@dataclass(frozen=True)
class Answer:
    """What one asking came to.

    Attributes:
        decision: its name, or how it failed.
        replied: whether the model had its say; else there is no decision.
        plan: hash of what was decided in full.
        facts: further figures, by name.
    """

    decision: str
    replied: bool = True
    plan: str | None = None
    facts: Mapping[str, float] = field(default_factory=dict)
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RunQuestion(ABC):
    """A question of a run.

    Attributes:
        about: where it comes from; `seq` is its place.
        known_at: when it was asked, ns.
        symbol: that it is about; None: none alone.
        recorded: the decision that the run came to; None where none is kept.
    """

    about: Mapping[str, Any]
    known_at: int
    symbol: str | None = None
    recorded: str | None = None

    @abstractmethod
    async def ask(self, model: LanguageModel, settings: Settings, template: PromptTemplate) -> Answer:
        """What came of one asking, but for its cost."""


@dataclass(frozen=True)
class RunQuestions:
    """What a run asked one prompt, in order.

    Attributes:
        prompt: its name.
        left_out: how many are not asked, by the reason.
        bare: how many of a strategist's had nothing gathered beside them.
    """

    run_id: str
    prompt: str
    requested: Sequence[RunQuestion]
    left_out: Mapping[str, int] = field(default_factory=dict)
    bare: int = 0


@dataclass(frozen=True)
class StudyArm:
    """The words, and whom they are put to."""

    template: PromptTemplate
    settings: Settings

    @property
    def model(self) -> str:
        """Who is asked."""
        return seats_of(self.settings)[SEATS[self.template.name]]

    @property
    def stem(self) -> str:
        """Name of the file with the replies."""
        llm = self.settings.llm
        questions = [self.template.hash, llm.base_url, self.model, llm.anonymise]
        return content_hash(questions)[:STEM_DIGITS]


async def ask_all(
    questions: Sequence[RunQuestion],
    arm: StudyArm,
    environment: Mapping[str, str],
    *,
    samples: int,
    folder: Path,
    name: str,
    progress: Progress,
) -> list[list[Answer]]:
    """The samples of each question, asked and kept, or played back from `folder`.

    `name` begins that of the file and says what is asked; `progress` is told the replies so far and in all.

    Raises:
        ConfigError: no key, no price, or a folder or file that cannot be used.
    """
    kept, part = _files(folder, f"{name}-{arm.stem}")
    replay = kept.exists()
    runtime = {"llm": "replay", "cassette": str(kept)} if replay else {"llm": "record", "cassette": str(part)}
    values = arm.settings.payload()
    values["runtime"] |= runtime
    found: list[list[Answer]] = []
    async with open_models(Settings.model_validate(values), environment) as opened:
        model, spent = getattr(opened.models, SEATS[arm.template.name]), opened.account.ledger.run
        model.caller = replace(model.caller, prompt_hash=arm.template.hash)
        try:
            for question in questions:
                found.append([])
                for _ in range(samples):
                    opened.at(question.known_at, question.symbol)
                    before = replace(spent)
                    answer = await question.ask(model, arm.settings, arm.template)
                    tokens, usd = spent.tokens - before.tokens, spent.usd - before.usd
                    found[-1].append(replace(answer, tokens=tokens, usd=usd))
                    progress(sum(map(len, found)), len(questions) * samples)
        except CassetteMiss as error:
            raise ConfigError(
                f"{str(kept)!r} was made of other questions or settings: delete it, and they are asked anew"
            ) from error
    if not replay and all(answer.replied for row in found for answer in row):
        os.replace(part, kept)
    return found


def _files(folder: Path, stem: str) -> tuple[Path, Path]:
    """A cassette, and where it grows until it is whole."""
    kept = folder / f"{stem}.jsonl"
    part = kept.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"--cassette {str(folder)!r}: {error.strerror}: name another folder") from error
    return kept, part


def read_template(path: Path) -> PromptTemplate:
    """The template of a file, named after the prompt whose placeholders it has: each question fills its own.

    Raises:
        ConfigError: the file cannot be read, or is no template of a prompt that is asked again.
    """
    try:
        text = read_text(path, ConfigError)
        found = template_from_text(str(path), text).placeholders
    except (OSError, UnicodeDecodeError, PromptError) as error:
        raise ConfigError(f"--prompt {str(path)!r} cannot be read: {error}") from error
    known = {name: load_prompt(name).placeholders for name in SEATS}
    for name, placeholders in known.items():
        if found == placeholders:
            return template_from_text(name, text)
    names = {name: ", ".join("{{" + each + "}}" for each in sorted(known[name])) for name in known}
    either = " or ".join(f"{name} ({words})" for name, words in names.items())
    raise ConfigError(f"--prompt {str(path)!r}: give it exactly the placeholders of {either}")
