"""Every setting of execution and envelope, from file or environment, changes a run in the stated way."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.vocabulary import Structure, Trend, VolatilityBand
from services.statistics.calendar_units import unit_numbers, unit_of_timeframe
from tests.each_case import check_each
from tests.services.playbooks.samples import definition
from tests.worker.shared_runs import Run, embedded_bars, fewer_bars, run_on
from trading_core.rules import RuleColumns
from worker.settings import FIELDS, load_settings

FROM, TO = "2004-01-01", "2005-06-30"
DAY = 86_400 * 10**9
EVERYWHERE = {"trend": tuple(Trend), "volatility": tuple(VolatilityBand), "structure": tuple(Structure)}
RULES = {
    "setup": "close > ema_50",
    "activation": "close > ema_50",
    "stop": "min(close - 2 * atr_14, lowest_5 - atr_14)",
    "target": "close + 4 * atr_14",
    "invalidation": "close < lowest_5 - 0.5 * atr_14",
}


def always(rules: dict[str, str], **terms: str) -> PlaybookDefinition:
    """A long playbook that arms and orders at every close above its mean, in every regime."""
    return definition(
        rules={"long": RULES | rules},
        eligibility={"long": EVERYWHERE},
        parameters={},
        **terms,
    )


EAGER = always({})
PATIENT = always({"entry": "close - 0.5 * atr_14"}, entry_kind="limit")


def settings_of(tmp_path, text: str) -> Settings:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return load_settings(path, environment={}).settings


@cache
def plain() -> Run:
    return run_on(fewer_bars(FROM, TO))


@cache
def eager() -> Run:
    """All five symbols, so that a week has more than two entries."""
    return run_on(embedded_bars(FROM, TO), None, [EAGER])


@pytest.fixture
def run_with(tmp_path):
    def run(text: str) -> Run:
        return run_on(fewer_bars(FROM, TO), settings_of(tmp_path, text))

    return run


def fills(run: Run) -> list[dict[str, Any]]:
    return run.of("entry_filled", "scale_out_filled", "exit_filled")


def reasons(run: Run) -> set[str]:
    return {refusal["reason"] for refusal in run.of("order_refused")}


def on_grid(value: float, grid: float) -> bool:
    return value / grid == pytest.approx(round(value / grid), abs=1e-6)


def test_run_in_lots_fills_whole_lots_only(run_with):
    quantities = [fill["quantity"] for fill in fills(run_with("[execution]\nlot_size = 10"))]
    assert len(quantities) > 10
    assert all(on_grid(quantity, 10) for quantity in quantities)
    assert not all(on_grid(fill["quantity"], 10) for fill in fills(plain()))


@pytest.mark.parametrize("lot", ["0.1", "0.3", "0.001", "0.00000001", "3"])
def test_run_in_lots_writes_quantities_that_are_multiples_to_the_last_digit(run_with, lot):
    run = run_with(f"[execution]\nlot_size = {lot}")
    quantities = [fill["quantity"] for fill in (*fills(run), *run.of("order_accepted"))]
    quantities += [part["remaining"] for part in run.of("scale_out_filled")]
    quantities += [episode["episode"]["quantity"] for episode in run.of("episode")]
    quantities += [position["quantity"] for position in run.document["open_positions"]]
    assert len(quantities) > 40
    assert [quantity for quantity in quantities if Decimal(repr(quantity)) % Decimal(lot)] == []


def test_run_on_a_tick_grid_fills_and_stops_on_it(run_with):
    run = run_with("[execution]\ntick_size = 0.25")
    assert all(on_grid(fill["price"], 0.25) for fill in fills(run))
    assert all(
        on_grid(fill["stop"], 0.25) and on_grid(fill["target"], 0.25) for fill in run.of("entry_filled")
    )
    assert not all(on_grid(fill["price"], 0.25) for fill in fills(plain()))


@pytest.mark.parametrize(
    "line",
    [
        "funding_bps = 2.0",
        "borrow_bps = 5.0",
        "fee_bps = 9.0",
        "fee_per_trade = 1.0",
        "spread_bps = 10.0\nslippage_spread_fraction = 0.5",
    ],
)
def test_run_with_a_higher_cost_earns_less_on_the_first_trade_that_pays_it(run_with, line):
    run = run_with(f"[execution]\n{line}")
    side = "short" if "borrow" in line else "long"
    dear, cheap = (
        next(episode["episode"] for episode in each.of("episode") if episode["episode"]["direction"] == side)
        for each in (run, plain())
    )
    assert (dear["symbol"], dear["entry_label"]) == (cheap["symbol"], cheap["entry_label"])
    assert dear["r"] < cheap["r"]
    if "slippage" not in line:
        assert dear["fees"] > cheap["fees"]


def test_run_with_carry_breaks_even_where_its_fees_alone_take_what_is_left(tmp_path):
    """Funding and borrow are paid at any fee: only the fees of the fills could be others."""
    settings = settings_of(tmp_path, "[execution]\nfunding_bps = 0.5\nborrow_bps = 2.0")
    run = run_on(fewer_bars(FROM, "2006-06-30"), settings)
    ended = {fill["entry_order_id"] for fill in run.of("exit_filled")}
    paid = sum(fill["fee"] for fill in fills(run) if {fill["order_id"], fill.get("entry_order_id")} & ended)
    trades, found = run.result.trades, run.document["performance"]
    notional = sum(trade.quantity * (trade.entry_price + trade.exit_price) for trade in trades)
    left = sum(trade.pnl for trade in trades) + paid
    assert found["break_even_cost_bps"] == pytest.approx(2.0 + 1e4 * left / notional)
    assert sum(trade.fees for trade in trades) > paid + 10.0, "carry stands in the fees of a trade"
    assert run.document["open_positions"], "the carry of one that is open is not of a closed one"
    assert run.of("scale_out_filled")


def test_run_with_a_wide_spread_has_its_orders_refused_for_what_they_would_cost(run_with):
    wide = run_with("[execution]\nspread_bps = 1000.0\nslippage_spread_fraction = 0.5")
    assert "reward_to_risk" not in reasons(plain())
    assert "reward_to_risk" in reasons(wide)


def test_run_with_a_maker_fee_pays_it_on_limit_entries(run_with):
    run = run_with("[execution]\nmaker_fee_bps = 1.0")
    kinds = {order["order_id"]: order["entry_kind"] for order in run.of("order_accepted")}
    rates = {
        kind: {
            round(fill["fee"] / (fill["price"] * fill["quantity"]) * 1e4, 6)
            for fill in run.of("entry_filled")
            if kinds[fill["order_id"]] == kind
        }
        for kind in ("market", "limit")
    }
    assert rates == {"market": {5.0}, "limit": {1.0}}
    assert {
        round(fill["fee"] / (fill["price"] * fill["quantity"]) * 1e4, 6)
        for fill in run.of("exit_filled")
        if fill["reason"] == "target"
    } == {1.0}


def test_run_with_rounded_fees_pays_whole_units(run_with):
    assert all(on_grid(fill["fee"], 0.5) for fill in fills(run_with("[execution]\nfee_rounding = 0.5")))


GRID = '[execution]\ntick_size = 0.5\nlimit_fill = "{}"'


def test_run_that_needs_trades_through_a_limit_leaves_touched_ones_unfilled(tmp_path):
    bars = fewer_bars(FROM, TO)
    coarse = replace(
        bars, **{name: np.ceil(getattr(bars, name) * 2) / 2 for name in ("open", "high", "low", "close")}
    )
    touch, through = (
        run_on(coarse, settings_of(tmp_path, GRID.format(rule)), [PATIENT]) for rule in ("touch", "through")
    )
    assert len(through.of("entry_filled")) < len(touch.of("entry_filled"))
    assert len(through.of("order_refused")) > len(touch.of("order_refused"))


def test_run_with_time_exits_at_the_close_leaves_there(run_with):
    run = run_with('[execution]\ntime_exit = "close"')
    bars = fewer_bars(FROM, TO)
    rows = {int(label): row for row, label in enumerate(bars.times)}
    timed = [
        event for event in run.rows if event.kind == "exit_filled" and '"reason":"time_stop"' in event.payload
    ]
    assert timed
    for row in timed:
        one = json.loads(row.payload)
        close = bars.close[rows[one["bar_label"]], bars.symbols.index(row.symbol)]
        assert one["raw_price"] == pytest.approx(close)


def test_run_sized_by_volatility_risks_its_fraction_over_so_many_atrs(run_with):
    run = run_with('[execution]\nsizing = "volatility"\nvolatility_multiple = 4.0\n[account]\ncash = 1e6')
    bars = fewer_bars(FROM, TO)
    columns = RuleColumns(bars)
    clamped = [(row.symbol, row.known_at) for row in run.rows if row.kind == "order_clamped"]
    first = next(
        row for row in run.rows if row.kind == "order_accepted" and (row.symbol, row.known_at) not in clamped
    )
    order = json.loads(first.payload)
    row = int(bars.times.searchsorted(order["bar_label"]))
    atr = columns.number("atr_14", bars.symbols.index(first.symbol))[row]
    equity = 1e6 if row == 0 else run.result.equity[1][row]
    assert order["quantity"] == pytest.approx(equity * 0.005 / (4.0 * atr))
    assert order["quantity"] != pytest.approx(equity * 0.005 / order["planned_risk"])


def test_run_sized_fixed_orders_that_many_units(run_with):
    run = run_with('[execution]\nsizing = "fixed"\nfixed_quantity = 7.0')
    clamped = {clamp["quantity"] for clamp in run.of("order_clamped")}
    assert {order["quantity"] for order in run.of("order_accepted")} - clamped == {7.0}


def test_run_with_a_throttle_refuses_the_order_too_many(tmp_path):
    assert "throttled" not in reasons(eager())
    run = run_on(fewer_bars(FROM, TO), settings_of(tmp_path, "[envelope]\nmax_entries_per_hour = 1"), [EAGER])
    assert "throttled" in reasons(run)
    accepted = [row.known_at for row in run.rows if row.kind == "order_accepted"]
    assert all(later - earlier >= 3_600 * 10**9 for earlier, later in pairwise(accepted))


@pytest.mark.parametrize("block", ["", "week", "quarter"])
def test_run_with_a_limit_per_block_opens_no_more_positions_in_one(tmp_path, block):
    """A block is the one of the gate: a month on daily bars unless `gate.block` says another."""
    given = f'[envelope]\nmax_entries_per_block = 2\n[gate]\nblock = "{block}"'
    run = run_on(embedded_bars(FROM, TO), settings_of(tmp_path, given), [EAGER])
    assert "throttled" in reasons(run)
    unit = unit_of_timeframe(block, "1d")
    filled = [row.ts_event for row in run.rows if row.kind == "entry_filled"]
    _, entries = np.unique(unit_numbers(filled, unit), return_counts=True)
    assert entries.max() == 2
    _, unlimited = np.unique(
        unit_numbers([row.ts_event for row in eager().rows if row.kind == "entry_filled"], unit),
        return_counts=True,
    )
    assert unlimited.max() > 2


WINDOW = """
[[envelope.no_trade_windows]]
reason = "results are due"
symbol = "AAPL"
start = 2004-08-01T00:00:00Z
end = "2005-03-01T00:00:00+00:00"
"""


def test_run_with_a_no_trade_window_accepts_no_order_of_its_symbol_inside(run_with):
    def inside(run: Run) -> list[str | None]:
        start, end = 1_091_318_400 * 10**9, 1_109_635_200 * 10**9
        found = [row for row in run.rows if row.kind == "order_accepted" and start <= row.known_at < end]
        return [row.symbol for row in found]

    run = run_with(WINDOW)
    assert "AAPL" in inside(plain())
    assert "AAPL" not in inside(run)
    assert set(inside(run)) - {"AAPL"}
    assert "no_trade_window" in reasons(run)
    refused = [refusal for refusal in run.of("order_refused") if refusal["reason"] == "no_trade_window"]
    assert all(item["windows"] == ["results are due"] for item in refused), "the refusal names its window"
    assert all("windows" not in refusal for refusal in run.of("order_refused") if refusal not in refused)


def test_run_without_a_cooldown_ends_as_any_other(run_with):
    run = run_with("[envelope]\ncooldown_bars = 0")
    assert run.document["errors"] == 0
    assert len(run.of("exit_filled")) > 5
    assert {row.kind for row in run.rows} >= {"episode", "policy_frozen"}


def test_run_with_a_daily_no_trade_window_never_orders_on_its_weekday(run_with):
    # A daily bar closes at 00:00 UTC after its session: minute 0 of the next day.
    text = '[[envelope.no_trade_windows]]\nreason = "x"\nfrom_minute = 0\nto_minute = 1\nweekdays = [{}]'
    run = run_with(text.format("1, 2, 3"))
    days = {(row.known_at // DAY + 3) % 7 for row in run.rows if row.kind == "order_accepted"}
    assert days
    assert days.isdisjoint({1, 2, 3})
    assert "no_trade_window" in reasons(run)


def test_run_with_a_correlation_bucket_clamps_what_would_fill_it(run_with):
    run = run_with(
        '[[envelope.correlation_buckets]]\nname = "tech"\nsymbols = ["AAPL", "IBM", "MSFT"]\n'
        "max_exposure = 0.15"
    )
    clamps = {name for clamp in run.of("order_clamped") for name in clamp["clamps"]}
    assert "bucket_exposure" in clamps
    assert "bucket_exposure" not in {
        name for clamp in plain().of("order_clamped") for name in clamp["clamps"]
    }


@pytest.mark.parametrize(
    ("line", "clamp"),
    [("max_net_exposure = 0.1", "net_exposure"), ("max_symbol_exposure = 0.08", "symbol_exposure")],
)
def test_run_with_an_exposure_cap_clamps_to_it(run_with, line, clamp):
    run = run_with(f"[envelope]\n{line}")
    assert clamp in {name for item in run.of("order_clamped") for name in item["clamps"]}
    assert all(item["quantity"] < item["wanted"] for item in run.of("order_clamped"))
    assert clamp not in {name for entry in plain().of("order_clamped") for name in entry["clamps"]}


def test_run_with_consecutive_losses_breaches_and_flattens_at_the_next_open(run_with):
    run = run_with("[envelope]\nmax_consecutive_losses = 1")
    breaches = [row for row in run.rows if row.kind == "envelope_breach"]
    assert {json.loads(row.payload)["limit"] for row in breaches} == {"consecutive_losses"}
    bars = fewer_bars(FROM, TO)
    forced = [row for row in run.rows if row.kind == "exit_filled" and '"reason":"envelope"' in row.payload]
    assert forced
    closes = [int(bars.close_times[k + 1]) for k, at in enumerate(bars.close_times[:-1]) if at in
              {row.known_at for row in breaches}]  # fmt: skip
    assert {row.known_at for row in forced} <= set(closes)
    assert "halted" in reasons(run) or run.document["policy_loop"]["passed_over"]["trading_halted"]


def test_run_with_symbol_losses_pauses_that_symbol(run_with):
    run = run_with("[envelope]\nmax_symbol_losses = 1\nloss_pause_bars = 40")
    limits = {json.loads(row.payload)["limit"] for row in run.rows if row.kind == "envelope_breach"}
    assert limits == {"symbol_losses"}
    assert "paused_after_losses" in reasons(run)


def test_run_with_other_regime_settings_has_other_regime_events(run_with):
    def regimes(run: Run) -> list[tuple[int, str | None]]:
        return [
            (row.known_at, row.symbol)
            for row in run.rows
            if row.kind == "policy_event" and "regime_change" in json.loads(row.payload)["events"]
        ]

    run = run_with("[policy_loop.regime]\nconfirm = 1\nconfirm_of = 1\ndwell = 0")
    assert regimes(run) != regimes(plain())
    assert len(regimes(run)) > len(regimes(plain()))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (WINDOW.replace("AAPL", "APPL"), "no_trade_windows"),
        (
            '[[envelope.correlation_buckets]]\nname = "t"\nsymbols = ["APPL"]\nmax_exposure = 0.5',
            "correlation_buckets",
        ),
    ],
)
def test_run_with_an_unknown_symbol_in_a_limit_names_it(run_with, text, place):
    with pytest.raises(ConfigError, match=rf"{place}.*unknown symbol 'APPL'.*Did you mean 'AAPL'\?"):
        run_with(text)


NEW = sorted(
    key
    for key in FIELDS
    if key.startswith(("execution.", "envelope.", "policy_loop.regime."))
    and FIELDS[key].annotation in (int, float, bool, float | None)
)


@check_each("key", NEW)
def test_settings_every_number_of_execution_and_limits_is_read_from_the_environment_and_hashed(key):
    default = FIELDS[key].default
    other = {"execution.maker_fee_bps": "3", "envelope.risk_fraction": "0.004"}.get(key)
    if other is None:
        other = "true" if default is False else "false" if default is True else str(_moved(key, default))
    name = "THINKTWICE_" + key.upper().replace(".", "__")
    settings = load_settings(environment={name: other}).settings
    assert settings.config_hash != Settings().config_hash
    assert not isinstance(_value(settings, key), str)
    assert json.dumps(_value(settings, key)) == other or float(_value(settings, key)) == float(other)


def _value(settings: Settings, key: str) -> Any:
    value: Any = settings.payload()
    for part in key.split("."):
        value = value[part]
    return value


def _moved(key: str, default: float) -> float:
    """Another allowed value: between neighbours for ranks, a little off for everything else."""
    if isinstance(default, int):
        return default + 1
    return round(default * 1.01 + (0.5 if default == 0.0 else 0.0), 6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[policy_loop.regime]\nconfrim = 2",
            "no setting 'confrim' in section [policy_loop.regime]. Did",
        ),
        ("[policy_loop]\nregime = 3", "'policy_loop.regime' is a section: write [policy_loop.regime]"),
        ("[policy_loop.regime]\nconfirm = 9", "confirm 9 lies above confirm_of 5"),
        (WINDOW.replace("Z\n", "\n"), "naive time"),
        (WINDOW.replace("2004-08-01T00:00:00Z", '"soon"'), "Invalid isoformat string: 'soon'"),
        (WINDOW.replace("2004-08-01", "2006-08-01"), "a window must end after it starts"),
        ("[[envelope.no_learn_zones]]\nreason = 'x'\nstart = 2004-01-01T00:00:00\nend = 5", "naive time"),
    ],
)
def test_settings_of_windows_and_regimes_that_do_not_fit_are_one_line(tmp_path, text, words):
    with pytest.raises(ConfigError, match=re.escape(words)) as caught:
        settings_of(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_settings_times_of_zones_and_windows_are_read_alike(tmp_path):
    zone = WINDOW.replace("no_trade_windows", "no_learn_zones")
    envelope = settings_of(tmp_path, WINDOW + zone).envelope
    expected = (1_091_318_400 * 10**9, 1_109_635_200 * 10**9)
    assert [(window.start, window.end) for window in envelope.no_trade_windows] == [expected]
    assert [(no_learn_zone.start, no_learn_zone.end) for no_learn_zone in envelope.no_learn_zones] == [
        expected
    ]
