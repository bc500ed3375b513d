"""`thinktwice ask-again` about a second reader: questions are rebuilt from a run's rows and asked again."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import prompts
from services.journal.chain import GENESIS_HASH, JournalRow, relink
from tests.agents.language_models.misbehaviour import WHOLE
from tests.agents.language_models.wire_server import READ, Handler, answer, in_turn, message
from tests.agents.strategies.questions import HOLD, Question, propose, reason
from tests.services.policy_checks.injections import answer as stated
from tests.services.store.stores import opened, seal_again
from tests.worker.cli.checking import run
from tests.worker.strategist_wire import StrategistOnTheWire
from tests.worker.wire import GOOD, wire
from tools.docs_pages import DOCS
from worker.settings import load_settings

CONFIG = """
[data]
symbols = ["AAPL"]
[policy_loop]
strategist = "model"
[reflection]
mode = "full"
budget_event_ms = 20000
budget_heartbeat_ms = 20000
[high_level]
enabled = false
[llm]
model = "anthropic/claude-test"
attempts = 1
breaker_failures = 1000
prices = [{ model = "claude-test", input_usd = 1.0, output_usd = 5.0 }]
[deliberation.pass]
enabled = false
"""
PROMPT = (prompts.FOLDER / "policy_level_reflection.txt").read_text("utf-8")
WEAK = [
    reason("feature", "close"),
    reason("case_rate", "all"),
]  # of the second, code cannot say that it holds
OBJECTIONS = [{"reason": 1, "code": "reason_too_weak"}]
OBJECTS = answer(
    message(stated(verdict="revise", comment="No.", findings=["memory_insufficient"], objections=OBJECTIONS))
)
INVENTED = answer(message(stated(verdict="block", findings=["made_up"])))
PROSE = answer(message("I would pass."))


def give_weak_reasons(question: Question) -> dict[str, Any]:
    return HOLD if question.task == "manage" else propose(question.bases[0]["id"], because=WEAK)


class Desk:
    """Commands in a folder that holds one recorded run of a model that agrees."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._monkeypatch = folder, monkeypatch

    def run(self, *words: str) -> Result:
        return run(*words)

    def record(self, *words: str) -> Result:
        """A run whose plans have a weak reason, and whose second reader agrees."""
        strategist = StrategistOnTheWire(give_weak_reasons)
        with wire(self._monkeypatch, strategist) as server:
            strategist.server = server
            return self.run(*words)

    def requested(self, handler: Handler, *words: str) -> tuple[Result, list[dict[str, Any]]]:
        """A command while a model answers on the wire, and the requests that the model saw."""
        with wire(self._monkeypatch, handler) as server:
            result = self.run(*words)
        return result, [body for _, body in server.requests]

    def document(self, handler: Handler, *words: str, code: int = 0) -> dict[str, Any]:
        result, _ = self.requested(handler, *words, "--json")
        assert result.exit_code == code, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def complaint(self, *words: str) -> str:
        result = self.run(*words)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        return result.stderr

    def rows(self) -> str:
        return self.run("journal", "latest", "--jsonl", "--telemetry").stdout


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run whose model agreed with the rules each time."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "full.toml").write_text(CONFIG, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        span = ("--from", "2003-01-01", "--to", "2003-09-30")
        result = Desk(folder, patch).record("backtest", "full.toml", *span)
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def desk(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name in [name for name in os.environ if name.startswith(("THINKTWICE_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    for name in ("thinktwice.db", "full.toml"):
        (tmp_path / name).write_bytes((recorded / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, monkeypatch)


def in_store(desk: Desk, *statements: str) -> None:
    """Change stored rows behind the back of the program."""
    with opened(desk.folder / "thinktwice.db") as store:
        for statement in statements:
            store.execute(statement)
    store.close()


def chain_anew(desk: Desk) -> None:
    """Give changed rows the hashes that they would have had, as of a run of another version."""
    with opened(desk.folder / "thinktwice.db") as store:
        head = GENESIS_HASH
        columns = "seq, ts_event, known_at, kind, symbol, unpacked(payload), telemetry, '', hash"
        for values in store.execute(f"SELECT {columns} FROM journal ORDER BY seq").fetchall():
            row = replace(JournalRow(*values), prev_hash=head)
            head = relink(row)
            store.execute("UPDATE journal SET hash = ? WHERE seq = ?", (head, row.seq))
        store.execute("UPDATE runs SET head_hash = ?", (head,))
    store.close()
    seal_again(desk.folder / "thinktwice.db")


def changed_prompt(desk: Desk) -> str:
    (desk.folder / "kinder.txt").write_text("Be kind. " + PROMPT, "utf-8")
    return "kinder.txt"


def other_model(desk: Desk) -> str:
    prices = "".join(
        f'{{ model = "claude-{name}", input_usd = 2.0, output_usd = 1.0 }},' for name in ("next", "test")
    )
    config = f'[llm]\nfast = "anthropic/claude-next"\nprices = [{prices}]\n'
    (desk.folder / "other.toml").write_text(config, "utf-8")
    return "other.toml"


AGAIN = ("ask-again", "latest")


def test_ask_again_of_a_model_that_always_agrees_does_not_spread_and_asks_what_the_run_asked(desk):
    before = desk.rows()
    calls = [json.loads(line) for line in before.splitlines() if '"model_call"' in line]
    found = [row["payload"]["call"] for row in calls]
    keys = {call["key"] for call in found if call["prompt"] == "policy_level_reflection"}
    document = desk.document(GOOD, *AGAIN, "--samples", "2")
    (arm,) = document["arms"]
    assert (document["prompt"], document["questions"]) == ("policy_level_reflection", len(keys))
    assert arm["asked"] == arm["answered"] == 2 * len(keys) > 6
    assert (arm["usual_share"], arm["as_recorded"], arm["stable"]) == (1.0, 1.0, len(keys))
    assert arm["means"] == {"counts_for_nothing": 0.0, "late": 0.0}
    assert arm["tokens"] == (READ + 7) * arm["asked"]
    assert arm["usd"] == pytest.approx(arm["asked"] * (READ * 1.0 + 7 * 5.0) / 1e6)
    first = document["answers"][0]
    assert first["decisions"] == [[first["recorded"]] * 2]
    (kept,) = (desk.folder / "cassettes").iterdir()
    calls = [json.loads(line)["payload"] for line in kept.read_text("utf-8").splitlines()]
    assert {call["call"]["key"] for call in calls if "call" in call} == keys, (
        "byte for byte what the run asked"
    )
    assert desk.rows() == before, "nothing is written to the run"


def test_ask_again_counts_other_verdicts_replies_that_count_for_nothing_and_failures(desk):
    turns = in_turn(GOOD, OBJECTS, INVENTED, PROSE, WHOLE["status_529"].handler, GOOD)
    document = desk.document(turns, *AGAIN, "--samples", "6", "--limit", "1", code=1)
    (arm,), (question,) = document["arms"], document["answers"]
    assert question["recorded"] == "pass"
    assert arm["decisions"] == {"pass": 4, "revise": 1}
    assert arm["failed"] == {"overloaded": 1}
    assert (arm["asked"], arm["answered"], arm["usual_share"], arm["as_recorded"]) == (6, 5, 0.8, 0.8)
    assert arm["means"]["counts_for_nothing"] == 0.4
    assert (arm["stable"], document["missing"]) == (0, 1)
    assert question["decisions"] == [["pass", "revise", "pass", "pass", "overloaded", "pass"]]


def test_ask_again_plays_back_what_a_folder_holds_without_key_or_network(desk):
    words = (*AGAIN, "--prompt", changed_prompt(desk), "--samples", "3", "--limit", "2", "--cassette", "kept")
    live = desk.document(in_turn(GOOD, OBJECTS, PROSE, GOOD), *words, code=0)
    assert len(list((desk.folder / "kept").iterdir())) == 2
    played = desk.run(*words, "--json")
    assert (played.exit_code, json.loads(played.stdout)) == (0, live)
    one, other = (desk.folder / "kept").iterdir()
    one.write_bytes(other.read_bytes())
    assert "delete it, and they are asked anew" in desk.complaint(*words)


def test_ask_again_stops_at_the_budget_of_a_run(desk):
    (desk.folder / "poor.toml").write_text("[llm.per_run]\ncalls = 2\n", "utf-8")
    words = (*AGAIN, "--config", "poor.toml", "--samples", "2", "--limit", "2")
    document = desk.document(GOOD, *words, code=1)
    assert [arm["failed"] for arm in document["arms"]] == [{}, {"budget": 2}]


def test_ask_again_of_more_samples_than_an_event_may_ask_asks_them_all(desk):
    (arm,) = desk.document(GOOD, *AGAIN, "--samples", "12", "--limit", "1")["arms"]
    assert (arm["answered"], arm["failed"]) == (12, {})


@pytest.mark.parametrize(("deadline", "late"), [("", 0.0), ("model_deadline_ms = 0.001\n", 1.0)])
def test_ask_again_counts_replies_for_which_the_run_would_not_have_waited(deadline, late, desk):
    """A budget of the rules is no deadline of a reader on daily bars: the run waited for seconds."""
    config = CONFIG.replace("20000", "0.001").replace("[reflection]\n", f"[reflection]\n{deadline}")
    (desk.folder / "hurried.toml").write_text(config, "utf-8")
    settings = load_settings(desk.folder / "hurried.toml").settings
    plain = json.dumps(settings.payload()).replace("'", "''")
    in_store(desk, f"UPDATE runs SET config = '{plain}', config_hash = '{settings.config_hash}'")
    seal_again(desk.folder / "thinktwice.db")
    (arm,) = desk.document(GOOD, *AGAIN, "--samples", "1", "--limit", "1")["arms"]
    assert (arm["answered"], arm["means"]["late"]) == (1, late)


def test_ask_again_without_any_answer_says_so_exits_1_and_keeps_nothing(desk):
    words = (*AGAIN, "--samples", "1", "--limit", "1", "--json")
    result, _ = desk.requested(WHOLE["status_529"].handler, *words)
    (arm,) = json.loads(result.stdout)["arms"]
    assert (result.exit_code, arm["answered"], arm["usual_share"]) == (1, 0, None)
    assert "1 replies are missing" in result.stderr
    assert [path.suffix for path in (desk.folder / "cassettes").iterdir()] == [".part"]


def test_ask_again_with_a_changed_prompt_shows_every_verdict_that_moved_and_exits_1(desk):
    words = (*AGAIN, "--prompt", changed_prompt(desk), "--samples", "1", "--limit", "3", "--json")
    before = desk.rows()
    result, requests = desk.requested(in_turn(GOOD, GOOD, GOOD, OBJECTS, OBJECTS, GOOD), *words)
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    kind = [request["system"][0]["text"].startswith("Be kind.") for request in requests]
    assert kind == [False] * 3 + [True] * 3
    (test,) = document["comparisons"]
    assert (document["same"], test["compared"], test["moved"]) == (False, 3, 2)
    assert test["moves"] == [{"from": "pass", "to": "revise", "count": 2}]
    assert test["p_value"] == 0.5
    prompts_asked = [arm["prompt_hash"] for arm in document["arms"]]
    assert len(set(prompts_asked)) == 2
    assert [answer["decisions"][1] for answer in document["answers"]] == [["revise"], ["revise"], ["pass"]]
    assert desk.rows() == before
    assert keys_of(document) == set(documented_keys()) - OF_OTHER_SEATS
    again = desk.run(*words[:-1])
    assert again.exit_code == 1
    for part in (
        "policy_level_reflection of r0001: 3 questions, 1 samples each", "claude-test", "revise 2",
        "arm 1     2 of 3", "0.5  none: too few", "pass  revise", "AAPL",
    ):  # fmt: skip
        assert part in again.stdout, part


def test_ask_again_with_the_same_verdicts_exits_0(desk):
    words = ("--prompt", changed_prompt(desk), "--samples", "1", "--limit", "4")
    document = desk.document(GOOD, *AGAIN, *words)
    assert document["same"]
    (test,) = document["comparisons"]
    assert (test["moved"], test["p_value"]) == (0, None)


def test_ask_again_of_a_prompt_and_a_model_asks_each_prompt_of_each_model(desk):
    words = (
        "--prompt",
        changed_prompt(desk),
        "--config",
        other_model(desk),
        "--samples",
        "1",
        "--limit",
        "1",
    )
    next_good = answer(message(stated(), model="claude-next"))
    turns = in_turn(GOOD, GOOD, next_good, next_good)
    result, requests = desk.requested(turns, *AGAIN, *words, "--json")
    assert result.exit_code == 0, result.output
    questions = [(body["model"], body["system"][0]["text"].startswith("Be kind.")) for body in requests]
    assert questions == [(f"claude-{name}", kind) for name in ("test", "next") for kind in (False, True)]
    document = json.loads(result.stdout)
    assert [arm["model"] for arm in document["arms"]] == ["anthropic/claude-test"] * 2 + [
        "anthropic/claude-next"
    ] * 2
    assert [each["second"] for each in document["comparisons"]] == [1, 2, 3]


OPEN = {"left_out": "REASON", "decisions": "DECISION", "failed": "FAILURE", "means": "FACT"}
OF_OTHER_SEATS = {"answers[].state", "answers[].question"}


def keys_of(document: dict[str, Any], path: str = "") -> set[str]:
    """Keys as the page writes them."""
    found = set()
    for key, value in document.items():
        name = f"{path}{key}"
        if isinstance(value, dict) and key in OPEN:
            found.add(f"{name}.{OPEN[key]}")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            found |= set[str]().union(*(keys_of(row, f"{name}[].") for row in value))
        else:
            found.add(f"{name}[]" if isinstance(value, list) else name)
    return found


def documented_keys() -> list[str]:
    page = (DOCS / "reference" / "ask-again-document.md").read_text("utf-8")
    return re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)


def test_page_of_the_document_names_each_key_once():
    assert len(documented_keys()) == len(set(documented_keys()))


def without_a_model(desk: Desk) -> str:
    desk.run("backtest", "--symbols", "AAPL", "--to", "2000-06-30")
    return "latest"


def broken(text: str) -> Callable[[Desk], str]:
    def write(desk: Desk) -> str:
        (desk.folder / "broken.txt").write_text(text, "utf-8")
        return "broken.txt"

    return write


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("latest",), "ANTHROPIC_API_KEY"),
        ((without_a_model, "--seat", "reader"), "thinktwice backtest --reflection full"),
        (("latest", "--prompt", "none.txt"), "'none.txt' cannot be read"),
        (("latest", "--prompt", broken("no divider")), "=== request ==="),
        (("latest", "--prompt", broken("a\n=== request ===\n{{verdict}}")), "{{findings}}"),
        (("latest", "--prompt", changed_prompt, "--seat", "strategist"), "leave one of them out"),
        (("latest", "--seat", "judge"), "there are reader, strategist"),
        (("latest", "--config", "full.toml"), "ANTHROPIC_API_KEY"),
        (("latest", "--cassette", "full.toml"), "name another folder"),
        (("latest", "--export", "csv", "there"), "there is inspect"),
    ],
)
def test_ask_again_that_cannot_be_done_error_names_the_next_step(desk, words, part):
    reply = desk.complaint("ask-again", *(word if isinstance(word, str) else word(desk) for word in words))
    assert part in reply
    assert reply.count("\n") == 1


def test_ask_again_of_a_run_whose_rows_were_changed_error_says_which(desk):
    in_store(
        desk,
        """UPDATE journal SET payload = replace(unpacked(payload), '"conviction":0', '"conviction":1')""",
    )
    assert "is damaged: it was changed after it was written" in desk.complaint(*AGAIN)
    chain_anew(desk)
    assert "does not fit this version (conviction" in desk.complaint(*AGAIN)
