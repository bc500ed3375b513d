"""Questions of a run exported for inspect_ai, and evaluated by the package itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.policy_checks.injections import answer as stated
from tests.worker.cli.test_ask_again import OBJECTIONS, PROMPT, Desk, desk, recorded  # noqa: F401

ROOT = Path(__file__).resolve().parents[4]
AGREES = stated()
OBJECTS = stated(verdict="revise", findings=["memory_insufficient"], objections=OBJECTIONS)
EXPORT = ("ask-again", "latest", "--limit", "3", "--export", "inspect", "there")


# In a process of its own: the package leaves streams open, which is an error here.
EVALUATION = """
import json, runpy, sys
from inspect_ai import eval as evaluate
from inspect_ai.model import ModelOutput, ModelUsage, get_model
folder, replies = sys.argv[1], json.loads(sys.argv[2])
task = runpy.run_path(f"{folder}/ask_again.py")["ask_again"]()
outputs = [ModelOutput.from_content("mockllm/model", reply) for reply in replies]
for output in outputs:
    output.usage = ModelUsage()  # what is not counted needs no table from the network
model = get_model("mockllm/model", custom_outputs=outputs)
how = {"display": "none", "log_dir": f"{folder}/logs", "max_connections": 1, "max_samples": 1}
(log,) = evaluate(task, model=model, **how)
scores = [sample.scores["decision"] for sample in log.samples or ()]
print(json.dumps({
    "status": log.status,
    "error": log.error and log.error.message,
    "scores": [[score.answer, score.value, score.metadata] for score in scores],
    "accuracy": log.results.scores[0].metrics["accuracy"].value if log.results else None,
}))
"""


def evaluated(folder, *replies):
    """What comes of the exported task with a model that gives these replies, one after the other."""
    words = [sys.executable, "-c", EVALUATION, str(folder), json.dumps(replies)]
    done = subprocess.run(words, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.splitlines()[-1])


def test_exported_questions_are_those_of_the_run_with_its_decisions_as_targets(desk):  # noqa: F811
    (desk.folder / "kinder.txt").write_text("Be kind. " + PROMPT, "utf-8")
    done = desk.run(*EXPORT, "--prompt", "kinder.txt")
    assert done.exit_code == 0, done.output
    assert "3 questions" not in done.stdout, "three in each of two wordings"
    assert "6 questions of r0001 for inspect_ai in there" in done.stdout
    samples = [
        json.loads(line) for line in (desk.folder / "there" / "dataset.jsonl").read_text("utf-8").splitlines()
    ]
    assert len({sample["id"] for sample in samples}) == len(samples) == 6
    assert {sample["target"] for sample in samples} == {"pass"}
    kind = [sample["input"][0]["content"].startswith("Be kind.") for sample in samples]
    assert kind == [False] * 3 + [True] * 3
    assert not (desk.folder / "cassettes").exists(), "nobody was asked"


def test_exported_questions_are_scored_by_inspect_as_a_run_reads_a_reply(desk):  # noqa: F811
    assert desk.run(*EXPORT).exit_code == 0
    found = evaluated(desk.folder / "there", AGREES, OBJECTS, "I would pass.")
    assert (found["status"], found["error"]) == ("success", None)
    late = {"late": 0.0}
    assert sorted(found["scores"], key=str) == [
        ["pass", "C", {"counts_for_nothing": 0.0} | late],
        ["pass", "C", {"counts_for_nothing": 1.0} | late],  # it cannot be read: the rules' verdict stands
        ["revise", "I", {"counts_for_nothing": 0.0} | late],
    ]
    assert found["accuracy"] == pytest.approx(2 / 3)


def test_export_into_a_file_is_refused(desk):  # noqa: F811
    (desk.folder / "there").write_text("x", "utf-8")
    assert "name another folder" in desk.complaint(*EXPORT)
