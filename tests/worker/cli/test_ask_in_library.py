"""The evidence tools of the library: the same names, arguments and documents as those of the command."""

import json

import pytest

import thinktwice as tt
from services.evidence.tools import TOOLS
from tests.worker.evidence_stores import CLOCK, store_run


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    return f"sqlite:///{store_run(tmp_path_factory.mktemp('library') / 'thinktwice.db')}"


def test_tools_of_the_library_are_those_of_the_command():
    assert dir(tt.ask) == sorted(TOOLS)
    assert TOOLS["trades"].description in str(tt.ask.trades.__doc__)
    with pytest.raises(AttributeError, match="Did you mean 'trades'"):
        _ = tt.ask.trade


def test_answer_of_the_library_is_the_document_of_the_command(db, shell):
    found = tt.ask.trades(db=db, symbol="IBM", outcome="lost", period="2004")
    reply = shell.run(
        *("ask", "trades", "--symbol", "IBM", "--outcome", "lost", "--period", "2004", "--db", db, "--json")
    )
    document = json.loads(reply.stdout)
    assert found.document["sections"] == document["sections"]
    assert found.result == document["results"]["c1"]
    assert found.text == document["answer"] == str(found)
    assert all(claim["rows"] for claim in found.claims)


def test_run_and_time_are_arguments_as_elsewhere(db):
    early = tt.ask.account(db=db, run="r0001", at=CLOCK)
    assert early.document["known_at"][:10] == CLOCK
    assert early.text != tt.ask.account(db=db).text


def test_argument_that_does_not_fit_is_refused_with_the_nearest(db):
    with pytest.raises(tt.ThinktwiceError, match="Did you mean 'symbol'"):
        tt.ask.trades(db=db, symbl="IBM")
    with pytest.raises(tt.ThinktwiceError, match="takes its arguments by name, such as run='r0001'"):
        tt.ask.trades("r0001", db=db)
    with pytest.raises(tt.ThinktwiceError, match="Did you mean 'IBM'"):
        tt.ask.trades(db=db, symbol="IBN")
