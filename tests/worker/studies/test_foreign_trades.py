"""Trade logs of other programs at the gate: columns, what was risked, how many were tried, and pairs."""

import json
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import thinktwice as tt
from worker.cli import app
from worker.feeds.files.bar_table import BarTable
from worker.feeds.files.tables import read_table
from worker.studies.foreign_trades import adopt_trades
from worker.studies.trade_forms import FORMS

# Two trades as each program writes them: long 100 -> 104 with its stop at 98, short 50 -> 51 with its at 52;
# R +2 and -0.5 where stops are there, else returns +4 % and -2 % in units of their median, 3 %.
LOGS = {
    "freqtrade": (
        "pair,stake_amount,amount,open_date,close_date,open_rate,close_rate,fee_open,fee_close,trade_duration,"
        "profit_ratio,profit_abs,exit_reason,initial_stop_loss_abs,initial_stop_loss_ratio,stop_loss_abs,"
        "stop_loss_ratio,min_rate,max_rate,is_open,enter_tag,leverage,is_short\n"
        "BTC/USDT,100,1,2024-01-01 05:00:00+00:00,2024-01-01 09:00:00+00:00,100,104,0,0,240,0.08,8,roi,98,"
        "-.02,99,-.01,99,104,False,dip,2.0,False\n"
        "ETH/USDT,100,1,2024-01-02 05:00:00+00:00,2024-01-02 09:00:00+00:00,50,51,0,0,240,-0.02,-2,stop,52,"
        "-.04,52,-.04,49,51,False,,1.0,True\n"
        "ETH/USDT,100,1,2024-01-03 05:00:00+00:00,,50,,0,0,,0.0,0,,52,-.04,52,-.04,49,51,True,,1.0,True\n"
    ),
    "backtesting.py": (
        "Size,EntryBar,ExitBar,EntryPrice,ExitPrice,SL,TP,PnL,Commission,ReturnPct,EntryTime,ExitTime,Duration,Tag\n"
        "10,1,5,100,104,98,110,40,0,0.04,2024-01-01T05:00Z,2024-01-01T09:00Z,4 hours,dip\n"
        "-10,9,12,50,51,52,40,-10,0,-0.02,2024-01-02T05:00Z,2024-01-02T09:00Z,4 hours,\n"
    ),
    "vectorbt": (
        "Exit Trade Id,Column,Size,Entry Timestamp,Avg Entry Price,Entry Fees,Exit Timestamp,Avg Exit Price,"
        "Exit Fees,PnL,Return,Direction,Status,Position Id\n"
        "0,BTC,1.0,2024-01-01T05:00Z,100,0,2024-01-01T09:00Z,104,0,4,0.04,Long,Closed,0\n"
        "1,ETH,1.0,2024-01-02T05:00Z,50,0,2024-01-02T09:00Z,51,0,-1,-0.02,Short,Closed,1\n"
        "2,ETH,1.0,2024-01-03T05:00Z,50,0,2024-01-03T09:00Z,51,0,-1,-0.02,Short,Open,2\n"
    ),
    "nautilus": (
        "position_id,trader_id,strategy_id,instrument_id,account_id,opening_order_id,closing_order_id,entry,side,"
        "peak_qty,ts_init,ts_opened,ts_last,ts_closed,duration_ns,avg_px_open,avg_px_close,realized_return,"
        "realized_pnl\n"
        "P-1,T,dip,BTC.BINANCE,A,O1,O2,BUY,FLAT,1.0,"
        "0,2024-01-01T05:00Z,0,2024-01-01T09:00Z,1,100,104,0.04,4 USD\n"
        "P-2,T,all,ETH.BINANCE,A,O3,O4,SELL,FLAT,1.0,"
        "0,2024-01-02T05:00Z,0,2024-01-02T09:00Z,1,50,51,-0.02,-1 USD\n"
        "P-3,T,all,ETH.BINANCE,A,O5,,SELL,SHORT,1.0,0,2024-01-03T05:00Z,0,,1,50,,0.0,0 USD\n"
    ),
    "quantconnect": (
        "Entry Time,Symbols,Exit Time,Direction,Entry Price,Exit Price,Quantity,P&L,Fees,MAE,MFE,Drawdown,"
        "IsWin,Order Ids\n"
        '2024-01-01T05:00:00Z,"BTC",2024-01-01T09:00:00Z,Buy,100,105,1,5,1,-1,5,1,1,"1,2"\n'
        '2024-01-02T05:00:00Z,"ETH",2024-01-02T09:00:00Z,Sell,50,50.5,1,-0.5,0.5,-1,1,1,0,"3,4"\n'
    ),
    "mt5": (
        "Time,Position,Symbol,Type,Volume,Price,S / L,T / P,Time,Price,Commission,Swap,Profit\n"
        "2024.01.01 05:00:00,1,BTC,buy,1.00, 1 00.00,98.0,,2024.01.01 09:00:00,105.00,- 0.50,- 0.50,5.00\n"
        "2024.01.02 05:00:00,2,ETH,sell,1.00,50.0,52.0,,2024.01.02 09:00:00,50.50,- 1.00, 0.50,- 0.50\n"
    ),
    "tradingagents": (
        "date,ticker,rating,pending,raw,alpha,holding\n"
        "2024-01-01,BTC,Buy,False,+4.0%,+1.0%,5d\n"
        "2024-01-02,ETH,Underweight,False,+2.0%,-1.0%,5d\n"
        "2024-01-03,ETH,Hold,False,+9.0%,-1.0%,5d\n"
        "2024-01-04,ETH,Buy,True,,,\n"
    ),
}
STOPS = ("freqtrade", "backtesting.py", "mt5")


@pytest.mark.parametrize("form", ["file", "frame"])
@pytest.mark.parametrize("program", FORMS)
def test_trades_of_a_program_are_read_by_its_columns(program, form, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOGS[program], encoding="utf-8")
    needs = "at least one trade"
    given = (
        read_table(path, needs) if form == "file" else BarTable.of_frame(pd.read_csv(path), "trades", needs)
    )
    table, unit = adopt_trades(given, None, {}, "UTC")
    made = {name: column.to_pylist() for name, column in zip(table.names, table.columns, strict=True)}
    expected = (2.0, -0.5) if program in STOPS else (4 / 3, -2 / 3)
    assert made["r"] == pytest.approx(list(expected))
    assert (unit.name, unit.one) == (("R", None) if program in STOPS else ("return", pytest.approx(0.03)))
    assert [at.strftime("%d") for at in made["entry_time"]] == ["01", "02"]
    assert [at.strftime("%d") for at in made["exit_time"]] == (
        ["08", "09"] if program == "tradingagents" else ["01", "02"]
    )
    tagged = ["dip", "all"] if program in ("freqtrade", "backtesting.py", "nautilus") else ["all", "all"]
    assert made["playbook"] == tagged
    assert set(made["regime"]) == {"any"}
    assert made["timeframe"] == (["1d"] if program == "tradingagents" else ["1h"]) * 2
    if program != "backtesting.py":  # whose table holds one symbol and does not name it
        assert made["direction"] == [1, -1]


def test_read_names_the_program_where_columns_would_not(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOGS["mt5"].replace("S / L", "S/L"), encoding="utf-8")
    shown = CliRunner().invoke(app, ["gate", str(path), "--read", "mt5", "--tz", "UTC", "--json"])
    assert json.loads(shown.stdout)["unit"]["name"] == "return"  # the column of stops has another name
    shown = CliRunner().invoke(app, ["gate", str(path), "--columns", "stop=S/L", "--tz", "UTC", "--json"])
    document = json.loads(shown.stdout)
    assert document["unit"] == {"name": "R", "one": None}
    assert document["clusters"][0]["n"] == 2


def test_a_trade_without_a_stop_makes_the_unit_a_return_and_the_answer_says_so(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOGS["backtesting.py"].replace(",52,40", ",,40"), encoding="utf-8")
    text = " ".join(CliRunner().invoke(app, ["gate", str(path)]).stdout.split())
    assert "outcomes are returns, and 1 stands for 3.0000%" in text


def test_columns_without_any_value_are_none():
    # What backtesting.py has for stops and tags where a strategy sets none.
    table = pd.read_csv(StringIO(LOGS["backtesting.py"])).assign(SL=None, Tag=None)
    found = tt.gate(table)
    assert found.document["unit"]["name"] == "return"
    assert found.clusters["playbook"].iloc[0] == "all"


def log(seed, n=200, mean=0.0, start="2020-01-06"):
    """One trade on each of n days, three a week, R as a normal draw."""
    days = pd.Timestamp(start, tz="UTC") + pd.to_timedelta(
        [7 * (k // 3) + 2 * (k % 3) for k in range(n)], "D"
    )
    r = np.random.default_rng(seed).standard_normal(n) + mean
    return pd.DataFrame({"entry_time": days, "exit_time": days + pd.Timedelta(hours=5), "r": r})


def test_gate_without_the_number_of_trials_says_what_it_cannot_say_and_shares_the_level_with_them():
    unknown, twenty = tt.gate(log(1)), tt.gate(log(1), trials=20)
    assert any("how many variants were tried is not known" in limit for limit in unknown.document["limits"])
    assert (twenty.document["limits"], twenty.document["trials"]) == ([], 20)
    assert twenty.family["q"] == pytest.approx(unknown.family["q"] / 20)
    wrongs: tuple[Any, ...] = (0, True, 2.5, float("nan"), float("inf"), 10**400)
    for wrong in wrongs:
        with pytest.raises(tt.ConfigError, match="give a whole number, 1 to"):
            tt.gate(log(1), trials=wrong)


def test_gate_of_the_best_of_many_is_proven_only_where_nobody_counts_them():
    table = log(4, mean=0.35)
    assert tt.gate(table).family["selected"]
    assert not tt.gate(table, trials=20).family["selected"]


def test_logs_of_the_same_dates_are_compared_as_pairs():
    market, own, other = (log(seed)["r"].to_numpy() for seed in (1, 2, 3))
    first, second = log(0), log(0)
    first["r"] = np.sqrt(0.8) * market + np.sqrt(0.2) * own + 0.2
    second["r"] = np.sqrt(0.8) * market + np.sqrt(0.2) * other
    pair = tt.gate(first, against=second).document["against"]
    assert (pair["answer"], pair["trades"], pair["outside"]) == ("higher", [200, 200], 0)
    assert tt.gate(second, against=first).document["against"]["answer"] == "lower"
    assert tt.gate(second, against=second).document["against"]["reason"] == "the two never differ"
    second["r"] = np.random.default_rng(9).permutation(second["r"])  # the same trades, no pairs
    assert tt.gate(first, against=second).document["against"]["answer"] == "unknown"


def test_logs_that_share_no_time_or_no_unit_are_refused():
    with pytest.raises(tt.DataError, match="no time in common"):
        tt.gate(log(1), against=log(2, start="2010-01-04"))
    returns = log(2).rename(columns={"r": "return"})
    with pytest.raises(tt.DataError, match="count in R and return"):
        tt.gate(log(1), against=returns)


def test_what_cannot_be_read_names_the_column_and_the_next_step():
    with pytest.raises(tt.DataError, match="column 'r' is missing.*columns"):
        tt.gate(log(1).drop(columns="r"))
    with pytest.raises(tt.ConfigError, match="none of freqtrade.*mt5"):
        tt.gate(log(1), read="mt6")
    with pytest.raises(tt.DataError, match="no such column"):
        tt.gate(log(1), columns={"r": "Result"})
    odd = LOGS["vectorbt"].replace("Short,Closed", "Sideways,Closed")
    with pytest.raises(tt.DataError, match="'Sideways' is no direction"):
        tt.gate(pd.read_csv(StringIO(odd)))
