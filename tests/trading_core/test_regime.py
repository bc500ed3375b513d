import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.regime import FINGERPRINT
from schemas.vocabulary import Structure, Trend, VolatilityBand
from tests.each_case import check_each
from tests.trading_core.price_paths import columns_of, one_symbol, series, walk
from trading_core.bars import BarSeries
from trading_core.features import FeatureColumns, compute, resolve
from trading_core.regime import CODES, FEATURES_READ, RegimeReason, RegimeSettings, regime_columns
from trading_core.regime_recurrence import STATE_SIZE, extend

SIDEWAYS, UP, DOWN = range(3)
FIELDS = ("trend", "volatility", "structure", "fingerprint", "trend_change", "band_shift", "shock", "reason")
WARM = max(resolve(name).lookback for name in FEATURES_READ)


def _path(*legs: tuple[float, float, int], seed: int = 0):
    """Closes whose log returns have the given drift, volatility and length, leg after leg."""
    rng = np.random.default_rng(seed)
    steps = np.concatenate([rng.normal(drift, volatility, n) for drift, volatility, n in legs])
    return 100 * np.exp(np.cumsum(steps))


def _changes(bars: BarSeries, **kwargs):
    regime = regime_columns(bars, **kwargs)
    return [(int(t), int(regime.trend[t, 0])) for t in np.flatnonzero(regime.trend_change[:, 0])]


def _equal_bytes(a, b, rows=slice(None), columns=slice(None)):
    return all(
        getattr(a, name)[rows, columns].tobytes() == getattr(b, name)[rows, columns].tobytes()
        for name in FIELDS
    )


@check_each("seed", range(8))
@check_each("noise", [1e-9, 0.5, 1.0])
def test_regime_pure_flip_up_to_down_fires_once(seed, noise):
    changes = _changes(
        one_symbol(_path((0.003, 0.003 * noise, 400), (-0.003, 0.003 * noise, 300), seed=seed))
    )
    assert [label for _, label in changes] == [DOWN]
    assert 400 < changes[0][0] < 440


@pytest.mark.parametrize("legs", [150, 250])
@pytest.mark.parametrize("slope", [0.1, 0.5])
def test_regime_flip_of_a_straight_line_fires_once_in_both_orders(legs, slope):
    up, down = 100 + slope * np.arange(legs), 100 + slope * np.arange(legs)[::-1]
    for first, second, label in ((up, down, DOWN), (down, up, UP)):
        close = np.concatenate([first, second])
        flat = {
            "open": close,
            "high": close + 0.5,
            "low": close - 0.5,
            "close": close,
            "volume": np.ones(2 * legs),
        }
        assert [changed for _, changed in _changes(series({"AAA": flat}))] == [label]


def test_regime_steady_trend_fires_nothing():
    assert _changes(one_symbol(_path((0.003, 0.003, 1_500)))) == []


def test_regime_range_bound_market_is_mostly_sideways_and_a_trend_is_not():
    rng, level = np.random.default_rng(0), np.zeros(2_000)
    for t in range(1, level.size):
        level[t] = 0.93 * level[t - 1] + rng.normal(0, 0.01)
    ranging = regime_columns(one_symbol(100 * np.exp(level))).trend[WARM:, 0]
    trending = regime_columns(one_symbol(_path((0.003, 0.004, 2_000)))).trend[WARM:, 0]
    assert (ranging == SIDEWAYS).mean() > 0.4
    assert (trending == UP).mean() > 0.95


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("length", [40, 120])
def test_regime_sustained_extreme_volatility_fires_one_shock_on_entering(seed, length):
    bars = one_symbol(_path((0.0, 0.004, 500), (0.0, 0.03, length), seed=seed))
    regime = regime_columns(bars)
    fired = np.flatnonzero(regime.shock[:, 0])
    assert ((fired >= 500).sum(), (fired >= 510).sum()) == (1, 0)
    assert (regime.reason[fired, 0] == tuple(RegimeReason).index(RegimeReason.SHOCK)).all()
    assert tuple(VolatilityBand)[regime.volatility[515, 0]] is VolatilityBand.EXTREME


def test_regime_second_shock_after_calm_fires_again():
    calm, wild = (0.0, 0.004, 400), (0.0, 0.04, 30)
    shocks = np.flatnonzero(regime_columns(one_symbol(_path(calm, wild, calm, wild, seed=3))).shock[:, 0])
    assert ((shocks >= 400) & (shocks < 430)).sum() == 1
    assert (shocks >= 830).sum() == 1


def test_regime_band_shift_is_a_change_of_the_confirmed_band_after_the_dwell():
    regime = regime_columns(one_symbol(walk(5, 3_000)))
    band = regime.volatility[WARM:, 0]
    changed = np.flatnonzero(np.diff(band)) + 1
    assert np.flatnonzero(regime.band_shift[WARM:, 0]).tolist() == changed.tolist()
    assert changed.size > 50
    assert np.diff(changed).min() > RegimeSettings().dwell
    assert set(band.tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("factor", [100.0, 0.013, 7.3])
def test_regime_scaled_prices_change_no_label(factor):
    bars = one_symbol(walk(8, 1_500))
    prices = {name: getattr(bars, name) * factor for name in ("open", "high", "low", "close")}
    assert _equal_bytes(regime_columns(bars), regime_columns(dataclasses.replace(bars, **prices)))


def test_regime_same_shape_on_another_timeframe_changes_no_label():
    close = walk(8, 1_500)
    daily = regime_columns(one_symbol(close, timeframe="1d"))
    assert _equal_bytes(daily, regime_columns(one_symbol(close, timeframe="1m")))


def test_regime_missing_bars_of_one_symbol_do_not_affect_another():
    n = 600
    present = np.column_stack([np.random.default_rng(0).random(n) > 0.4, np.ones(n, dtype=bool)])
    shapes = {"AAA": columns_of(walk(1, n)), "BBB": columns_of(walk(2, n), seed=9)}
    gappy, full = series(shapes, present=present), series(shapes)
    assert _equal_bytes(regime_columns(gappy), regime_columns(full), columns=slice(1, 2))
    alone, both = regime_columns(gappy.select(("AAA",))), regime_columns(gappy)
    for name in FIELDS:
        assert getattr(both, name)[present[:, 0], 0].tobytes() == getattr(alone, name)[:, 0].tobytes()


def test_regime_absent_bar_carries_labels_and_has_no_event():
    n = 700
    present = np.ones((n, 2), dtype=bool)
    present[:40, 0] = False
    present[300::5, 0] = False
    regime = regime_columns(
        series({"AAA": columns_of(walk(1, n)), "BBB": columns_of(walk(2, n))}, present=present)
    )
    gaps = np.flatnonzero(~present[40:, 0]) + 40
    assert (regime.trend[:40, 0] == -1).all()
    for name in ("trend", "volatility", "structure"):
        assert (getattr(regime, name)[gaps, 0] == getattr(regime, name)[gaps - 1, 0]).all()
    assert regime.fingerprint[gaps, 0].tobytes() == regime.fingerprint[gaps - 1, 0].tobytes()
    assert not (regime.trend_change + regime.band_shift + regime.shock)[~present].any()
    assert (regime.reason[~present] == 0).all()
    assert (regime.reason[present] > 0).all()


@pytest.mark.parametrize("t", [50, WARM, 300, 598])
def test_regime_changed_future_leaves_the_past_byte_equal(t):
    original = columns_of(walk(1, 600))
    changed = columns_of(walk(2, 600, start=900.0))
    for name, values in changed.items():
        values[: t + 1] = original[name][: t + 1]
    before, after = regime_columns(series({"AAA": original})), regime_columns(series({"AAA": changed}))
    assert _equal_bytes(before, after, rows=slice(0, t + 1))


def test_regime_warming_up_has_no_label_and_then_starts_at_once():
    regime = regime_columns(one_symbol(walk(1, 400)))
    for name in ("trend", "volatility", "structure"):
        assert (getattr(regime, name)[:WARM] == -1).all()
        assert (getattr(regime, name)[WARM:] >= 0).all()
    assert np.isnan(regime.fingerprint[:WARM]).all()
    assert np.isfinite(regime.fingerprint[WARM:]).all()
    reasons = tuple(RegimeReason)
    assert {reasons[code] for code in regime.reason[:WARM, 0]} == {RegimeReason.WARMING_UP}
    assert reasons[regime.reason[WARM, 0]] is RegimeReason.INITIAL
    assert not (regime.trend_change + regime.band_shift + regime.shock)[: WARM + 1].any()


def test_regime_reason_of_every_bar_agrees_with_its_events():
    regime = regime_columns(one_symbol(walk(4, 4_000)))
    reasons = np.array(tuple(RegimeReason))[regime.reason[:, 0]]
    shock, trend, band = (
        getattr(regime, name)[:, 0] == 1 for name in ("shock", "trend_change", "band_shift")
    )
    assert ((reasons == RegimeReason.SHOCK) == shock).all()
    assert ((reasons == RegimeReason.TREND_CHANGED) == (trend & ~shock)).all()
    assert ((reasons == RegimeReason.BAND_SHIFTED) == (band & ~trend & ~shock)).all()
    assert {RegimeReason.UNCHANGED, RegimeReason.UNCONFIRMED, RegimeReason.DWELLING} <= set(reasons)


def test_regime_fingerprint_holds_the_named_ranks_in_order():
    bars = one_symbol(walk(6, 500))
    ranks = compute(bars, FEATURES_READ[:5])
    fingerprint = regime_columns(bars).fingerprint
    assert FINGERPRINT == ("trend_rank", "volatility_rank", "bandwidth_rank", "volume_rank", "range_rank")
    assert tuple(ranks) == (
        "trend_rank",
        "realized_vol_20_rank",
        "bandwidth_20_rank",
        "volume_rank",
        "range_rank",
    )
    for k, column in enumerate(ranks.values()):
        np.testing.assert_allclose(fingerprint[WARM:, 0, k], column[WARM:, 0], atol=1e-15)


def test_regime_structure_follows_its_priority():
    bars = one_symbol(walk(6, 3_000))
    names = ("highest_20", "lowest_20", "bandwidth_20_rank", "range_rank")
    high, low, width, spread = (column[:, 0] for column in compute(bars, names).values())
    close, structure = bars.close[:, 0], regime_columns(bars).structure[:, 0]
    expected = np.select(
        [close > high, close < low, width < 0.2, spread > 0.8],
        [
            tuple(Structure).index(Structure(name))
            for name in ("breakout", "breakdown", "compression", "expansion")
        ],
        default=-1,
    )
    named = (expected >= 0) & (np.arange(close.size) >= WARM)
    assert (structure[named] == expected[named]).all()
    rest = set(structure[~named & (np.arange(close.size) >= WARM)].tolist())
    assert rest == {
        tuple(Structure).index(Structure.NEUTRAL),
        tuple(Structure).index(Structure.MEAN_REVERTING),
    }


def test_regime_flat_price_after_warm_up_keeps_its_labels():
    close = np.concatenate([walk(1, 300), np.full(200, walk(1, 300)[-1])])
    shape = columns_of(close)
    for name in ("open", "high", "low"):
        shape[name][300:] = close[300:]
    regime = regime_columns(series({"AAA": shape}))
    assert (regime.trend[WARM:] >= 0).all()
    assert np.isfinite(regime.fingerprint[WARM:]).all()


def test_regime_codes_are_positions_of_the_enums():
    assert [*Trend] == ["sideways", "up", "down"]
    assert [*VolatilityBand] == ["low", "mid", "high", "extreme"]
    assert [*Structure] == ["neutral", "compression", "expansion", "mean_reverting", "breakout", "breakdown"]
    assert [*RegimeReason].index(RegimeReason.SHOCK) == 9


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("weak_trend", "strong_trend"),
        ("low_volatility", "high_volatility"),
        ("high_volatility", "extreme_volatility"),
        ("compression", "expansion"),
    ],
)
def test_regime_settings_whose_bounds_descend_are_refused(lower, upper):
    with pytest.raises(ValidationError, match=f"{lower} 0.9 lies above {upper} 0.1"):
        RegimeSettings(**(RegimeSettings().model_dump() | {lower: 0.9, upper: 0.1}))


def test_regime_settings_that_can_never_confirm_are_refused():
    with pytest.raises(ValidationError, match="confirm 6 lies above confirm_of 5"):
        RegimeSettings(confirm=6)


def test_regime_settings_change_what_counts_as_a_change():
    bars = one_symbol(walk(5, 3_000))
    usual, patient = regime_columns(bars), regime_columns(bars, RegimeSettings(dwell=200))
    changed = np.flatnonzero(patient.band_shift[:, 0])
    assert 1 < changed.size < usual.band_shift.sum()
    assert np.diff(changed).min() > 200


COLUMNS = FeatureColumns(one_symbol(walk(12, 500)))
INPUTS = np.column_stack([COLUMNS.own(name, 0) for name in FEATURES_READ])
NUMBERS, READ = np.ascontiguousarray(INPUTS.T), np.arange(len(FEATURES_READ))


def _blocks(edges):
    state, scratch, code = np.zeros(STATE_SIZE), np.empty(len(READ)), np.empty(CODES, dtype=np.int8)
    present = np.ones((len(INPUTS), 1), dtype=np.bool_)
    labels: Any = tuple(np.empty((len(INPUTS), 1), dtype=np.int8) for _ in range(3))
    events: Any = tuple(np.empty((len(INPUTS), 1), dtype=np.uint8) for _ in range(4))
    reason, ranks = np.empty((len(INPUTS), 1), dtype=np.int8), np.empty((len(INPUTS), 1, len(FINGERPRINT)))
    for start, stop in zip(edges, edges[1:], strict=False):
        extend(
            NUMBERS, READ, present, 0, start, stop, RegimeSettings().values(), state, scratch, code, labels,
            events, reason, ranks,
        )  # fmt: skip
    return [table.tobytes() for table in (*labels, *events, reason, ranks)]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 500), max_size=8))
def test_regime_over_any_block_split_gives_the_same_bits(cuts):
    assert _blocks([0, *sorted(cuts), 500]) == _blocks([0, 500])


def test_regime_one_bar_at_a_time_gives_the_same_bits_with_one_signature():
    assert _blocks(range(501)) == _blocks([0, 500])
    assert len(extend.signatures) == 1
