"""`thinktwice ask`: tools as subcommands, questions, claims with rows, exit codes, clock, bad input."""

import asyncio
import hashlib
import json
import re
import shlex
import shutil
import sqlite3
import sys
from contextlib import closing

import pytest
from pydantic import TypeAdapter

from schemas.claims import Claim
from services.claims.check import ClaimResult, check
from services.claims.sections import render
from services.evidence.tools import TOOLS
from services.evidence_tools.tool_claims import CLAIMS
from services.store import open_store
from tests.commands.started import run_to_end
from tests.each_case import check_each
from tests.worker.cli.terminals import in_terminal
from tests.worker.evidence_stores import CLOCK, EARLIER, store_run
from tools.docs_pages import DOCS
from worker.review.run_facts import read_facts

DB = "thinktwice.db"
QUESTIONS = (
    "why did channel_breakout lose?",
    "what does the market of IBM look like?",
    "which trades of AAPL won?",
    "why did the last trade of IBM lose?",
    "show me the rules of channel_breakout",
    "what is proven about trend_pullback?",
    "what did the judge recommend?",
    "what is the drawdown?",
)
CALLS: dict[str, tuple[str, ...]] = {
    "trades": ("--symbol", "IBM", "--outcome", "lost", "--by", "symbol"),
    "market": ("--symbol", "IBM"),
    "playbooks": ("--playbook", "channel_breakout"),
    "gate": (),
    "reports": ("--limit", "2"),
    "decisions": (),
    "account": (),
    "costs": (),
}
FIELDS = [
    "question", "run_id", "known_at", "status", "answer", "clarification", "confidence", "sections",
    "refused", "dropped_comments", "tool_calls", "results", "iterations", "refined", "complete", "reasoning",
    "two_phase", "plan_id", "usage",
]  # fmt: skip


@pytest.fixture(scope="session")
def stored_to_ask(tmp_path_factory):
    return store_run(tmp_path_factory.mktemp("asked") / DB)


@pytest.fixture(scope="session")
def ended_earlier(tmp_path_factory):
    return store_run(tmp_path_factory.mktemp("earlier") / DB, EARLIER)


@pytest.fixture(scope="module")
def facts(stored_to_ask):
    async def read():
        async with await open_store(f"sqlite:///{stored_to_ask}", create=False, read_only=True) as store:
            return await read_facts(store, await store.runs.find("latest"))

    return asyncio.run(read())


@pytest.fixture
def desk(shell, stored_to_ask):
    shutil.copy(stored_to_ask, shell.folder / DB)
    return shell


def read_requests(shell, *words, code=0):
    result = shell.run("ask", *words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def statements(document):
    return [reply for section in document["sections"] for reply in section["statements"]]


def without_times(document):
    return {**document, "tool_calls": [{**call, "latency_ms": 0} for call in document["tool_calls"]]}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_claim_of_an_answer_names_rows_that_the_journal_has(desk, question):
    payload = read_requests(desk, question)
    assert list(payload) == FIELDS
    assert (payload["status"], payload["run_id"], payload["plan_id"]) == ("answered", "r0001", None)
    with closing(sqlite3.connect(desk.folder / DB)) as store:
        kinds = dict(store.execute("select seq, kind from journal").fetchall())
    found = [row for answer in statements(payload) for row in answer["rows"] if row["seq"] is not None]
    assert all(kinds[row["seq"]] == row["kind"] for row in found)
    assert payload["answer"].splitlines() == list(
        dict.fromkeys(answer["text"] for answer in statements(payload))
    )
    assert payload["usage"] == {"calls": 0, "input_tokens": 0, "output_tokens": 0}


def test_every_tool_with_claims_is_asked_here():
    assert set(CALLS) == set(CLAIMS)


@check_each("tool", CALLS)
def test_claims_of_a_tool_hold_in_the_facts_of_the_run_and_read_as_code_writes_them(desk, facts, tool):
    payload = read_requests(desk, tool, *CALLS[tool])
    assert statements(payload)
    assert payload["results"]["c1"]["run_id"] == "r0001"
    for answer in statements(payload):
        claim = TypeAdapter(Claim).validate_python(answer["claim"])
        held = check(claim, facts)
        assert isinstance(held, ClaimResult)
        assert render(claim, held) == answer["text"]
        assert answer["rows"] == [row.model_dump() for row in held.rows]
    printed = desk.run("ask", tool, *CALLS[tool])
    assert (printed.exit_code, printed.stderr) == (0, "")
    assert all(fields["text"] in printed.stdout for fields in statements(payload))


def test_each_tool_is_a_subcommand_with_the_words_and_options_of_its_schema(desk):
    text = desk.run("ask", "--help").stdout
    for name, tool in TOOLS.items():
        assert re.search(rf"^  {name} ", text, re.M)
        page = " ".join(desk.run("ask", name, "--help").stdout.split())
        assert tool.description in page
        schema = tool.definition.payload()["input_schema"]
        for argument in schema["properties"]:
            word = argument.removesuffix("_id").replace("_", "-")
            place = "long|short" if argument == "direction" else word.upper()
            assert (f"{{{place}}}" if argument in schema.get("required", ()) else f"--{word} ") in page


def test_first_word_that_is_no_tool_begins_a_question(desk):
    whole, apart = read_requests(desk, QUESTIONS[1]), read_requests(desk, *QUESTIONS[1].split())
    assert without_times(whole) == without_times(apart)


BAD = [
    ("trades --symbol IBN", "Did you mean 'IBM'?"),
    ("trades --symbl IBM", "Did you mean '--symbol'?"),
    ("trades --outcome even", "outcome 'even': input should be 'won' or 'lost'"),
    ("trades --limit 101", "limit 101: input should be less than or equal to 100"),
    ("trades --period 2005-13", "'2005-13' is no period"),
    ("trades --period May", "period 'May': write a year, a month, a day"),
    ("why", "Missing argument 'FILL'"),
    ("why 0123456789abcdef", "no fill '0123456789abcdef'"),
    ("account --at 1999-01-01", "had begun at no bar by that time"),
    ("account --run r0009", "no single run 'r0009'"),
    ("''", "the question is empty: ask something"),
    ("w" * 8_001, "the question has 8,001 characters, at most 8,000: shorten it"),
    ("'why\u202e did it lose?'", "the question holds '\\u202e', which cannot be seen"),
    ("'why\x1b[2J?'", "the question holds '\\x1b', which cannot be seen"),
    ("'why did channel_breakout lose?' --run r0002", "no run 'r0002'"),
    ("'why did channel_breakout lose?' --at soon", "--at 'soon' is not a time"),
    (
        "'why did channel_breakout lose?' --server desk",
        "--server 'desk' is not configured ([planner.servers] has none)",
    ),
    ("'why did channel_breakout lose?' --config no.toml", "no.toml"),
    ("'why did channel_breakout lose?' --conversation 'a\x1b'", "--conversation"),
    ("--show", "name it with --conversation NAME"),
    ("--show --forget --conversation a", "give one of them"),
    ("--show --conversation a", "no conversation 'a'"),
    ("trades --by symbol --by playbook", "--by is given twice: give it once"),
    ("trades --symbol=IBM --outcome lost --symbol MSFT", "--symbol is given twice: give it once"),
    ("account --at 2004 --at 2005", "--at is given twice: give it once"),
    ("'why did channel_breakout lose?' --run r0001 --run r0002", "--run is given twice: give it once"),
]


@check_each(("words", "quoted"), BAD)
def test_bad_input_is_one_line_that_names_the_nearest_or_the_next_step(desk, words, quoted):
    assert quoted in desk.complaint("ask", *shlex.split(words))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("why", "did", "IBM", "lose", "--json"), "thinktwice ask 'why did IBM lose' --json"),
        (("trades", "of", "IBM", "in", "2004?"), "thinktwice ask 'trades of IBM in 2004?'"),
        (("costs", "of", "Bob's", "run"), """thinktwice ask 'costs of Bob'"'"'s run'"""),
    ],
)
def test_words_after_a_tool_that_it_does_not_take_name_the_line_that_asks_them(desk, words, line):
    text = desk.complaint("ask", *words)
    assert text.endswith(f": quote a question in words: {line}\n")
    assert "Got unexpected extra argument(s)" in text
    as_question = desk.run(*shlex.split(line)[1:])
    assert "unexpected extra" not in as_question.stderr


def test_account_as_of_a_time_tells_its_equity_and_what_holds_its_positions(desk):
    now, then = read_requests(desk, "account"), read_requests(desk, "account", "--at", CLOCK)
    measures = [answer["claim"]["measure"] for answer in statements(now)]
    assert {"account_return", "sharpe", "max_drawdown", "exposure", "equity"} <= set(measures)
    assert "sharpe" not in [answer["claim"]["measure"] for answer in statements(then)], (
        "its end is not known yet"
    )
    assert then["known_at"][:10] == CLOCK
    for position in now["results"]["c1"]["positions"]:
        chain = read_requests(desk, "why", position["fill_id"])["results"]["c1"]
        assert chain["steps"][0]["facts"]["direction"] == position["direction"]
        assert position["policy_id"]


def test_costs_of_a_run_are_the_sums_of_its_trades_and_of_its_calls(desk):
    payload = read_requests(desk, "costs")["results"]["c1"]
    lines = desk.run("journal", "r0001", "--kind", "episode", "--jsonl").stdout.splitlines()
    fees = sum(json.loads(line)["payload"]["episode"]["fees"] for line in lines)
    assert payload["fees"] == pytest.approx(fees)
    assert payload["seats"] == []
    assert payload["slippage"] > 0


def test_trades_of_a_period_are_those_that_were_entered_in_it(desk):
    payload = read_requests(desk, "trades", "--period", "2004", "--limit", "100")["results"]["c1"]
    assert {trade["entered"][:4] for trade in payload["trades"]} == {"2004"}
    assert len(payload["trades"]) == payload["figures"]["trades"]


def test_page_of_the_document_has_its_keys(desk):
    payload = read_requests(desk, QUESTIONS[0])
    page = (DOCS / "reference" / "answer-document.md").read_text("utf-8")
    keys = re.findall(r"^\| `([^`]+)`", page, re.M)
    inner = {"tool_calls": "[].", "usage": ".", "sections": "[]."}
    expected = []
    for name, value in payload.items():
        if name in inner:
            reply = value if isinstance(value, dict) else value[0]
            expected += [f"{name}{inner[name]}{key}" for key in reply]
        else:
            expected.append(name)
    assert keys == expected


def test_answer_as_of_a_time_is_the_same_whatever_came_after_it(desk, ended_earlier):
    words = [(question, "--at", CLOCK) for question in QUESTIONS]
    late = [without_times(read_requests(desk, *word)) for word in words]
    shutil.copy(ended_earlier, desk.folder / DB)
    assert [without_times(read_requests(desk, *word)) for word in words] == late
    assert {payload["known_at"][:10] for payload in late} == {CLOCK}
    assert read_requests(desk, QUESTIONS[0])["answer"] != late[0]["answer"], (
        "without the clock it is another answer"
    )


def test_asking_changes_no_byte_of_the_store_and_needs_no_right_to_write(desk):
    path = desk.folder / DB
    path.chmod(0o400)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    for words in (*[(question,) for question in QUESTIONS[:2]], ("account",), ("trades",)):
        read_requests(desk, *words)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_question_that_is_not_understood_is_abstained_from_in_a_pipe(desk):
    payload = read_requests(desk, "tell me a joke", code=3)
    assert (payload["status"], payload["answer"], payload["sections"], payload["tool_calls"]) == (
        "abstained",
        None,
        [],
        [],
    )
    assert "`thinktwice ask " in payload["clarification"]


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("why fill 0123456789abcdef?", "no fill '0123456789abcdef'"),
        ("what does report 0123456789abcdef say?", "no report '0123456789abcdef'"),
        ("trades of IBM on 2004-02-30", "is no period"),
    ],
)
def test_id_or_day_that_there_is_not_is_bad_input(desk, question, shown):
    reply = desk.run("ask", question)
    assert reply.exit_code == 2
    assert shown in reply.stdout
    assert read_requests(desk, question, code=2)["answer"] is None


def test_call_that_was_made_is_printed_as_it_is_typed_and_answers_the_same(desk):
    text = desk.run("ask", "which trades of IBM lost in 2004?").stdout
    (typed,) = re.findall(r"^(thinktwice ask trades .*)  as of ", text, re.M)
    payload = read_requests(desk, *shlex.split(typed)[2:])
    assert payload["sections"] == read_requests(desk, "which trades of IBM lost in 2004?")["sections"]


@pytest.mark.parametrize(
    "words",
    [
        ("check", "IBM", "channel_breakout", "long", "--stop", "close - 2 * atr_14"),
        ("trades", "--playbook", "channel_breakout", "--by", "symbol"),
        ("runs",),
    ],
)
def test_call_of_a_tool_is_printed_as_it_is_typed_and_answers_the_same(desk, words):
    reply = desk.run("ask", *words)
    assert reply.exit_code == 0, reply.output
    typed = next(line for line in reply.stdout.splitlines() if line.startswith(f"thinktwice ask {words[0]}"))
    again = shlex.split(typed.partition("  as of ")[0])[2:]
    assert desk.run("ask", *again).stdout == reply.stdout


def test_person_at_a_terminal_is_asked_back(desk):
    seen = in_terminal(["thinktwice", "ask", "tell me a joke", "--json"], desk.folder)
    seen.demand_clean()
    assert seen.code == 3
    assert '"status": "clarify"' in seen.text


def test_fresh_process_answers_without_pandas(desk):
    code = (
        "import sys\nfrom worker.cli import app\n"
        f"try:\n    app(['ask', {QUESTIONS[1]!r}])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print(sorted({'pandas', 'numba', 'mcp', 'anthropic', 'openai'} & set(sys.modules)))"
    )
    done = run_to_end([sys.executable, "-c", code], desk.folder)
    assert done.stdout.splitlines()[-1] == "[]"
