"""`thinktwice ask`: answers by rules with rows behind their figures, its exit codes, its clock, bad input."""

import hashlib
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import date, timedelta

import pytest

from agents.answering import rules
from agents.answering.of_trades import of_episodes
from agents.answering.statements import Part, Reply, Statement
from schemas.canonical import ns_to_datetime
from services.text.claims import sentences
from tests.worker.cli.terminals import in_terminal
from tests.worker.evidence_stores import CLOCK, EARLIER, store_run
from tools.docs_pages import DOCS

DB = "thinktwice.db"
QUESTIONS = (
    "why did channel_breakout lose?",
    "what does the market of IBM look like?",
    "how did mean_reversion do on MSFT?",
    "which trades of AAPL won?",
    "why did the last trade of IBM lose?",
    "show me the rules of channel_breakout",
    "what is proven about trend_pullback?",
    "what did the judge change?",
    "would a long plan of channel_breakout on IBM pass?",
    "what does the latest report say?",
)
FIELDS = [
    "question", "run_id", "known_at", "status", "answer", "clarification", "confidence", "citations",
    "claims", "tool_calls", "iterations", "refined", "complete", "reasoning", "two_phase", "plan_id", "usage",
]  # fmt: skip


@pytest.fixture(scope="session")
def stored_to_ask(tmp_path_factory):
    return store_run(tmp_path_factory.mktemp("asked") / DB)


@pytest.fixture(scope="session")
def ended_earlier(tmp_path_factory):
    return store_run(tmp_path_factory.mktemp("earlier") / DB, EARLIER)


@pytest.fixture
def desk(shell, stored_to_ask):
    shutil.copy(stored_to_ask, shell.folder / DB)
    return shell


def asked(shell, *words, code=0):
    result = shell.run("ask", *words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def figures(text):
    return re.findall(r"[-+]?\d+\.\d+R|(?:won|lost) \d+", text)


@pytest.mark.parametrize("whom", ["channel_breakout", "IBM"])
def test_question_that_names_a_day_is_answered_as_of_it_with_nothing_from_later(desk, whom):
    day = CLOCK[:10]
    told = asked(desk, f"how did {whom} do as of {day}?")
    then = asked(desk, f"how did {whom} do?", "--at", f"{day}T23:59:59Z")
    now = asked(desk, f"how did {whom} do?")
    assert figures(told["answer"]) == figures(then["answer"]) != figures(now["answer"])
    assert f"As of {day}: {whom} won" in told["answer"]
    assert all(claim["verdict"] == "verified" for claim in told["claims"])


def without_times(document):
    return {**document, "tool_calls": [{**call, "latency_ms": 0} for call in document["tool_calls"]]}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_figure_of_an_answer_names_a_row_that_the_journal_shows(desk, question):
    told = asked(desk, question)
    assert list(told) == FIELDS
    assert (told["status"], told["run_id"], told["plan_id"]) == ("answered", "r0001", None)
    rows: dict[int, str] = {}
    for kind in {citation["kind"] for citation in told["citations"]}:
        lines = desk.run("journal", "r0001", "--kind", kind, "--jsonl").stdout.splitlines()
        rows |= {row["seq"]: row["kind"] for row in map(json.loads, lines)}
    assert told["citations"]
    assert all(rows[citation["seq"]] == citation["kind"] for citation in told["citations"])
    assert [citation["n"] for citation in told["citations"]] == list(range(1, len(told["citations"]) + 1))
    marks = {int(mark) for mark in re.findall(r"\[(\d+)\]", told["answer"])}
    assert marks == {citation["n"] for citation in told["citations"]}
    unquoted = re.sub(r"“[^”]*”", "“”", told["answer"])
    bare = [
        sentence.text
        for sentence in sentences(unquoted)
        if re.search(r"\d", sentence.text) and "[" not in sentence.text
    ]
    assert bare == []


def test_page_of_the_document_has_its_keys(desk):
    told = asked(desk, QUESTIONS[0])
    page = (DOCS / "reference" / "answer-document.md").read_text("utf-8")
    keys = re.findall(r"^\| `([^`]+)`", page, re.M)
    inner = {"citations": "[].", "tool_calls": "[].", "usage": "."}
    expected = []
    for name, value in told.items():
        if name == "claims":
            expected.append("claims[]")
            assert all(key in page for key in value[0])
        elif name in inner:
            one = value if isinstance(value, dict) else value[0]
            expected += [f"{name}{inner[name]}{key}" for key in one]
        else:
            expected.append(name)
    assert keys == expected


@pytest.mark.parametrize("question", QUESTIONS)
def test_answer_by_rules_comes_whole_through_its_own_fact_check(desk, question):
    told = asked(desk, question)
    assert [claim for claim in told["claims"] if claim["verdict"] != "verified"] == []
    assert told["claims"]
    assert told["usage"] == {"calls": 0, "input_tokens": 0, "output_tokens": 0}


def test_false_sentence_is_struck_and_its_claim_told(desk, monkeypatch):
    def lies(reply: Reply):
        yield Statement("channel_breakout lost 999 trades.", reply.rows, Part.WHAT)
        yield reply.tell("The close of IBM was 4321.5.", Part.WHAT)
        yield from of_episodes(reply)

    monkeypatch.setitem(rules.TELLERS, "episodes", lies)
    told = asked(desk, QUESTIONS[0])
    assert "999" not in told["answer"]
    assert "4321" not in told["answer"]
    (found,) = [claim for claim in told["claims"] if claim["verdict"] == "contradicted"]
    assert found["said"] == "999"


def test_answer_as_of_a_time_is_the_same_whatever_came_after_it(desk, ended_earlier):
    words = [(question, "--at", CLOCK) for question in QUESTIONS]
    late = [without_times(asked(desk, *word)) for word in words]
    shutil.copy(ended_earlier, desk.folder / DB)
    assert [without_times(asked(desk, *word)) for word in words] == late
    assert {told["known_at"][:10] for told in late} == {CLOCK}
    moments = [told["answer"] for told in late]
    assert max(max(re.findall(r"\d{4}-\d\d-\d\d", text), default="") for text in moments) <= CLOCK
    assert asked(desk, QUESTIONS[0])["answer"] != late[0]["answer"], "without the clock it is another answer"


def test_trade_of_a_day_is_the_one_that_was_entered_or_left_on_it(desk):
    rows = map(json.loads, desk.run("journal", "r0001", "--kind", "episode", "--jsonl").stdout.splitlines())
    trades = [row["payload"]["episode"] for row in rows]
    trade = next(item for item in trades if item["direction"] == "long" and item["hold_bars"] > 3)
    entered, left = (f"{ns_to_datetime(trade[name]):%Y-%m-%d}" for name in ("entry_label", "exit_label"))
    for day in (entered, left):
        told = asked(desk, f"Why did we go long {trade['symbol']} on {day}?")
        assert [call["tool"].removeprefix("thinktwice.") for call in told["tool_calls"]] == [
            "episodes",
            "explain_fill",
        ]
        assert f"{trade['symbol']} long, {entered} to {left}" in told["answer"]
        assert "nothing was bought by it" not in told["answer"]
    between = f"{ns_to_datetime(trade['entry_label'] + 24 * 3_600 * 10**9):%Y-%m-%d}"
    told = asked(desk, f"Why did we go long {trade['symbol']} on {between}?")
    assert (
        f"Not known as of 2006-12-30: a long trade of {trade['symbol']} entered or left on {between}"
        in told["answer"]
    )
    early = asked(desk, f"Why did we go long {trade['symbol']} on {entered}?", "--at", f"{entered}T23:59:59Z")
    opened = f"1 long position of {trade['symbol']} opened on {entered} is open still"
    assert early["answer"].startswith(opened), "its end is not known yet"
    assert early["known_at"] == f"{date.fromisoformat(entered) + timedelta(days=1)}T00:00:00+00:00"


def test_id_of_a_trade_is_explained_by_the_fill_that_closed_it(desk):
    rows = map(json.loads, desk.run("journal", "r0001", "--kind", "episode", "--jsonl").stdout.splitlines())
    trade = next(rows)["payload"]["episode"]
    told = asked(desk, f"Why was {trade['episode_id']} made?")
    left = f"{ns_to_datetime(trade['exit_label']):%Y-%m-%d}"
    assert f"closed a {trade['direction']} position in {trade['symbol']} on {left}" in told["answer"]
    assert told["complete"]


def test_nothing_known_yet_is_said_as_of_the_time(desk):
    told = asked(desk, "what is proven about channel_breakout?", "--at", "2000-03-20")
    assert told["answer"].startswith("Not known as of 2000-03-20: a report, so nothing is graded [1].")
    assert told["citations"][0]["seq"] is not None


def test_unproven_playbook_is_called_noise(desk):
    assert "may be noise" in asked(desk, "why did channel_breakout lose?")["answer"]


def test_asking_changes_no_byte_of_the_store_and_needs_no_right_to_write(desk):
    path = desk.folder / DB
    path.chmod(0o400)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    for question in QUESTIONS[:3]:
        asked(desk, question)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_store_that_is_being_written_is_asked_all_the_same(desk):
    before = without_times(asked(desk, QUESTIONS[0]))
    with closing(sqlite3.connect(desk.folder / DB, isolation_level=None)) as writing:
        writing.execute("BEGIN IMMEDIATE")
        writing.execute("UPDATE runs SET events = 1")
        assert without_times(asked(desk, QUESTIONS[0])) == before
        writing.execute("ROLLBACK")


def test_question_that_is_not_understood_is_abstained_from_in_a_pipe(desk):
    told = asked(desk, "tell me a joke", code=3)
    assert (told["status"], told["answer"], told["citations"], told["tool_calls"]) == (
        "abstained",
        None,
        [],
        [],
    )
    assert "I can look up" in told["clarification"]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("how did IBN do?", "Did you mean 'IBM'?"),
        ("why did gap_fade lose?", "I know no 'gap_fade'"),
        ("what was the price of IBM in 1850?", "Nothing is known before the run"),
        ("trades of IBM on 2004-02-30", "There is no day"),
        ("why was fill 0123456789abcdef made?", "no fill '0123456789abcdef'"),
        ("what does report 0123456789abcdef say?", "no report '0123456789abcdef'"),
    ],
)
def test_name_that_the_run_does_not_have_is_bad_input_with_the_nearest(desk, question, told):
    said = desk.run("ask", question)
    assert said.exit_code == 2
    assert told in said.stdout
    assert asked(desk, question, code=2)["answer"] is None


@pytest.mark.parametrize("greeting", ["Hello! ", "Hi, please ", "Good morning. Please ", "Dear all, kindly "])
def test_change_behind_a_greeting_is_planned(desk, greeting):
    assert asked(desk, f"{greeting}ban squeeze_breakout in up/low", code=4)["plan_id"]


def test_symbol_alone_is_not_stopped_and_what_can_be_is_told(desk):
    told = asked(desk, "Stop trading IBM", code=3)["clarification"]
    assert told.startswith("Nothing stops IBM alone: a playbook is banned or retired.")


def test_letters_of_another_script_are_not_passed_over(desk):
    assert asked(desk, "κέρδη και ζημιές trades", code=3)["status"] == "abstained"


def test_order_beside_a_question_is_told_in_the_first_line_and_its_command_makes_a_plan(desk):
    asked_alone = asked(desk, "why did squeeze_breakout lose?")["answer"]
    told = asked(desk, "Ban squeeze_breakout in up/low. Why did it lose?")
    first, _, rest = told["answer"].partition("\n")
    assert first.startswith("Not taken up: 'Ban squeeze_breakout in up/low.'. ")
    marks = re.compile(r" \[[\d\]\[]+\]")
    assert marks.sub("", rest).splitlines()[1:] == marks.sub("", asked_alone).splitlines()[1:]
    (command,) = re.findall(r"`thinktwice (.*)`", first)
    assert asked(desk, shlex.split(command)[1], code=4)["plan_id"]


def test_filter_that_no_tool_takes_is_asked_back_with_a_question_that_is_answered(desk):
    told = asked(desk, "trades of IBM above 100", code=3)
    (instead,) = re.findall(r"Without it: `(.*)`", told["clarification"])
    assert asked(desk, instead)["answer"].startswith("IBM won ")


@pytest.mark.parametrize(
    "question",
    ["deadbeef", "why was fill deadbeef taken?", "what does report deadbeef say?", "tell me a joke"],
)
def test_id_that_the_run_does_not_have_is_answered_with_a_next_line_that_works(desk, question):
    lines = desk.run("ask", question).stdout.splitlines()
    assert lines[-1].startswith("next: thinktwice ask ")
    step = desk.run(*shlex.split(lines[-1])[2:])
    assert step.exit_code == 0
    assert "[1]" in step.stdout


@pytest.mark.parametrize("said", ["kill the run", "pause the run", "kill everything"])
def test_stop_of_the_run_is_asked_back_with_the_kill_switch_and_plans_nothing(desk, said):
    told = asked(desk, said, code=3)
    assert (told["status"], told["plan_id"], told["tool_calls"]) == ("abstained", None, [])
    assert told["clarification"].startswith("`thinktwice kill on --run RUN`")
    assert desk.run("kill", "--help").exit_code == 0


def test_day_before_the_run_is_asked_back_with_the_span_of_the_run(desk):
    told = asked(desk, "what was the price of IBM in 1850?", code=2)
    first = json.loads(desk.run("journal", "r0001", "--jsonl").stdout.splitlines()[0])
    begins = ns_to_datetime(first["known_at"]).isoformat()
    assert told["clarification"] == (
        f"Nothing is known before the run, which is from {begins[:10]} to {told['known_at'][:10]}."
    )


def test_person_at_a_terminal_is_asked_back(desk):
    words = ["thinktwice", "ask", "tell me a joke", "--json"]
    seen = in_terminal(words, desk.folder)
    seen.demand_clean()
    assert seen.code == 3
    assert '"status": "clarify"' in seen.text
    answered = in_terminal(["thinktwice", "ask", QUESTIONS[0]], desk.folder, columns=90)
    answered.demand_clean()
    assert answered.code == 0
    assert "next: thinktwice journal r0001 --kind episode" in answered.text
    assert "asking" in answered.text, "a person sees that something goes on"


def test_answer_in_a_pipe_shows_rows_calls_and_the_next_step_and_no_progress(desk):
    said = desk.run("ask", QUESTIONS[0])
    assert (said.exit_code, said.stderr) == (0, "")
    lines = said.stdout.splitlines()
    assert any(re.fullmatch(r"\[1\] episode, row \d+", line) for line in lines)
    assert "  thinktwice.gate_status(playbook_id=channel_breakout)" in lines
    assert lines[-1].startswith("next: thinktwice journal r0001 --kind episode")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("",), "the question is empty: ask something"),
        ((), "the question is empty: ask something"),
        (("w" * 8_001,), "the question has 8,001 characters, at most 8,000: shorten it"),
        (("why\u202e did it lose?",), r"the question holds '\u202e', which cannot be seen"),
        (("why\x1b[2J?",), r"the question holds '\x1b', which cannot be seen"),
        ((QUESTIONS[0], "--run", "r0002"), "no run 'r0002'"),
        (
            (QUESTIONS[0], "--at", "1999-01-01"),
            "had begun at no bar by that time: give a time from 2000-03-01",
        ),
        ((QUESTIONS[0], "--at", "soon"), "--at 'soon' is not a time"),
        (
            (QUESTIONS[0], "--server", "desk"),
            "--server 'desk' is not configured ([planner.servers] has none)",
        ),
        ((QUESTIONS[0], "--config", "no.toml"), "no.toml"),
        ((QUESTIONS[0], "--conversation", "a\x1b"), "--conversation"),
        (("--show",), "name it with --conversation NAME"),
        (("--show", "--forget", "--conversation", "a"), "give one of them"),
        (("--show", "--conversation", "a"), "no conversation 'a'"),
        (("ban channel_breakou in up/mid",), "Did you mean 'channel_breakout'?"),
        (("ban channel_breakout in up/mid", "--at", CLOCK), "--at looks back, and a change is of now"),
    ],
)
def test_bad_input_is_one_line_that_names_the_next_step(desk, words, said):
    assert said in desk.complaint("ask", *words)


def test_fresh_process_answers_without_pandas(desk):
    code = (
        "import sys\nfrom worker.cli import app\n"
        f"try:\n    app(['ask', {QUESTIONS[1]!r}])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print(sorted({'pandas', 'numba', 'mcp', 'anthropic', 'openai'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=desk.folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
