"""The smallest playbook trades at the default settings: its setup orders at its close, live as in a batch."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thinktwice as tt
from benchmarks.textbook_trades import DEFAULT_COOLDOWN, compare, textbook
from schemas.errors import ConfigError
from schemas.playbook import Expectation, PlaybookDefinition
from schemas.settings import DataSettings, EnvelopeSettings, ReflectionSettings, RuntimeSettings, Settings
from schemas.vocabulary import Structure, Trend, VolatilityBand
from services.playbooks.loader import load_playbooks, parse_playbook
from services.policy_checks.static_checks import list_mistakes
from tests.trading_core.price_paths import one_symbol, walk
from tests.worker.live.paper_runs import replayed, traded, waiting_feed
from tests.worker.shared_runs import Run, run_on
from trading_core.regime import regime_columns
from trading_core.rules.columns import RuleColumns
from worker.feeds.sample_data import load_embedded_bars

SMALLEST = """
id = "dual_average"
[rules.long]
setup = "crosses_above(sma_20, sma_50)"
stop = "close - 10 * atr_14"
invalidation = "sma_20 < sma_50"
"""
BARS = load_embedded_bars(["AAPL"], start="2003-01-01", end="2005-12-31")


def read(text: str) -> PlaybookDefinition:
    return parse_playbook(text.encode(), Path("mine.toml"))


def events(run: Run, kind: str) -> list[dict[str, Any]]:
    return [json.loads(row.payload) for row in run.rows if row.kind == kind]


def test_smallest_playbook_has_defaults_that_trade():
    playbook = read(SMALLEST)
    assert (playbook.title, playbook.description) == ("dual average", "dual average")
    assert playbook.horizon_bars == 250
    assert playbook.activation_window_bars == 0
    everywhere = playbook.eligibility["long"]
    assert everywhere.trend == tuple(Trend)
    assert everywhere.volatility == tuple(VolatilityBand)
    assert everywhere.structure == tuple(Structure)
    assert playbook.expectation == Expectation.by_default(250)
    assert playbook.expectation.source == "default"
    assert playbook.rules["long"].has_far_target
    assert list_mistakes((playbook,), Settings()) == ()
    assert tt.Playbook("dual_average", long=dict(playbook.rules["long"])) == playbook


def test_eligibility_that_names_one_regime_label_leaves_the_others_open():
    playbook = read(SMALLEST + '[eligibility.long]\ntrend = ["up"]\n')
    assert playbook.eligibility["long"].trend == (Trend.UP,)
    assert playbook.eligibility["long"].structure == tuple(Structure)


def test_activation_rule_waits_three_bars_by_default():
    assert read(SMALLEST + 'activation = "close > highest_5"\n').activation_window_bars == 3


def test_window_without_an_activation_waits_for_a_close_beyond_the_setup_bar():
    playbook = read("activation_window_bars = 3\n" + SMALLEST)
    run = run_on(BARS, Settings(), [playbook])
    armed, activated = events(run, "thesis_armed"), events(run, "activation_triggered")
    assert 0 < len(activated) <= len(armed)
    assert all(1 <= event["bars"] <= 3 for event in activated)
    setups = {event["policy_id"]: event["setup_high"] for event in armed}
    orders = events(run, "order_accepted")
    assert all(order["signal_close"] > setups[order["policy_id"]] for order in orders)
    assert len(orders) > 1


def test_omitted_activation_orders_at_the_close_of_the_setup():
    run = run_on(BARS, Settings(), [read(SMALLEST)])
    labels = {kind: [event["bar_label"] for event in events(run, kind)] for kind in (
        "thesis_armed", "activation_triggered", "order_accepted")}  # fmt: skip
    assert len(labels["order_accepted"]) >= 4
    assert labels["thesis_armed"] == labels["activation_triggered"] == labels["order_accepted"]
    rows = {int(label): row for row, label in enumerate(BARS.times)}
    filled = [rows[event["bar_label"]] for event in events(run, "entry_filled")]
    assert filled == [rows[label] + 1 for label in labels["order_accepted"]]
    assert {event["reason"] for event in events(run, "order_refused")} == set()


def test_setup_whose_invalidation_is_true_orders_nothing_and_the_policy_stays():
    playbook = read(SMALLEST.replace("crosses_above(sma_20, sma_50)", "close > prev(close, 1)"))
    run = run_on(BARS, Settings(reflection=ReflectionSettings(mode="off")), [playbook])
    columns = RuleColumns(BARS)
    over = [columns.boolean("sma_20 < sma_50", s) for s in range(len(BARS.symbols))]
    rows = {int(label): row for row, label in enumerate(BARS.times)}
    armed = events(run, "thesis_armed")
    assert len(armed) > 3
    assert all(over[0][rows[event["bar_label"]]] == 0 for event in armed)
    ended = {event["policy_id"] for event in events(run, "order_refused")}
    assert len(events(run, "entry_filled")) > 3
    assert ended == set()


def test_limit_entry_without_a_window_rests_for_one_bar():
    limit = read('entry_kind = "limit"\n' + SMALLEST + 'entry = "close - 0.5 * atr_14"\n')
    run = run_on(BARS, Settings(), [limit])
    rows = {int(label): row for row, label in enumerate(BARS.times)}
    accepted = [rows[event["bar_label"]] for event in events(run, "order_accepted")]
    filled = [rows[event["bar_label"]] for event in events(run, "entry_filled")]
    refused = [(rows[event["bar_label"]], event["reason"]) for event in events(run, "order_refused")]
    assert len(filled) >= 1
    assert len(refused) >= 1
    assert {reason for _, reason in refused} == {"unfilled"}
    assert sorted(filled + [row for row, _ in refused]) == [row + 1 for row in accepted]


WAYS_OUT = {
    "invalidation": SMALLEST,
    "exit": SMALLEST.replace("invalidation =", "exit =").replace("< sma_50", "< sma_50 or bars_held >= 30"),
    "trail": SMALLEST.replace("invalidation =", "trail =").replace("sma_20 < sma_50", "0.95 * close"),
    "trail of the position": SMALLEST.replace("invalidation =", "trail =").replace(
        "sma_20 < sma_50", "min(close - 2 * atr_14, entry_price + 3 * atr_14)"
    ),
    "managed": """
id = "dual_average"
scale_out_r = [0.5, 1.0]
scale_out_share = [0.25, 0.25]
add_at_r = 0.3
add_share = 0.5
target_moves = true
[rules.long]
setup = "crosses_above(sma_20, sma_50)"
stop = "close - 3 * atr_14"
target = "close + 10 * atr_14"
exit = "sma_20 < sma_50"
""",
}


def test_position_is_added_to_and_scaled_out_as_its_playbook_says():
    run = run_on(BARS, Settings(), [read(WAYS_OUT["managed"])])
    entries = {event["order_id"]: event["quantity"] for event in events(run, "entry_filled")}
    added, scaled = events(run, "add_filled"), events(run, "scale_out_filled")
    assert len(added) >= 2
    assert all(event["quantity"] <= 0.5 * entries[event["entry_order_id"]] for event in added)
    assert len({event["entry_order_id"] for event in added}) == len(added)
    assert max(Counter(event["entry_order_id"] for event in scaled).values()) == 2


def test_target_that_moves_without_a_target_is_refused():
    with pytest.raises(ConfigError, match="target_moves is true, yet rules.long has no target: leave it out"):
        read("target_moves = true\n" + SMALLEST)


@pytest.mark.parametrize("way", ["exit", "trail", "trail of the position"])
def test_one_way_out_closes_positions_for_its_reason(way):
    playbook = read(WAYS_OUT[way])
    assert playbook.rules["long"].has_far_target
    assert list_mistakes((playbook,), Settings()) == ()
    run = run_on(BARS, Settings(), [playbook])
    exits = events(run, "exit_filled")
    assert len(exits) >= 3
    if way == "exit":
        hits = {event["bar_label"] for event in events(run, "exit_rule_hit")}
        rows = {int(label): row for row, label in enumerate(BARS.times)}
        closed = [event for event in exits if event["reason"] == "exit_rule"]
        assert len(closed) >= 3
        assert {int(BARS.times[rows[event["bar_label"]] - 1]) for event in closed} == hits
        assert not events(run, "invalidation_hit")
    else:
        assert {event["reason"] for event in exits} <= {"stop", "time_stop"}
        assert "trail" in {event["by"] for event in events(run, "stop_tightened")}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_paper_and_its_replay_order_at_the_close_of_the_setup_as_the_backtest_does(tmp_path, way):
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "mine.toml").write_text(WAYS_OUT[way], "utf-8")
    settings = Settings(runtime=RuntimeSettings(playbooks=str(tmp_path / "books")))
    bars = load_embedded_bars(["AAPL"], start="2003-01-01", end="2004-06-30")
    batch = run_on(bars, settings, load_playbooks(tmp_path / "books"))
    assert len(events(batch, "entry_filled")) >= 2
    outcome = traded(tmp_path, settings, waiting_feed(bars))
    assert outcome.document is not None
    assert outcome.document["journal"]["head_hash"] == batch.document["journal"]["head_hash"]
    assert replayed(tmp_path, settings).ok


def test_time_of_day_exit_keeps_the_clock_of_its_zone_over_daylight_saving_live_as_in_a_batch(tmp_path):
    zone = "America/New_York"
    days = pd.bdate_range("2024-02-05", "2024-03-29", tz=zone) + pd.Timedelta(hours=9, minutes=30)
    times = np.concatenate([pd.date_range(day, periods=13, freq="30min", unit="ns").asi8 for day in days])
    bars = replace(one_symbol(walk(3, times.size), timeframe="30m"), times=times, zone=zone)
    text = (
        SMALLEST.partition("\nsetup")[0]
        + """
setup = "minute_of_day == 600"
stop = "close - 10 * atr_14"
exit = "minute_of_day >= 900"
"""
    )
    (tmp_path / "mine.toml").write_text(text, "utf-8")
    runtime = RuntimeSettings(playbooks=str(tmp_path / "mine.toml"))
    settings = Settings(runtime=runtime, data=DataSettings(zone=zone))
    batch = run_on(bars, settings, [read(text)])
    closed = pd.to_datetime([e["bar_label"] for e in events(batch, "exit_filled")], utc=True)
    assert (closed < pd.Timestamp("2024-03-10", tz=zone)).sum() > 3
    assert (closed > pd.Timestamp("2024-03-10", tz=zone)).sum() > 3
    assert set(closed.tz_convert(zone).strftime("%H:%M")) == {"15:30"}  # the open after the close at 15:30
    assert len(set(closed.strftime("%H:%M"))) == 2
    outcome = traded(tmp_path, settings, waiting_feed(bars))
    assert outcome.document is not None
    assert outcome.document["journal"]["head_hash"] == batch.document["journal"]["head_hash"]
    assert replayed(tmp_path, settings).ok


EAGER = """
id = "eager"
[rules.long]
setup = "close > sma_5"
stop = "close - 2 * atr_14"
exit = "bars_held >= 2"
"""


def test_playbook_that_asks_for_no_regime_warms_up_as_long_as_its_own_rules():
    run = run_on(BARS, Settings(), [read(EAGER)])
    known = np.flatnonzero(regime_columns(BARS).trend[:, 0] >= 0)[0]
    frozen = [int(row.ts_event) for row in run.rows if row.kind == "policy_frozen"]
    assert 13 <= np.searchsorted(BARS.close_times, frozen[0]) < 13 + 5 < known  # atr_14, then a heartbeat
    episodes = [event["episode"] for event in run.of("episode")]
    before = [episode for episode in episodes if episode["regime"] == "unknown"]
    assert before == episodes[: len(before)]
    assert len(before) > 5
    assert {(episode["structure"], *episode["fingerprint"]) for episode in before} == {("unknown",)}
    memory, (signals,) = run.document["memory"], run.document["signals"]["playbooks"]
    assert memory["ignored"]["no_regime"] == len(before)
    assert memory["episodes"] == len(episodes) - len(before)
    assert signals["not_met"].get("warming_up", 0) <= 5
    assert run.document["errors"] == 0


def test_playbook_that_names_a_regime_waits_until_it_is_known():
    run = run_on(BARS, Settings(), [read(EAGER + '[eligibility.long]\ntrend = ["up", "sideways"]\n')])
    known = np.flatnonzero(regime_columns(BARS).trend[:, 0] >= 0)[0]
    frozen = [int(row.ts_event) for row in run.rows if row.kind == "policy_frozen"]
    assert frozen[0] >= BARS.close_times[known]
    assert run.document["memory"]["ignored"]["no_regime"] == 0


def test_risk_above_the_cap_is_clamped_with_an_event_and_trades():
    bold = read("risk_fraction = 0.02\n" + SMALLEST)
    run = run_on(BARS, Settings(envelope=EnvelopeSettings(risk_fraction=0.005)), [bold])
    orders, clamps = events(run, "order_accepted"), events(run, "order_clamped")
    assert len(orders) >= 4
    assert [clamp["clamps"] for clamp in clamps] == [["risk_cap"]] * len(orders)
    (mistake,) = list_mistakes((bold,), Settings())
    assert "every order is clamped to envelope.risk_fraction (0.005)" in mistake.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SMALLEST.partition("invalidation")[0], ["rules.long", "give a way out", "target", "exit", "trail"]),
        (SMALLEST + 'activation = "open_r > 1"', ["rules.long.activation", "'open_r'", "exit and trail"]),
        (SMALLEST.replace("setup", "stup"), ["rules.long.setup", "missing", "Is it 'stup'?"]),
        (SMALLEST.replace("sma_20,", "smma_20,"), ["rules.long.setup", "Did you mean 'sma_20'?"]),
        (
            SMALLEST + SMALLEST.partition("\n[")[2].replace("rules.long", "[rules.short")
            + '[eligibility.long]\ntrend = ["up"]\n',
            ["eligibility must name the same directions as rules, ['long', 'short'], or be left out"],
        ),
        (
            'activation_window_bars = 0\n' + SMALLEST + 'activation = "close > highest_5"\n',
            ["activation_window_bars is 0", "rules.long", "leave one out"],
        ),
        (
            SMALLEST + 'activation = "close > highest_5"\n'
            + SMALLEST.partition("\n[")[2].replace("rules.long", "[rules.short"),
            ["rules.long has an activation and the other direction has none"],
        ),
    ],
    ids=[
        "no_way_out", "no_position", "key", "feature", "half_eligibility", "window_of_none",
        "half_activation",
    ],
)  # fmt: skip
def test_playbook_that_cannot_be_completed_is_refused_with_what_to_write(text, words):
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize("name", ["dual_average", "bollinger", "donchian", "rsi2"])
def test_textbook_strategy_makes_four_of_five_of_its_trades_at_the_default_settings(name):
    (playbook,) = (book for book in textbook() if book.id == name)
    bars = load_embedded_bars(["AAPL"], start="2003-01-01", end="2010-12-31")
    payload = compare(bars, playbook, "deterministic", DEFAULT_COOLDOWN)
    assert payload["textbook"] >= 20
    assert payload["same entry"] >= 0.8 * payload["textbook"], payload
    assert payload["same entry and exit"] >= 0.9 * payload["same entry"], payload


def test_textbook_is_a_set_of_its_own_by_name_and_none_of_the_default_one():
    names = {book.id for book in load_playbooks(Path("textbook"))}
    assert names == {
        "bollinger", "cross_sectional_momentum", "donchian", "dual_average", "opening_range", "rsi2",
        "trailing_only",
    }  # fmt: skip
    assert not names & {book.id for book in load_playbooks(None)}
    assert [book.id for book in load_playbooks(Path("rsi2"))] == ["rsi2"]
