"""The questions of a run as a dataset of inspect_ai, and a scorer that reads a reply as a run does.

The package is loaded by the scorer alone; an export needs neither it nor a key.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError, ModelError
from schemas.settings import Settings
from services.model_calls.language_model import ModelReply
from services.store import open_store
from worker.studies.ask_again.asking import RunQuestion, RunQuestions, StudyArm
from worker.studies.ask_again.run_questions import arms_of, read_questions

if TYPE_CHECKING:
    from inspect_ai.scorer import Scorer

DATASET, TASK = "dataset.jsonl", "ask_again.py"
HASH_DIGITS = 8
SOURCE = '''"""Questions of run {run}: `inspect eval {task} --model PROVIDER/NAME --epochs 5` asks them."""

from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.solver import generate

from {module} import decision_scorer


@task
def ask_again(db: str = {db!r}) -> Task:
    """A reply is right where it comes to the decision that the run came to."""
    questions = json_dataset(str(Path(__file__).with_name({dataset!r})))
    return Task(dataset=questions, solver=generate(), scorer=decision_scorer(db, {run!r}, {prompt!r}))
'''


class SilentModel:
    """Keeps what it is asked and does not answer, or answers each question alike."""

    def __init__(self, reply: str | None = None) -> None:
        self.requested: list[tuple[str, str]] = []
        self._reply = reply

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        """The reply.

        Raises:
            ModelError: there is none.
        """
        self.requested.append((system, prompt))
        if self._reply is None:
            raise ModelError("nobody is asked")
        return ModelReply(self._reply, "given", 0, 0, 0.0)


async def export_questions(
    questions: RunQuestions, requests: Sequence[RunQuestion], arms: Sequence[StudyArm], db: str, folder: Path
) -> int:
    """Write dataset and task of every question in the words of each arm; how many samples it has.

    Raises:
        ConfigError: the folder cannot be written.
    """
    samples = []
    for arm in {arm.template.hash: arm for arm in arms}.values():
        for question in requests:
            model, words = SilentModel(), arm.template.hash[:HASH_DIGITS]
            await question.ask(model, arm.settings, arm.template)
            about, (system, prompt) = question.about, model.requested[0]
            texts = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
            sample: dict[str, Any] = {"id": f"{words}-{about['seq']}", "input": texts}
            sample |= {"target": question.recorded or "", "metadata": {**about, "prompt": words}}
            samples.append(sample)
    names = {"run": questions.run_id, "prompt": questions.prompt, "db": db, "module": __name__}
    lines = "".join(f"{json.dumps(sample)}\n" for sample in samples)
    _write(folder, {DATASET: lines, TASK: SOURCE.format(**names, dataset=DATASET, task=TASK)})
    return len(samples)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"--export {str(folder)!r}: {error.strerror}: name another folder") from error


def decision_scorer(db: str, run: str, prompt: str) -> "Scorer":
    """A scorer of inspect_ai: the decision that a reply comes to, correct where it is the target.

    Args:
        db: address of the store that holds the run.
        run: its id.
        prompt: name of the prompt that is asked.
    """
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, Target, accuracy, scorer, stderr

    known: dict[int, tuple[RunQuestion, Settings, StudyArm]] = {}

    async def load() -> None:
        async with await open_store(db, create=False, read_only=True) as store:
            record = await store.runs.find(run)
            (arm,) = arms_of(record, prompt, None, None, asks=False)
            found = await read_questions(store, record, prompt)
            known.update({each.about["seq"]: (each, arm.settings, arm) for each in found.requested})

    @scorer(metrics=[accuracy(), stderr()])
    def decision() -> "Scorer":
        async def score(state: Any, target: Target) -> Score:
            if not known:
                await load()
            question, settings, arm = known[state.metadata["seq"]]
            answer = await question.ask(SilentModel(state.output.completion), settings, arm.template)
            value = CORRECT if answer.decision == target.text else INCORRECT
            return Score(value=value, answer=answer.decision, metadata=dict(answer.facts))

        return score

    return decision()
