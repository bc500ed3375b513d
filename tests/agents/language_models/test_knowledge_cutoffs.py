"""The table of published cutoffs: every row has its source, and nothing is guessed from a family's name."""

import tomllib
from datetime import date

import pytest

from agents.language_models.knowledge_cutoffs import TABLE, cutoff_of, cutoffs, published_cutoffs
from schemas.settings import LlmSettings


def test_cutoff_table_rows_have_a_date_a_kind_and_a_dated_source():
    rows = tomllib.loads(TABLE.read_text("utf-8"))["cutoff"]
    assert len({row["model"] for row in rows}) == len(rows) >= 5
    for row in rows:
        assert row["kind"] in ("training data", "reliable knowledge")
        assert "platform.claude.com/docs" in row["source"]
        assert row["date"] < row["read"]


def test_cutoff_table_knows_the_models_that_are_used_unless_told_otherwise():
    llm = LlmSettings()
    for model in (llm.fast_model, llm.slow_model, llm.strategist_model):
        assert cutoff_of(model).date is not None


@pytest.mark.parametrize("date_of_snapshot", ["", "-20251001", "@20251001"])
def test_cutoff_holds_for_a_model_with_the_date_of_its_snapshot(date_of_snapshot):
    name = f"claude-haiku-4-5{date_of_snapshot}"
    found = cutoff_of(name)
    assert (found.model, found.date) == (name, date(2025, 7, 31))


@pytest.mark.parametrize(
    "name", ["claude-opus-5-9", "claude-opus", "claude-opus-5-5-fast", "x-claude-opus-5"]
)
def test_cutoff_of_a_model_that_is_not_listed_is_unknown(name):
    assert cutoff_of(name).date is None


def test_cutoff_of_a_longer_name_is_not_that_of_the_shorter_one():
    published = {cutoff.model: cutoff.date for cutoff in published_cutoffs()}
    assert cutoff_of("claude-opus-5-5").date == published["claude-opus-5-5"] != published["claude-opus-5"]


def test_configured_cutoff_holds_for_every_model():
    found = cutoffs(("claude-opus-5-5", "own-model"), "2020-02-29")
    assert [(cutoff.date, cutoff.kind) for cutoff in found] == [(date(2020, 2, 29), "configured")] * 2


@pytest.mark.parametrize("text", ["2026-06", "20260630", "30.06.2026", "2026-02-30", "soon"])
def test_configured_cutoff_that_is_no_date_is_refused(text):
    with pytest.raises(ValueError, match=r"date|isoformat|month|day"):
        LlmSettings(knowledge_cutoff=text)
