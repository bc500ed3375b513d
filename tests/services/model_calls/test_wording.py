"""How a question words its data: ISO times, six digits, and a disguise in which nothing is recognised."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.reflection import Finding, Remedy
from schemas.vocabulary import CheckName, Severity
from services.model_calls.wording import PLAIN, SPLIT_CLOSE, Wordings
from tests.agents.strategies.questions import in_position
from tests.services.policy_checks.plans import right_request

DAY = 86_400_000_000_000
SNAPSHOT = right_request().snapshot
HIDDEN = Wordings.of_run(("ZZZ", SNAPSHOT.symbol, "BTC/USDT", "BTC"), anonymise=True).of(SNAPSHOT)


def shown(value: Any, wording: Any = PLAIN) -> Any:
    return json.loads(wording.json(value))


def test_wording_tells_every_time_in_iso_8601_utc():
    payload = {"known_at": 1_262_304_000_000_000_000, "entry_label": 0, "since": DAY, "at": 1, "slot": -DAY}
    assert shown(payload) == {
        "known_at": "2010-01-01T00:00:00Z",
        "entry_label": "1970-01-01T00:00:00Z",
        "since": "1970-01-02T00:00:00Z",
        "at": "1970-01-01T00:00:00Z",
        "slot": "1969-12-31T00:00:00Z",
    }
    assert shown({"window_start": datetime(2010, 1, 2, tzinfo=UTC)}) == {
        "window_start": "2010-01-02T00:00:00Z"
    }
    assert shown({"looked_at": 0.5, "bars_ago": 3}) == {"looked_at": 0.5, "bars_ago": 3}


def test_wording_of_a_time_that_no_calendar_has_is_a_word_and_no_error():
    far = 1_000_000_000 * DAY
    assert shown({"expires_at": far}) == {"expires_at": "beyond the calendar"}
    assert shown({"expires_at": far}, HIDDEN)["expires_at"].startswith("T+")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_wording_shows_six_digits_of_every_float_and_every_int_whole(number: float):
    assert shown({"r": [number]}) == {"r": [float(f"{number:.6g}")]}
    assert shown({"population": 123_456_789}) == {"population": 123_456_789}


def test_wording_as_it_is_changes_no_text_and_no_symbol():
    payload = {"symbol": "AAPL", "thesis": "AAPL rose on 2010-01-01", "flag": True, "none": None}
    assert shown(payload) == payload


def test_wordings_of_a_run_that_is_not_anonymised_disguise_nothing():
    assert Wordings.of_run(("AAA",), anonymise=False).of(SNAPSHOT) is PLAIN
    assert Wordings.of_run((), anonymise=True).at(0) is PLAIN


def test_disguise_splits_prices_to_a_close_of_100_and_quantities_the_other_way():
    snapshot = in_position("short")
    payload = snapshot.payload()
    payload["features"] = {
        "close": 50.0,
        "atr_14": 2.0,
        "volume": 1e6,
        "rsi_14": 55.5,
        "hour": 9.0,
        "unheard": 1.0,
    }
    payload["close"], payload["position"]["quantity"] = 50.0, 10.0
    wording = Wordings.of_run(("AAA",), anonymise=True).of(snapshot.model_copy(update={"close": 50.0}))
    seen = shown(payload, wording)
    assert seen["close"] == SPLIT_CLOSE
    assert seen["features"] == {
        "close": 100.0, "atr_14": 4.0, "volume": 5e5, "rsi_14": 55.5, "hour": None, "unheard": None,
    }  # fmt: skip
    for name in ("entry_price", "stop", "target"):
        assert seen["position"][name] == pytest.approx(2.0 * getattr(snapshot.position, name))
    assert seen["position"]["quantity"] == 5.0
    assert seen["position"]["r_now"] == snapshot.position.r_now  # type: ignore[union-attr]


@given(st.floats(min_value=1e-6, max_value=1e9), st.floats(min_value=0.01, max_value=3.0))
def test_disguise_gives_a_price_back_as_exactly_as_it_was_shown(close: float, share: float):
    wording = Wordings.of_run(("AAA",), anonymise=True).of(SNAPSHOT.model_copy(update={"close": close}))
    level = shown({"stop": close * share}, wording)["stop"]
    assert wording.price_back(level) == pytest.approx(close * share, rel=1e-5)
    assert wording.price_back(level, close, close * share) in (close, close * share)


def test_stop_that_is_answered_as_it_was_shown_is_that_very_stop_and_not_a_tighter_one():
    stop = 1.206_751_249
    assert shown({"stop": stop}) == {"stop": 1.20675}
    assert (PLAIN.price_back(1.20675, stop), PLAIN.price_back(1.20676, stop)) == (stop, 1.20676)


def test_disguise_tells_times_from_the_decision_bar():
    now = SNAPSHOT.known_at
    payload = {"known_at": now, "since": now - 3 * DAY, "expires_at": now + DAY // 24}
    payload["entry_label"] = now - DAY // 16
    assert shown(payload, HIDDEN) == {
        "known_at": "T", "since": "T-3d", "expires_at": "T+1h", "entry_label": "T-90m",
    }  # fmt: skip
    day = datetime.fromtimestamp((now - 2 * DAY) / 1e9, UTC).date().isoformat()
    words = f"fell on {day}; as of {now - DAY} ns; slot {now - DAY}"
    assert shown({"message": words}, HIDDEN) == {"message": "fell on T-2d; as of T-1d ns; slot T-1d"}


def test_disguise_hides_symbols_in_fields_keys_and_prose_and_leaves_our_own_words():
    payload = {
        "symbol": "BTC",
        "symbols": ["ZZZ", "BTC/USDT"],
        "thesis": "BTC/USDT leads (BTC, ZZZ); ZZZZ is no symbol",
        "by": {"ZZZ": 1},
        "id": "btc",
        "direction": "long",
    }
    seen = shown(payload, HIDDEN)
    assert (seen["symbol"], seen["symbols"]) == ("asset_4", ["asset_1", "asset_3"])
    assert seen["thesis"] == "asset_3 leads (asset_4, asset_1); ZZZZ is no symbol"
    assert seen["by"] == {"asset_1": 1}
    assert (seen["id"], seen["direction"]) == ("btc", "long")


@pytest.mark.parametrize(
    ("code", "message", "seen"),
    [
        ("stop_on_wrong_side", "the stop 50.5 of a long plan must lie below the close 50.0",
         "the stop 101 of a long plan must lie below the close 100"),
        ("stop_inside_winner_mae", "the stop is 0.5 away, winners went 2.25 against their entry (P80)",
         "the stop is 1 away, winners went 4.5 against their entry (P80)"),
        ("target_beyond_mfe", "the target is 9 away, 3 median best excursions are 7.5",
         "the target is 18 away, 3 median best excursions are 15"),
        ("reward_to_risk_too_low", "reward to risk after costs is 0.500, the minimum is 0.8",
         "reward to risk after costs is 0.500, the minimum is 0.8"),
    ],
)  # fmt: skip
def test_disguise_rescales_prices_in_messages_of_checks_about_prices_and_in_no_other(code, message, seen):
    wording = Wordings.of_run(("AAA",), anonymise=True).of(SNAPSHOT.model_copy(update={"close": 50.0}))
    remedy = Remedy(field="stop_distance", op="at_least", value=2.25)
    finding = Finding(
        check=CheckName.COHERENCE, code=code, severity=Severity.MAJOR, message=message, remedy=remedy
    )
    payload = shown(finding.payload(), wording)
    assert (payload["message"], payload["remedy"]["value"]) == (seen, 4.5)
    assert shown(finding.payload()) == json.loads(json.dumps(finding.payload()))


def test_wording_of_an_anonymised_run_calls_another_symbol_of_a_feature_and_reads_it_back():
    symbol = SNAPSHOT.symbol
    payload = {"features": {'close@"BTC/USDT"': 2.0, f"rsi_14@{symbol}": 50.0, "rank_cs(roc_20)": 0.5}}
    hidden = shown(payload, HIDDEN)["features"]
    assert set(hidden) == {'close@"asset_3"', "rsi_14@asset_2", "rank_cs(roc_20)"}
    assert shown({"setup": 'close@"BTC/USDT" > 1'}, HIDDEN) == {"setup": 'close@"asset_3" > 1'}
    for name in ('close@"asset_3"', "close@asset_3", "close@'asset_3'"):
        read = json.loads(HIDDEN.names_back(json.dumps({"name": name, "why": "asset_3 rose"})))
        assert read == {"name": 'close@"BTC/USDT"', "why": "asset_3 rose"}
    assert HIDDEN.names_back('{"name": "close@asset_2"}') == f'{{"name": "close@{symbol}"}}'
    assert PLAIN.names_back('{"name": "close@asset_2"}') == '{"name": "close@asset_2"}'
    assert shown({"features": {"x.funding": 0.5}}, HIDDEN) == {"features": {"x.funding": None}}
    assert shown({"features": {"x.funding": 0.5}}) == {"features": {"x.funding": 0.5}}
    assert HIDDEN.names("close@BTC on 2010-01-01") == "close@asset_4 on 2010-01-01"
