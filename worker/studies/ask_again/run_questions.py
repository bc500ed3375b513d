"""What a stored run asked with one prompt, and the arms of a study that asks it again.

The words are the present ones and those of a file; the model is the run's and that of a configuration. Both
given, there are four arms.
"""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prompts import PromptTemplate, load_prompt
from schemas.errors import ConfigError, first_fault
from schemas.settings import Settings
from schemas.settings.providers import NO_MODEL, OWN_PROVIDER
from services.journal.index import JournalIndex
from services.store import RunRecord, Store
from worker.runs.progress import told_rows
from worker.runs.stored_settings import stored_settings
from worker.settings import load_settings
from worker.studies.ask_again.asking import READER, STRATEGIST, RunQuestions, StudyArm
from worker.studies.ask_again.second_reader import read_reader_questions
from worker.studies.ask_again.strategist import read_strategist_questions

PROMPTS = {"reader": READER, "strategist": STRATEGIST}  # by `--seat`


def prompt_of(seat: str | None, template: PromptTemplate | None, record: RunRecord) -> str:
    """The prompt that is asked again: that of the seat, of the template, or the one that the run asked.

    Raises:
        ConfigError: there is no such seat, or the template is of another prompt.
    """
    if seat is not None and seat not in PROMPTS:
        raise ConfigError(f"--seat {seat!r}: there are {', '.join(PROMPTS)}")
    if seat is not None and template is not None and template.name != PROMPTS[seat]:
        raise ConfigError(f"--seat {seat}: --prompt is a template of {template.name}: leave one of them out")
    if template is not None:
        return template.name
    reads = stored_settings(record).reflection.mode == "full"
    return PROMPTS[seat or ("reader" if reads else "strategist")]


def arms_of(
    record: RunRecord,
    prompt: str,
    template: PromptTemplate | None,
    config: Path | None,
    *,
    asks: bool = True,
) -> list[StudyArm]:
    """The present words first, of the run's model first; a run without a model leaves that of `config`.

    Who does not ask needs no model: then one that is named later stands for it.
    """
    models = [None, config] if config is not None and stored_settings(record).uses_models else [config]
    templates = [load_prompt(prompt), *([] if template is None else [template])]
    return [
        StudyArm(words, _settings(record, prompt, model, asks=asks))
        for model in models
        for words in templates
    ]


async def read_questions(store: Store, record: RunRecord, prompt: str) -> RunQuestions:
    """The questions to the second reader or to the strategist.

    Raises:
        ConfigError: the run holds none.
        StoreError: its rows cannot be read.
    """
    index = await JournalIndex.read(told_rows(store.journal.rows(record.run_id), record.events))
    if prompt == STRATEGIST:
        return read_strategist_questions(record.run_id, index, stored_settings(record))
    return read_reader_questions(record.run_id, index, market_waits=record.data.get("lock_step", True))


def _settings(record: RunRecord, prompt: str, config: Path | None, *, asks: bool) -> Settings:
    """The run's, with what is given now of `[llm]`; of its other models none is asked or needs a key."""
    values, given = stored_settings(record).payload(), load_settings(config)
    for key in given.origins:
        if key.startswith("llm."):
            _copy(given.settings.payload(), values, key.split("."))
    if not asks and values["llm"]["model"] == NO_MODEL:
        values["llm"]["model"] = f"{OWN_PROVIDER}/later"
    values["policy_loop"]["strategist"] = "model" if prompt == STRATEGIST else "rules"
    values["judge"]["replan"] = values["planner"]["judge"] = "rules"
    mode = values["reflection"]["mode"]
    values["reflection"]["mode"] = "full" if prompt == READER else mode if mode != "full" else "deterministic"
    values["runtime"] |= {"llm": "live", "cassette": None}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigError(first_fault(error)) from error


def _copy(source: dict[str, Any], target: dict[str, Any], steps: list[str]) -> None:
    for step in steps[:-1]:
        source, target = source[step], target[step]
    target[steps[-1]] = source[steps[-1]]
