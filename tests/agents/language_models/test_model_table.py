"""The table of published models: every row has its source, and nothing is guessed from a family's name."""

from datetime import date

import pytest

from schemas.model_table import PUBLISHED, cutoff_of, cutoffs
from schemas.settings import LlmSettings, Settings
from schemas.settings.llm import ModelPrice


def test_cutoff_table_rows_have_a_date_a_kind_and_a_dated_source():
    assert len({row.model for row in PUBLISHED}) == len(PUBLISHED) >= 5
    for row in PUBLISHED:
        assert row.kind in ("training data", "reliable knowledge")
        assert row.source.startswith(("platform.claude.com/docs", "developers.openai.com/api/docs"))
        assert row.cutoff < row.read
        assert not row.usd or {"input_usd", "output_usd"} <= row.usd.keys() <= ModelPrice.model_fields.keys()


def test_prices_of_the_table_are_those_of_the_models_that_are_named_in_one_word():
    llm = LlmSettings(model="anthropic/claude-haiku-5-5", slow="anthropic/claude-opus-5-5-20261101")
    assert llm.price("anthropic", "claude-haiku-5-5").input_usd == 0.10
    dated = llm.price("anthropic", "claude-opus-5-5-20261101")
    assert (dated.output_usd, dated.cache_read_usd) == (20.0, 0.20)
    assert LlmSettings().price("openai", "gpt-6.2-sol").output_usd == 10.0
    assert cutoff_of("anthropic/claude-haiku-5-5").date is not None, "a gateway names the vendor"


def test_price_of_the_table_is_stored_with_the_settings_and_a_later_table_changes_it_in_none(monkeypatch):
    words = {
        "model": "anthropic/claude-haiku-5-5",
        "judge": "vllm/claude-haiku-5-5",
        "fast": "openai/gpt-6-sol",
    }
    stored = LlmSettings.model_validate(words).payload()
    assert [price["model"] for price in stored["prices"]] == ["anthropic/claude-haiku-5-5"]
    later = [row._replace(usd={"input_usd": 50.0, "output_usd": 60.0}) for row in PUBLISHED]
    monkeypatch.setattr("schemas.model_table.PUBLISHED", later)
    again = LlmSettings.model_validate(stored)
    assert again.payload() == stored
    assert again.price("anthropic", "claude-haiku-5-5").input_usd == 0.10
    assert again.price("vllm", "claude-haiku-5-5").input_usd == 0.0, "a machine of one's own"
    assert again.known_price("openai", "gpt-6-sol") is None
    assert LlmSettings.model_validate(words).price("anthropic", "claude-haiku-5-5").input_usd == 50.0


def test_price_of_the_critic_of_texts_is_stored_with_the_settings_that_name_it_elsewhere(monkeypatch):
    words = {"deliberation": {"critique_model": "anthropic/claude-opus-5-5"}}
    stored = Settings.model_validate(words)
    assert [price.model for price in stored.llm.prices] == ["anthropic/claude-opus-5-5"]
    monkeypatch.setattr("schemas.model_table.PUBLISHED", ())
    again = Settings.model_validate(stored.payload())
    assert again == stored
    assert again.llm.price("anthropic", "claude-opus-5-5").output_usd == 20.0
    other = {"deliberation": {"critique_model": "anthropic/claude-haiku-5-5"}}
    assert Settings.model_validate(stored.payload() | other).llm.prices == stored.llm.prices


def test_price_that_is_configured_comes_before_the_published_one_and_before_nothing():
    own = ModelPrice(model="claude-haiku-5-5", input_usd=1.0, output_usd=2.0)
    exact = ModelPrice(model="ollama/qwen3:8b", input_usd=3.0, output_usd=4.0)
    llm = LlmSettings(prices=(own, exact))
    assert llm.price("anthropic", "claude-haiku-5-5") is own
    assert llm.price("ollama", "qwen3:8b") is exact
    assert llm.price("vllm", "qwen3:8b").input_usd == 0.0, "a machine of one's own"


@pytest.mark.parametrize(
    ("address", "free"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://localhost:8000/v1", True),
        ("http://192.168.1.7/v1", True),
        ("http://10.0.0.2/v1", True),
        ("http://gpu:8000/v1", True),
        ("https://api.example.com/v1", False),
        ("http://8.8.8.8/v1", False),
        ("http://127.0.0.1@8.8.8.8/v1", False),
        ("http://8.8.8.8#@127.0.0.1/v1", False),
        ("http://134744072/v1", False),
        ("http://[2606:4700::1111]/v1", False),
        ("http://10.0.0.2.example.com/v1", False),
    ],
)
def test_own_machine_is_free_at_a_private_address_alone(address, free):
    for llm in (
        LlmSettings(model=f"vllm/qwen3:8b@{address}"),
        LlmSettings(model="vllm/qwen3:8b", base_url=address),
        LlmSettings(model="anthropic/claude-haiku-5-5", judge=f"vllm/qwen3:8b@{address}"),
    ):
        assert (llm.known_price("vllm", "qwen3:8b") is not None) is free
    elsewhere = LlmSettings(model="anthropic/claude-haiku-5-5", fast="vllm/qwen3:8b", base_url=address)
    assert elsewhere.known_price("vllm", "qwen3:8b") is not None, "the address is of another provider"


@pytest.mark.parametrize(
    ("prices", "found"),
    [
        ({"openai/gpt-6-sol": 3.0, "gpt-6-sol": 2.0, "gpt-6-sol-2026-05-01": 1.0}, 1.0),
        ({"gpt-6-sol-2026-05-01": 1.0, "openai/gpt-6-sol-2026-05-01": 4.0}, 4.0),
        ({"gpt-6-sol": 2.0, "openai/gpt-6-sol": 3.0}, 3.0),
        ({"openai/gpt-6-sol": 3.0}, 3.0),
        ({"gpt-6-sol": 2.0, "groq/gpt-6-sol": 3.0}, 2.0),
        ({"groq/gpt-6-sol": 3.0, "openai/gpt-6": 5.0}, None),
    ],
)
def test_configured_price_is_that_of_the_entry_that_names_the_model_most_closely(prices, found):
    given = tuple(ModelPrice(model=name, input_usd=0.0, output_usd=usd) for name, usd in prices.items())
    llm = LlmSettings(prices=given)
    price = llm.configured_price("openai", "gpt-6-sol-2026-05-01")
    assert (None if price is None else price.output_usd) == found


def test_price_that_nobody_names_is_unknown_and_counts_as_nothing_only_where_that_is_allowed():
    for name in ("gpt-6-sol", "claude-sonnet-5-5"):
        assert LlmSettings().known_price("openai", name) is None
        assert LlmSettings().price("openai", name).output_usd == 20.0, "as the dearest of the table"
        assert LlmSettings(unknown_price="zero").price("openai", name).output_usd == 0.0


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
    published = {row.model: row.cutoff for row in PUBLISHED}
    assert cutoff_of("claude-opus-5-5").date == published["claude-opus-5-5"] != published["claude-opus-5"]


def test_configured_cutoff_holds_for_every_model():
    found = cutoffs(("claude-opus-5-5", "own-model"), "2020-02-29")
    assert [(cutoff.date, cutoff.kind) for cutoff in found] == [(date(2020, 2, 29), "configured")] * 2


@pytest.mark.parametrize("text", ["2026-06", "20260630", "30.06.2026", "2026-02-30", "soon"])
def test_configured_cutoff_that_is_no_date_is_refused(text):
    with pytest.raises(ValueError, match=r"date|isoformat|month|day"):
        LlmSettings(knowledge_cutoff=text)
