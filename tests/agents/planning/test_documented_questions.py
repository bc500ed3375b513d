"""The questions that the how-to shows are read without a model, each with the tools of its kind."""

import re

import pytest

from tools.docs_pages import DOCS

PAGE = (DOCS / "how-to/ask-a-run.md").read_text("utf-8")
TOOLS_OF = {
    "the market of a symbol": {"market_snapshot"},
    "trades": {"episodes"},
    "why something lost or won": {"episodes", "gate_status", "playbooks"},
    "what is proven": {"gate_status"},
    "reports and the judge": {"reports"},
    "a fill": {"explain_fill", "episodes"},
    "a playbook": {"playbooks"},
}
TWO_AT_ONCE = {"market_snapshot", "episodes", "gate_status"}
ROWS = {
    kind: re.findall(r'"([^"]+)"', told)
    for kind, told in re.findall(r'^\| ([\w ]+) \| (".+") \|$', PAGE, re.M)
}
SHOWN = [(kind, question) for kind, questions in ROWS.items() for question in questions]


def test_every_kind_has_its_row():
    assert set(ROWS) == {*TOOLS_OF, "two at once"}


@pytest.mark.parametrize(("kind", "question"), SHOWN)
def test_question_of_the_page_is_read_with_the_tools_of_its_kind(kind, question, ask):
    (gathered,) = ask(question)
    called = {call.method for call in gathered.calls}
    if kind == "two at once":
        assert len(called) == 2
        assert called < TWO_AT_ONCE
    else:
        assert called
        assert called <= TOOLS_OF[kind]
