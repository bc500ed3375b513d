"""`thinktwice factcheck`: texts held against a stored run, as of its end, of a report and of a time."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from sqlalchemy import text as sql

from tests.services.store.stores import opened
from worker.cli.stores import open_for_run

LONGEST = 51_200
LIE = "The number of trades of mean_reversion was 9999."
KEYS = {"run_id", "known_at", "claims", "counts", "not_read", "read_by", "model_failed",
        "claims_without_their_words"}  # fmt: skip


def reports(folder):
    with opened(folder / "thinktwice.db") as store:
        rows = store.execute(
            "select unpacked(payload) from journal where kind = 'high_level_report' order by seq"
        ).fetchall()
    return {found["report_id"]: found["report"] for found in map(json.loads, (row[0] for row in rows))}


def read_shown(shell, text, *words):
    (shell.folder / "text.txt").write_text(text, "utf-8")
    result = shell.run("factcheck", "text.txt", *words, "--json")
    return result.exit_code, json.loads(result.stdout)


def test_figures_of_stored_narratives_are_read_and_hold(planted):
    found = reports(planted.folder)
    assert found
    for report_id, report in found.items():
        code, document = read_shown(planted, report["narrative"], "--report", report_id)
        assert code == 0, document["claims"]
        window_and_evidence, missed = 5, sum(len(item["missed"]) for item in report["expectations"])
        assert document["counts"]["verified"] >= window_and_evidence + missed
        assert document["counts"]["contradicted"] == document["counts"]["unverifiable"] == 0


def test_lie_is_named_with_what_is_so_and_the_rest_is_not_read(planted):
    code, document = read_shown(planted, f"{LIE} A quiet time. Stops ended 90 trades, all of them winners.")
    assert code == 1
    assert set(document) == KEYS
    (claim,) = document["claims"]
    assert (claim["verdict"], claim["text"]) == ("contradicted", LIE.rstrip("."))
    assert "the number of trades of mean_reversion is " in claim["so"]
    assert document["not_read"] == ["A quiet time.", "Stops ended 90 trades, all of them winners."]
    assert (document["counts"]["not_read"], document["read_by"]) == (2, "rules")


def test_claim_is_held_against_what_was_known_then(planted):
    text = "The number of trades of the run was {}."
    _, end = read_shown(planted, text.format(9999))
    total = end["claims"][0]["so"].rpartition(" ")[2].replace(",", "")
    assert read_shown(planted, text.format(total))[0] == 0
    first = next(iter(reports(planted.folder)))
    then = read_shown(planted, text.format(total), "--report", first)[1]
    assert then["known_at"] < end["known_at"]
    assert then["counts"]["contradicted"] == 1
    moment = datetime.fromtimestamp(then["known_at"] / 1e9, UTC).isoformat()
    assert read_shown(planted, text.format(total), "--at", moment)[1]["known_at"] == then["known_at"]
    before = planted.complaint("factcheck", "text.txt", "--at", "1980-01-01")
    assert "had begun at no bar by that time" in before


def test_store_cannot_be_written_to_while_a_text_is_checked(planted):
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
    both = planted.complaint("factcheck", "text.txt", "--report", "ff", "--at", "2001-01-01")
    assert "leave out --at" in both


def test_text_without_claims_says_how_much_was_not_read(planted):
    (planted.folder / "text.txt").write_text("A quiet week.", "utf-8")
    result = planted.run("factcheck", "text.txt")
    assert result.exit_code == 0
    assert "1 sentences not read" in result.stdout
