"""Records of a process that configures no logging: in words, with what they are about, escaped."""

import logging

import pytest

from agents.tool_hosts.mcp import ACCEPT
from worker.operations.tracebacks import guard_tracebacks


@pytest.fixture
def shown(monkeypatch):
    """What the handler of last resort prints of an event."""
    handler = logging.Handler()
    monkeypatch.setattr(logging, "lastResort", handler)
    monkeypatch.setattr("sys.excepthook", None)
    monkeypatch.setattr("threading.excepthook", None)
    guard_tracebacks()

    def text(event, **given):
        record = logging.getLogger("thinktwice.tools").makeRecord(
            "thinktwice.tools", logging.WARNING, __file__, 1, event, (), None, extra=given
        )
        return handler.format(record)

    return text


def test_warning_on_tools_names_server_tools_and_next_step(shown):
    text = shown("tools_changed_since_pinned", server="desk", tools=["echo", "sum"], next=ACCEPT % "desk")
    assert text == (
        "tools changed since pinned: server desk, tools echo and sum, next they are refused until "
        "`thinktwice tools pin CONFIG --server desk` accepts them"
    )


def test_words_of_a_record_that_would_act_on_a_terminal_are_escaped(shown):
    assert "\x1b" not in shown("tools_changed_since_pinned", tools=["\x1b[2J"])


def test_record_without_anything_beside_it_is_its_text(shown):
    assert shown("a model was asked") == "a model was asked"
