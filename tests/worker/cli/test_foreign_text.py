"""What models and strategists wrote is shown, and neither a terminal nor a page obeys it."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from services.journal.chain import JournalRow, relink
from services.store import open_store
from tests.services.journal.decisions import decision_rows
from tests.services.policy_checks.injections import INJECTIONS
from tests.services.store.stores import new_run
from tests.worker.cli.fake_runner import REPORT, REPORT_ID, VERDICT
from worker.pages.report_markdown import report_markdown

HOSTILE = "\x1b[2J\x9b1mp\u202eass\r\x07"
ACTIVE = re.compile(r"<[a-z/!?]|(?<!\\)(?:\\\\)*\]\(|^\s*(?:#|\||```|=|--)", re.IGNORECASE | re.MULTILINE)


def page(**changes) -> str:
    return report_markdown({"report_id": REPORT_ID, "report": REPORT | changes, "verdict": VERDICT})


def test_report_page_active_markup_is_found_by_the_pattern_of_this_test():
    for text in ("<script>", "a [x](y)", r"a [x\\](y)", "# h", "a\n---", "| a |", "<!-- a"):
        assert ACTIVE.search(text), text
    assert ACTIVE.search(r"- a \[+0.1, 0.2] [x\](y) \# &lt;b") is None


def commented(text: str) -> dict[str, object]:
    """A report whose one section holds nothing but a comment."""
    return {"sections": [{"topic": "window", "statements": [], "comment": text}]}


FIELDS: dict[str, Callable[[str], dict[str, object]]] = {
    "comment": commented,
    "deferred_seen": lambda text: {"deferred_seen": [text]},
}


@pytest.mark.parametrize("field", FIELDS)
def test_report_page_shows_every_injection_as_text_only(field):
    before, after = page(**FIELDS[field]("QUOTE")).split("QUOTE")
    for injection in INJECTIONS:
        shown = page(**FIELDS[field](injection.text))
        assert shown.startswith(before), injection.name
        assert shown.endswith(after), injection.name
        quoted = shown[len(before) : len(shown) - len(after)]
        assert ACTIVE.search(quoted) is None, injection.name
        assert quoted.replace("\n", "").isprintable(), injection.name


def test_report_page_link_behind_a_backslash_stays_text():
    shown = page(**commented(r"[x\](http://127.0.0.1)"))
    (line,) = (line for line in shown.splitlines() if "127.0.0.1" in line)
    assert ACTIVE.search(line) is None


def test_report_page_shows_needs_that_were_deferred():
    assert "- A breadth feature." in page(deferred_seen=["A breadth feature."])


def test_why_shows_control_characters_and_sends_none(shell):
    quoted = json.dumps(HOSTILE)[1:-1]
    stored = decision_rows().rows
    rows: list[JournalRow] = []
    for row in stored:
        before = rows[-1].hash if rows else row.prev_hash
        text = replace(row, payload=row.payload.replace("graded significant", quoted), prev_hash=before)
        rows.append(replace(text, hash=relink(text)))
    assert any(quoted in row.payload for row in rows)

    async def store_rows():
        async with await open_store("sqlite:///thinktwice.db", create=True) as store:
            run = await store.runs.create(new_run())
            await store.journal.append(run.run_id, rows)

    asyncio.run(store_rows())
    shown = shell.run("why", "fa").stdout
    assert r"\x1b[2J\x9b1mp\u202eass\r\x07" in shown
    assert shown.replace("\n", "").isprintable()
