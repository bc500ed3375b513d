"""`thinktwice data`: from an exchange into a file, and from the file into a backtest."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.exchange.server import START_MS, ExchangeServer
from tests.exchange.thread import path_beside

HOUR_MS = 3_600_000
FIRST_MS = START_MS - START_MS % HOUR_MS - 400 * HOUR_MS


@pytest.fixture
def server():
    with path_beside(ExchangeServer()) as server:
        for market in server.symbols:
            server.fill(market, "1h", FIRST_MS, 401)
        yield server


@pytest.fixture
def fetch(shell, server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("THINKTWICE_RUNTIME__FEED__EXCHANGE__REQUEST_INTERVAL_MS", "0")

    def words(*symbols: str, out: str = "bars.csv") -> tuple[str, ...]:
        return (
            "data",
            "fetch",
            "binance",
            *symbols,
            "--from",
            "2023-10-29",
            "--out",
            out,
            "--rest-url",
            server.rest_url,
        )

    return words


def test_data_fetch_says_what_came(shell, fetch) -> None:
    result = shell.run(*fetch("BTC/USDT", "ETH/USDT"))
    assert result.exit_code == 0, result.output
    assert "bars.csv: 800 bars of 1h from binance" in result.stdout
    assert "samples read again are the same" in result.stdout
    assert shell.run("data", "check", "bars.csv").stdout.startswith("file       bars.csv: 800 bars of 1h")


def test_data_fetch_json_is_one_document(shell, fetch) -> None:
    result = shell.run(*fetch("BTC/USDT"), "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["ok"], document["bars"]) == (0, True, 400)
    assert result.stderr == ""
    checked = json.loads(shell.run("data", "check", "bars.csv", "--json").stdout)
    assert checked["symbols"]["BTC/USDT"]["bars"] == 400


def test_data_fetch_with_a_wrong_symbol_is_one_line(shell, fetch) -> None:
    assert "Did you mean 'BTC/USDT'?" in shell.complaint(*fetch("BTC/USD"))
    assert list(Path().iterdir()) == []


def test_data_fetch_with_a_finding_ends_with_one(shell, fetch, server) -> None:
    server.history["BTCUSDT", "1h"][FIRST_MS + 60 * HOUR_MS] = (1.0, 0.5, 0.7, 1.0, 1.0)
    result = shell.run(*fetch("BTC/USDT"))
    assert result.exit_code == 1
    assert "INVALID" in result.stdout
    assert "high is below low" in result.stdout


def test_data_fetch_without_an_answer_tells_every_attempt_and_ends_with_one(
    shell, fetch, monkeypatch
) -> None:
    monkeypatch.setenv("THINKTWICE_RUNTIME__FEED__EXCHANGE__BACKOFF_MAX_S", "0.001")
    words = [*fetch("BTC/USDT")[:-1], "http://127.0.0.1:9"]
    result = shell.run(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    lines = result.stderr.splitlines()
    assert lines[0].endswith("trying again in 0.001 s")
    assert lines[-1].startswith("thinktwice: FeedError: binance: markets: unavailable (ExchangeNotAvailable")
    assert len(lines) == 6


def test_data_fetch_interrupted_says_what_is_kept(shell, fetch, monkeypatch) -> None:
    async def stopped(request: object, shell: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("worker.feeds.history.fetch.fetch", stopped)
    text = shell.complaint(*fetch("BTC/USDT"), code=130)
    assert "kept in 'bars.csv.part'; run the same command again" in text


@pytest.mark.parametrize(
    "address", ["https://me:pa55word@gateway.test", "https://gateway.test/?token=pa55word"]
)
def test_data_fetch_with_a_secret_in_an_address_refuses_it_without_showing_it(shell, address) -> None:
    words = ("data", "fetch", "binance", "BTC/USDT", "--from", "2023-10-29", "--out", "bars.csv")
    assert "pa55word" not in shell.complaint(*words, "--rest-url", address)


def test_data_check_refuses_what_data_refuses(shell) -> None:
    Path("bad.csv").write_text(
        "time,open,high,low,close,volume\n2024-01-01T00:00:00Z,1,1,1,1,1\n2024-01-01T01:00:00Z,1,x,1,1,1\n",
        "utf-8",
    )
    assert "bad.csv line 3" in shell.complaint("data", "check", "bad.csv")
    assert "flag --label: data.label = 'mid': input should be 'open' or 'close'" in shell.complaint(
        "data", "check", "bad.csv", "--label", "mid"
    )


def test_data_check_tells_pauses_jumps_and_bars_without_volume(shell) -> None:
    rows = ["time,symbol,open,high,low,close,volume"]
    for hour, price, volume in ((0, 10, 5), (1, 10, 0), (2, 10, 5), (5, 30, 5), (6, 30, 5)):
        rows.append(f"2024-01-01T{hour:02}:00:00Z,A,{price},{price},{price},{price},{volume}")
        if hour != 1:
            rows.append(f"2024-01-01T{hour:02}:00:00Z,B,{price},{price + 1},{price},{price},{volume}")
    Path("bars.csv").write_text("\n".join(rows) + "\n", "utf-8")
    found = json.loads(shell.run("data", "check", "bars.csv", "--json").stdout)["symbols"]
    assert found["A"]["longest_pauses"] == [
        {"after": "2024-01-01T02:00:00Z", "until": "2024-01-01T05:00:00Z", "bars": 2}
    ]
    assert found["A"]["jumps"] == ["2024-01-01T05:00:00Z"]
    assert (found["A"]["without_volume"], found["A"]["without_movement"]) == (1, 5)
    assert found["B"]["absent_while_others_trade"] == 1
    shown = shell.run("data", "check", "bars.csv").stdout
    assert "labelled by their open" in shown
    assert "labelled by their close" in shell.run("data", "check", "bars.csv", "--label", "close").stdout
    assert "close changes by more than half at 2024-01-01T05:00:00Z" in shown


def test_data_check_names_labels_that_overlap_and_labels_off_the_phase(shell) -> None:
    rows = ["time,open,high,low,close,volume"]
    rows += [f"2024-01-01T{hour:02}:00:00Z,10,10,10,10,5" for hour in range(9)]
    Path("bars.csv").write_text("\n".join([*rows, "2024-01-01T09:30:00Z,10,10,10,10,5"]) + "\n", "utf-8")
    found = json.loads(shell.run("data", "check", "bars.csv", "--json").stdout)["symbols"]["BARS"]
    assert (found["off_phase"], found["first_off_phase"]) == (1, ["2024-01-01T09:30:00Z"])
    assert "2024-01-01T09:30:00Z" in shell.run("data", "check", "bars.csv").stdout
    Path("bars.csv").write_text("\n".join([*rows, "2024-01-01T08:30:00Z,10,10,10,10,5"]) + "\n", "utf-8")
    assert "bars.csv line 10 and bars.csv line 11" in shell.complaint("data", "check", "bars.csv")


def test_data_check_puts_splits_ticks_and_missing_stretches_first_and_shows_the_calendar(shell) -> None:
    days = pd.bdate_range("2019-01-01", "2023-12-29")
    closed = (days.strftime("%m-%d") == "12-25") | (
        (days > pd.Timestamp("2021-03-05")) & (days < pd.Timestamp("2021-03-16"))
    )
    days = days[~closed]
    price = np.where(days >= pd.Timestamp("2022-06-01"), 25.0, 100.0)
    price[days == "2020-07-01"] *= 10.0
    rows = [f"{day:%Y-%m-%d},{p},{p + 1},{p - 1},{p},5" for day, p in zip(days, price, strict=True)]
    Path("bars.csv").write_text("\n".join(["date,open,high,low,close,volume", *rows]) + "\n", "utf-8")
    found = json.loads(shell.run("data", "check", "bars.csv", "--json").stdout)["symbols"]["BARS"]
    assert [doubt["kind"] for doubt in found["doubts"]] == ["tick", "split"]
    assert found["weekdays"] == ["Mon", "Tue", "Wed", "Thu", "Fri"]
    assert found["closed_days"] == ["12-25"]
    assert found["missing"] == [{"from": "2021-03-08", "to": "2021-03-15", "days": 6}]
    pause = {"after": "2021-03-05T00:00:00Z", "until": "2021-03-16T00:00:00Z", "bars": 6}
    assert (found["pauses"], found["longest_pauses"]) == (1, [pause]), "no weekend, no holiday"
    lines = [
        line for line in shell.run("data", "check", "bars.csv").stdout.splitlines() if "note" not in line
    ]
    assert [line.split()[0] for line in lines[2:6]] == ["DOUBTFUL", "SPLIT", "MISSING", "calendar"]
    assert lines[5].endswith("Mon Tue Wed Thu Fri, never on 12-25")


def test_data_check_judges_gaps_without_a_row_whose_year_is_a_slip(shell) -> None:
    days = [day for day in pd.date_range("2020-01-01", periods=600, freq="D") if day.day_of_week < 5]
    rows = [f"{day:%Y-%m-%d},10,12,9,11,5" for day in days if not "2020-03-09" <= str(day) < "2020-03-14"]
    Path("slip.csv").write_text(
        "\n".join(["time,open,high,low,close,volume", *rows, "2222-01-01,10,12,9,11,5"])
    )
    text = shell.run("data", "check", "slip.csv").stdout
    assert "FAR        SLIP at 2222-01-01T00:00:00Z: 1 bar farther from the others" in text
    assert [line for line in text.splitlines() if line.startswith(("MISSING", "calendar"))] == [
        "MISSING    no bar 2020-03-09 to 2020-03-13 (5 days of trading)",
        "calendar   Mon Tue Wed Thu Fri",
    ]


def test_data_check_of_bars_that_never_pause_shows_seven_days_and_nothing_missing(shell) -> None:
    hours = pd.date_range("2024-01-01", periods=24 * 20, freq="h")
    rows = [f"{hour:%Y-%m-%dT%H:%M:%SZ},10,11,9,10,5" for hour in hours]
    Path("bars.csv").write_text("\n".join(["time,open,high,low,close,volume", *rows]) + "\n", "utf-8")
    found = json.loads(shell.run("data", "check", "bars.csv", "--json").stdout)["symbols"]["BARS"]
    assert (len(found["weekdays"]), found["closed_days"], found["missing"]) == (7, [], [])


def test_data_check_takes_the_options_that_a_refusal_names(shell) -> None:
    rows = ["date,open,high,low,close,volume", *(f'0{k}/04/2024,"1,5","1,6","1,4","1,5",5' for k in (3, 4))]
    Path("bars.csv").write_text("\n".join(rows) + "\n", "utf-8")
    assert "--date-format '%d/%m/%Y'" in shell.complaint("data", "check", "bars.csv")
    done = shell.run("data", "check", "bars.csv", "--date-format", "%d/%m/%Y", "--decimal", ",", "--json")
    found = json.loads(done.stdout)
    assert (found["from"], found["symbols"]["BARS"]["highest"]) == ("2024-04-03T00:00:00Z", 1.6)
    assert found["notes"] == ["dates without a zone are read as days of UTC"]
    assert "runtime.decimal = 'x'" in shell.complaint("data", "check", "bars.csv", "--decimal", "x")
