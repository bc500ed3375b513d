"""Before and after what a model may know: two sets of figures, and no headline from the first."""

import json
from datetime import UTC, datetime, time
from functools import cache
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from schemas.canonical import datetime_to_ns, ns_to_datetime
from schemas.errors import ModelError
from schemas.settings import LlmSettings, PolicyLoopSettings, ReflectionSettings, Settings
from schemas.settings.llm import ModelPrice
from services.model_calls.language_model import ModelReply
from tests.worker.shared_runs import Run, embedded_bars, run_on, slice_run
from tests.worker.wire import GOOD, wire
from worker.cli import app
from worker.models import Models
from worker.pages.text_parts import text_of
from worker.runs.contamination import contamination, headline
from worker.runs.course import Course
from worker.runs.run_text import summary_parts

pytestmark = pytest.mark.usefixtures("over_the_cap")  # a reader is asked where it may decide

SLICE = ("2003-01-01", "2004-12-31")
CUT, MODEL = "2003-12-31", "claude-haiku-5-5"
DAY_NS = 86_400_000_000_000
CONFIG = """
[llm]
model = "anthropic/claude-test"
prices = [{{ model = "claude-test", input_usd = 0.1, output_usd = 0.5 }}]
{more}
[reflection]
budget_event_ms = 20000
budget_heartbeat_ms = 20000
"""


class Silent:
    """A strategist's model that never answers."""

    async def complete(self, **request: Any) -> ModelReply:
        raise ModelError("away", retryable=True, kind="network")


class Aimless:
    """One whose answers say nothing: the rules decide, and the run is labelled all the same."""

    async def complete(self, **request: Any) -> ModelReply:
        return ModelReply("Let me think about it.", "m", 1, 1, 0.1)


def asking(cutoff: str | None = CUT, model: str = MODEL) -> Settings:
    price = ModelPrice(model=model, input_usd=1.0, output_usd=1.0)
    llm = LlmSettings(knowledge_cutoff=cutoff, model=f"anthropic/{model}", prices=(price,))
    return Settings(policy_loop=PolicyLoopSettings(strategist="model"), llm=llm)


@cache
def modelled(by: type[Aimless | Silent] = Aimless) -> Run:
    return run_on(embedded_bars(*SLICE), asking(), models=Models(strategist=by()))


def divided(cutoff: str | None, model: str = MODEL) -> dict[str, Any]:
    """The run above as under other settings, which decide nothing in it."""
    found = contamination(asking(cutoff, model), modelled().result.course, {model})
    return found | {"headline": headline(found)}


def test_run_by_rules_is_clean_and_its_headline_is_the_whole_run():
    document = slice_run().document
    found, whole = document["contamination"], document["performance"]
    assert (found["label"], found["models"], found["bars_before"]) == ("clean", [], 0)
    assert found["bars_after"] == document["data"]["bars"]
    assert document["headline"]["window"] == "whole"
    for name in ("total_return", "sharpe", "max_drawdown", "trades", "win_rate", "expectancy_r"):
        assert document["headline"][name] == pytest.approx(whole[name])
    assert found["before"] == dict.fromkeys(found["before"]) | {"trades": 0}


def test_run_of_a_model_before_its_cutoff_has_no_headline():
    found = divided(None)
    assert (found["label"], found["cutoff"]) == ("contaminated", "2026-06-30")
    assert found["headline"] is None
    assert "all of the window lies before" in found["reason"]
    assert found["models"][0]["kind"] == "reliable knowledge"
    assert found["bars_after"] == 0
    assert found["before"]["trades"] == modelled().document["performance"]["trades"] > 0


def test_model_that_never_answered_is_not_named_and_contaminates_nothing():
    document = modelled(Silent).document
    assert document["model"]["outcomes"].keys() == {"network"}
    assert (document["contamination"]["label"], document["contamination"]["models"]) == ("clean", [])
    assert document["headline"] is not None


def test_run_of_a_model_whose_cutoff_nobody_tells_has_no_headline():
    found = divided(None, "somebody-elses")
    assert (found["label"], found["cutoff"], found["headline"]) == ("unknown", None, None)
    assert "set llm.knowledge_cutoff" in found["reason"]


def test_run_of_a_model_after_its_cutoff_is_clean():
    found, whole = divided("2002-12-31"), modelled().document["performance"]
    assert found["label"] == "clean"
    assert found["headline"]["total_return"] == pytest.approx(whole["total_return"])


def test_run_across_the_cutoff_is_divided_by_the_last_day_that_the_model_may_know():
    run = modelled()
    document, bars = run.document, embedded_bars(*SLICE)
    found, whole = document["contamination"], document["performance"]
    assert (found["label"], found["cutoff"]) == ("mixed", CUT)
    assert found["bars_before"] + found["bars_after"] == document["data"]["bars"]
    growth = (1.0 + found["before"]["total_return"]) * (1.0 + found["after"]["total_return"])
    assert growth - 1.0 == pytest.approx(whole["total_return"])
    assert found["before"]["trades"] + found["after"]["trades"] == whole["trades"]
    assert min(found["before"]["trades"], found["after"]["trades"]) > 0
    assert document["headline"] == {"window": "after_cutoff"} | found["after"]
    cut = 1_072_915_200_000_000_000  # 2004-01-01, the close of the bar of the last day
    assert found["bars_before"] == int(bars.present[bars.close_times <= cut].sum())


def test_trade_entered_before_the_cutoff_belongs_to_the_part_before():
    spanning = next(trade for trade in modelled().result.trades[20:] if trade.hold_bars > 5)
    day = ns_to_datetime(spanning.entry_label).date()
    found, cut = divided(day.isoformat()), datetime_to_ns(datetime.combine(day, time(), UTC)) + DAY_NS
    entered = [trade for trade in modelled().result.trades if trade.entry_label < cut]
    assert any(episode.exit_label > cut for episode in entered)
    assert found["before"]["trades"] == len(entered)
    mean = sum(episode.r for episode in entered) / len(entered)
    assert found["before"]["expectancy_r"] == pytest.approx(mean)


def test_latest_cutoff_of_all_models_in_use_counts():
    llm = LlmSettings(model="anthropic/claude-haiku-4-5", slow="anthropic/claude-opus-5-5")
    settings = Settings(reflection=ReflectionSettings(mode="full"), llm=llm)
    run, bars = slice_run(), embedded_bars("2003-01-01", "2005-10-31")
    times, equity = run.result.equity
    course = Course(bars, run.result.trades, np.array([1e5, *equity]), np.array([times[0] - 1, *times]))
    found = contamination(settings, course)
    assert found["cutoff"] == "2026-06-30"
    assert {item["cutoff"] for item in found["models"]} == {"2025-07-31", "2026-06-30"}


def backtest(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, more: str, *words: str) -> Any:
    config = tmp_path / "model.toml"
    config.write_text(CONFIG.format(more=more))
    window = ("--symbols", "AAPL", "--from", "2003-01-01", "--to", "2004-03-31")
    options = ("--reflection", "full", "--db", f"sqlite:///{tmp_path / 'a.db'}", *words)
    with wire(monkeypatch, GOOD):
        done = CliRunner().invoke(app, ["backtest", str(config), *window, *options])
    assert done.exit_code == 0, done.stderr
    return done


def test_command_line_says_why_a_run_of_an_unknown_model_has_no_headline(tmp_path, monkeypatch):
    text = backtest(tmp_path, monkeypatch, "").stdout
    assert "Performance: no headline" in text
    assert "no knowledge cutoff is known for claude-test" in " ".join(text.split())
    assert text.index("no headline") < text.index("Whole run, contaminated") < text.index("buy and hold")


def test_command_line_holds_both_parts_and_puts_what_follows_the_cutoff_first(tmp_path, monkeypatch):
    document = json.loads(backtest(tmp_path, monkeypatch, 'knowledge_cutoff = "2003-12-31"', "--json").stdout)
    assert document["contamination"]["label"] == "mixed"
    assert document["headline"]["window"] == "after_cutoff"
    assert document["headline"]["total_return"] != document["performance"]["total_return"]
    text = text_of(summary_parts(document), 100)
    titles = ("Performance after 2003-12-31", "To 2003-12-31, contaminated", "Whole run, contaminated")
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
