"""`thinktwice factcheck`: texts held against a stored run, as of its end, of a report and of a time."""

import json
import sqlite3
from datetime import UTC, datetime

import pytest

from tests.worker.cli.terminals import in_terminal

LONGEST = 51_200
LIE = "All trades of planted_reversion won, which is significant."


def narratives(folder):
    with sqlite3.connect(folder / "thinktwice.db") as store:
        rows = store.execute(
            "select payload from journal where kind = 'high_level_report' order by seq"
        ).fetchall()
    return {
        found["report_id"]: found["report"]["narrative"]
        for found in map(json.loads, (row[0] for row in rows))
    }


def told(shell, text, *words):
    (shell.folder / "text.txt").write_text(text, "utf-8")
    result = shell.run("factcheck", "text.txt", *words, "--json")
    return result.exit_code, json.loads(result.stdout)


def test_stored_narratives_of_a_run_are_accepted(planted):
    found = narratives(planted.folder)
    assert found
    for report_id, text in found.items():
        code, document = told(planted, text, "--report", report_id)
        assert (code, document["struck_text"]) == (0, text), document["claims"]
        assert document["counts"]["verified"] > 10


def test_lie_is_named_with_its_rows_and_what_would_pass(planted):
    code, document = told(planted, LIE)
    assert (code, document["struck_text"]) == (1, "")
    claim = next(item for item in document["claims"] if item["kind"] == "quantifier")
    assert claim["verdict"] == "contradicted"
    assert claim["rows"][0]["kind"] == "episode"
    assert claim["would_pass"]
    assert set(document) == {"run_id", "known_at", "claims", "counts", "struck_text"}


def test_claim_is_held_against_what_was_known_then(planted):
    text = "The run closed {} trades."
    _, end = told(planted, text.format(1))
    total = next(item for item in end["claims"] if item["kind"] == "count")["would_pass"][0]
    assert told(planted, text.format(total))[0] == 0
    first = next(iter(narratives(planted.folder)))
    then = told(planted, text.format(total), "--report", first)[1]
    assert then["known_at"] < end["known_at"]
    assert then["counts"]["contradicted"] == 1
    moment = datetime.fromtimestamp(then["known_at"] / 1e9, UTC).isoformat()
    assert told(planted, text.format(total), "--at", moment)[1]["known_at"] == then["known_at"]
    before = planted.complaint("factcheck", "text.txt", "--at", "1980-01-01")
    assert "had begun at no bar by that time" in before


def test_store_cannot_be_written_to_while_a_text_is_checked(planted, monkeypatch):
    import asyncio

    from sqlalchemy import text as sql

    from worker.cli.options import open_for_run

    async def written():
        opened = open_for_run(None, "latest", read_only=True)
        async with opened as (store, _), store._engine.begin() as connection:
            await connection.execute(sql("delete from journal"))

    with pytest.raises(Exception, match=r"readonly|read-only|attempt to write"):
        asyncio.run(written())


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"a\0b", "is binary"),
        (b"\xff\xfe\x41", "is not UTF-8 at byte 0"),
        (b"x" * (LONGEST + 1), "more than 51,200 bytes"),
    ],
)
def test_bad_text_is_one_line_with_its_limit(planted, content, word):
    (planted.folder / "text.txt").write_bytes(content)
    assert word in planted.complaint("factcheck", "text.txt")


def test_file_or_report_or_run_that_is_not_there_is_named(planted):
    (planted.folder / "text.txt").write_text("fine", "utf-8")
    assert "'none.txt' does not exist" in planted.complaint("factcheck", "none.txt")
    assert "cannot be read" in planted.complaint("factcheck", ".")
    assert "no report 'ffff'" in planted.complaint("factcheck", "text.txt", "--report", "ffff")
    assert "r9999" in planted.complaint("factcheck", "text.txt", "--run", "r9999")
    both = planted.complaint("factcheck", "text.txt", "--report", "ff", "--at", "2001-01-01")
    assert "leave out --at" in both


def test_text_without_claims_says_so(planted):
    (planted.folder / "text.txt").write_text("A quiet week.", "utf-8")
    result = planted.run("factcheck", "text.txt")
    assert result.exit_code == 0
    assert "claims nothing that a run could answer" in result.stdout


@pytest.mark.parametrize("columns", [60, 200])
def test_table_in_a_terminal_is_clean(planted, columns):
    (planted.folder / "text.txt").write_text(f"{LIE} \x1b[2J [/x] n 3.", "utf-8")
    words = ["thinktwice", "factcheck", "text.txt"]
    seen = in_terminal(words, planted.folder, columns=columns)
    seen.demand_clean()
    assert seen.code == 1, seen.end
    assert "FALSE" in seen.text
