"""What a trader is told of ranks, groups, holds, counts, bans and trades that were not taken."""

import asyncio
import json
import sqlite3
from datetime import date, timedelta

import pytest

from agents.answering.borne_out import stands_in
from agents.answering.rules import rule_answer
from agents.answering.statements import price_of
from agents.planning.completeness import to_follow
from agents.planning.question_reading import parts_of
from schemas.canonical import ns_to_datetime
from schemas.evidence_plan import EvidenceCall
from schemas.fact_check import FactRow
from schemas.tool import ToolReply
from services.ports import EvidenceQuestion
from services.store import open_store
from tests.worker.evidence_stores import store_run
from worker.review.evidence import store_tools
from worker.review.run_views import RunViews

DAY = 24 * 3_600 * 10**9
NEWEST = FactRow(seq=99_999, kind="run_finished")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return store_run(tmp_path_factory.mktemp("traders") / "thinktwice.db", "2004-12-31")


@pytest.fixture(scope="module")
def trades(stored):
    with sqlite3.connect(stored) as store:
        rows = store.execute("select payload from journal where kind = 'episode' order by seq").fetchall()
    return [json.loads(row[0])["episode"] for row in rows]


@pytest.fixture(scope="module")
def call(stored):
    def called(method, **params):
        async def asked():
            async with await open_store(f"sqlite:///{stored}", create=False, read_only=True) as store:
                return await store_tools(RunViews(store)).call(method, params)

        reply = asyncio.run(asked())
        assert not reply.is_error, reply.text
        return EvidenceCall(
            id="c1", client="thinktwice", method=method, params=params, iteration=1, reply=reply
        )

    return called


def said(question, *calls):
    return " ".join(statement.text for statement in rule_answer(calls, NEWEST, question))


def test_worst_and_best_trades_are_those_of_all_trades_not_of_a_page(call, trades):
    worst, best = min(trade["r"] for trade in trades), max(trade["r"] for trade in trades)
    assert f"{worst:+.2f}R" in said("worst trade?", call("episodes", order="worst", limit=1))
    assert f"{best:+.2f}R" in said("best trade?", call("episodes", order="best", limit=1))
    told = call("episodes", order="worst", limit=2).reply.content
    rest = call("episodes", order="worst", limit=100, cursor=told["next_cursor"]).reply.content
    rs = [trade["r"] for trade in (*told["episodes"], *rest["episodes"])]
    assert rs == sorted(trade["r"] for trade in trades)[: len(rs)]


def test_groups_are_told_with_the_one_that_made_most_and_least(call, trades):
    totals: dict[str, float] = {}
    for trade in trades:
        totals[trade["symbol"]] = totals.get(trade["symbol"], 0.0) + trade["r"]
    first, last = max(totals, key=totals.__getitem__), min(totals, key=totals.__getitem__)
    text = said("which symbol lost most", call("episodes", by="symbol"))
    assert f"{first} made the most, {totals[first]:+.2f}R" in text
    assert f"{last} the least, {totals[last]:+.2f}R" in text


def test_holds_are_told_of_each_playbook(call, trades):
    text = said("how long do i hold by playbook", call("episodes", by="playbook"))
    for book in {trade["playbook_id"] for trade in trades}:
        bars = sorted(trade["hold_bars"] for trade in trades if trade["playbook_id"] == book)
        middle = (bars[(len(bars) - 1) // 2] + bars[len(bars) // 2]) / 2
        assert f"The trades of {book} are held for {middle:g} bars at the median" in text


def test_all_of_the_last_trades_that_are_asked_for_are_told(call, trades):
    lost = [trade for trade in trades if trade["r"] < 0][-3:]
    text = said("last three losing trades", call("episodes", outcome="lost", limit=3))
    assert all(f"{trade['r']:+.2f}R" in text for trade in lost)


def test_trades_since_a_day_are_those_that_ended_after_it(call, trades):
    later = [trade for trade in trades if trade["exit_label"] >= 1_072_915_200_000_000_000]
    figures = call("episodes", since="2004-01-01").reply.content["figures"]
    assert figures["trades"] == len(later) > 0


def test_months_hold_every_trade_once_in_the_month_of_its_last_bar(call, trades):
    first = [date(year, month, 1) for year in range(2000, 2005) for month in range(1, 13)]
    ends = [entry - timedelta(days=1) for entry in (*first[1:], date(2005, 1, 1))]
    months = [
        call("episodes", since=f"{begin}", at=f"{end}T23:59:59Z", limit=100).reply.content["episodes"]
        for begin, end in zip(first, ends, strict=True)
        if begin >= date(2000, 4, 1)
    ]
    assert sorted(episode["episode_id"] for month in months for episode in month) == sorted(
        trade["episode_id"] for trade in trades
    )
    at_an_end = [trade for trade in trades if ns_to_datetime(trade["exit_label"] + DAY).day == 1]
    assert at_an_end, "trades that end on the last day of a month are what a window may lose"
    for month in months:
        assert len({trade["exited"][:7] for trade in month}) <= 1


def test_market_of_a_day_is_that_of_the_bar_which_closes_at_its_end(call):
    snapshots = call("market_snapshot", symbol="IBM").reply.content["snapshots"]
    day = snapshots[0]["bar"][:10]
    then = call("market_snapshot", symbol="IBM", at=f"{day}T23:59:59Z").reply.content["snapshots"]
    assert then == snapshots
    assert call("market_snapshot", symbol="IBM", at=day).reply.content["snapshots"] != snapshots
    later = f"{date.fromisoformat(day) + timedelta(days=40)}"
    text = said(f"price of IBM on {later}", call("market_snapshot", symbol="IBM", at=f"{later}T23:59:59Z"))
    assert f"IBM was not evaluated on {later}; this is from the last time before." in text
    hour = said("price of IBM?", call("market_snapshot", symbol="IBM", at=f"{later}T12:00:00Z"))
    assert f"IBM was not evaluated on {later};" in hour


def test_indicator_that_is_asked_for_is_told_or_said_not_to_be_there(call):
    found = call("market_snapshot", symbol="IBM")
    value = found.reply.content["snapshots"][0]["features"]["zscore_20"]
    assert f"zscore_20 of IBM is {value:.6g}." in said("z-score of IBM?", found)
    assert "The snapshot of IBM has no rsi." in said("how high is the RSI of IBM?", found)
    unknown = json.loads(found.reply.text)
    unknown["snapshots"][0]["features"]["zscore_20"] = None
    early = found.model_copy(update={"reply": ToolReply(text=json.dumps(unknown))})
    assert "zscore_20 of IBM is not known yet." in said("z-score of IBM?", early)
    assert "zscore_20" not in said("what is the regime of IBM?", found)


@pytest.mark.parametrize(
    ("question", "told", "of"),
    [
        ("profit factor?", "profit factor in R of the trades of IBM is {:.2f}", "profit_factor"),
        ("fees of IBM", "sum of fees and carry of the trades of IBM is {:,.2f} in money", "fees"),
        ("median R", "median of the trades of IBM is {:+.2f}R", "median_r"),
        ("how much money did it make", "profit and loss of the trades of IBM is {:,.2f} in money", "pnl"),
    ],
)
def test_figure_that_is_asked_for_is_told(call, question, told, of):
    found = call("episodes", symbol="IBM")
    assert told.format(found.reply.content["figures"][of]) in said(question, found)
    for other in ("how did IBM do", "what was made after fees", "how did BTC/USD do"):
        assert told[:14] not in said(other, found)


def test_trades_of_a_time_are_said_to_be_of_it(call):
    span = {"since": "2004-01-01", "at": "2004-12-31T23:59:59Z"}
    best = said("best trade in 2004?", call("episodes", order="best", limit=1, **span))
    assert "The best trade of the run from 2004-01-01 to 2004-12-31 is" in best
    none = said("trades", call("episodes", since="2004-12-31", at="2004-12-31T23:59:59Z", symbol="IBM"))
    assert "a trade of IBM from 2004-12-31 to 2004-12-31" in none


def test_report_of_a_day_is_told_with_its_own_verdict_or_that_there_is_none(call, stored):
    newest, older = call("reports").reply.content["reports"][:2]
    decided = [
        statement
        for statement in rule_answer((call("reports"),), NEWEST)
        if "The judge decided" in statement.text
    ]
    assert [[row.payload() for row in statement.rows] for statement in decided] == [[newest["verdict_row"]]]
    day = newest["known_at"][:10]
    assert "No report is of" not in said(f"report of {day}", call("reports", at=f"{day}T23:59:59Z"))
    before = f"{date.fromisoformat(day) - timedelta(days=3)}"
    text = said(f"report of {before}", call("reports", at=f"{before}T23:59:59Z"))
    assert f"No report is of {before}; this is the newest before." in text
    assert f"Report {older['report_id']}" in text


def test_advice_of_a_report_is_that_on_the_playbook_which_is_asked_about(call):
    text = said("what does the report say about mean_reversion?", call("reports"))
    advice = [sentence for sentence in text.split("It says ")[1:]]
    assert len(advice) == 1
    assert "mean_reversion" in advice[0]
    assert text.count("It says ") < said("what does the report say?", call("reports")).count("It says ")


def test_reasons_against_trades_are_counted_with_a_row_of_each(call, stored):
    with sqlite3.connect(stored) as store:
        count = "select count(*) from journal where kind = ? and symbol = 'IBM'"
        skips, frozen, entries = (
            store.execute(count, (kind,)).fetchone()[0]
            for kind in ("policy_skip", "policy_frozen", "entry_filled")
        )
    found = call("decisions", symbol="IBM", limit=100)
    content = found.reply.content
    told = [item for item in content["reasons"] if item["what"] == "evaluation skipped"]
    assert sum(item["count"] for item in told) == skips > 0
    assert (content["policies_frozen"], content["entries"]) == (frozen, entries)
    text = said("why no trade in IBM", found)
    assert f"{frozen} policies frozen" in text
    assert "So trades were taken." in text


def test_playbook_that_was_never_banned_is_said_to_be_not(call):
    found = call("playbooks", playbook_id="mean_reversion")
    assert "No version of mean_reversion was ever banned" in said("why was mean_reversion banned", found)
    assert "was ever banned" not in said("what are the rules of mean_reversion", found)


def test_what_a_playbook_does_is_told_with_what_is_expected_of_it(call):
    text = said("what does mean_reversion do", call("playbooks", playbook_id="mean_reversion"))
    assert "Of mean_reversion is expected: 45 % of trades won" in text
    assert "Its long rules: setup" in text


def test_reports_runs_and_playbooks_are_counted(call, stored):
    with sqlite3.connect(stored) as store:
        query = "select count(*) from journal where kind = 'high_level_report'"
        (reports,) = store.execute(query).fetchone()
    assert f"there are {reports} reports" in said("how many reports?", call("reports", limit=1))
    assert "There is 1 run." in said("how many runs", call("list_runs"))
    assert "The run has 5 playbooks." in said("how many playbooks", call("playbooks"))


def test_fill_that_sold_is_said_not_to_be_bought(call, trades):
    shorts = call("episodes", direction="short", limit=1).reply.content["episodes"]
    found = call("explain_fill", fill_id=shorts[0]["fill_id"])
    assert "That fill bought; nothing was sold by it." in said("why was this sold", found)
    assert "nothing was" not in said("why was this bought", found)


def test_side_that_was_never_traded_is_said_to_be_supposed(call, trades):
    sides = {
        tuple(trade[name] for name in ("symbol", "playbook_id", "regime", "direction")) for trade in trades
    }
    symbol, book, regime, _ = sorted(side for side in sides if (*side[:3], "long") not in sides)[0]
    where = {"symbol": symbol, "playbook_id": book, "regime": regime}
    found = call("episodes", **where, direction="long", limit=1)
    told = said(f"why was {symbol} bought", found)
    assert f"The question supposes a long trade of {book} on {symbol} in {regime}: there is none." in told


def test_position_of_a_day_that_is_open_is_told_and_explained(call, stored):
    with sqlite3.connect(stored) as store:
        entries = store.execute(
            "select symbol, payload, known_at from journal where kind = 'entry_filled' order by seq"
        ).fetchall()
    symbol, text, known_at = entries[len(entries) // 2]
    fill, at = json.loads(text), ns_to_datetime(known_at).isoformat()
    day = ns_to_datetime(fill["bar_label"]).isoformat()
    found = call("episodes", symbol=symbol, day=day, at=at, limit=1)
    assert found.reply.content["figures"]["open"] == 1.0
    told = said(f"why did we buy {symbol} on {day[:10]}?", found)
    assert told == f"1 position of {symbol} opened on {day[:10]} is open still."
    opened = call("explain_fill", fill_id=symbol, at=at)
    assert opened.reply.content["fill_id"] == fill["fill_id"]
    assert to_follow(parts_of(EvidenceQuestion(f"why did we buy {symbol} on {day[:10]}?", {})), [found])
    side = {"long": "short", "short": "long"}[fill["direction"]]
    other = call("episodes", symbol=symbol, day=day, at=at, direction=side)
    assert other.reply.content["figures"]["open"] == 0.0


def test_price_below_a_ten_thousandth_is_told_with_its_digits():
    assert [price_of(value) for value in (7.37718e-05, 0.5, 75.30021, 1_234_567.891)] == [
        "0.0000737718",
        "0.5",
        "75.3002",
        "1,234,567.89",
    ]


def test_id_that_reads_as_a_huge_number_is_no_figure_of_an_answer():
    reply = json.dumps({"trade": {"id": "415e492780156912", "other": "1e999999999"}, "won": 69, "odd": 1e400})
    assert stands_in("69 were won.", reply, {})
    assert not stands_in("The win rate is 67.6 %.", reply, {})


def test_where_nothing_was_lost_there_is_no_profit_factor(call, trades):
    winner = next(trade for trade in trades if trade["r"] > 0)
    params = {"symbol": winner["symbol"], "playbook_id": winner["playbook_id"], "regime": winner["regime"]}
    found = call("episodes", **params, outcome="won")
    assert "profit_factor" not in found.reply.content["figures"]
    assert "have no profit factor in R: none of them lost." in said("profit factor?", found)


def test_ways_out_of_a_playbook_are_told_with_what_manages_its_position(call):
    found = call("playbooks", playbook_id="mean_reversion")
    definition = found.reply.content["versions"][-1]["definition"]
    told = said("when does mean_reversion get out?", found)
    share, at = definition["scale_out_share"], definition["scale_out_r"]
    assert f"a share of {share:g} is closed at {at:g}R" in told
    trailing = call("playbooks", playbook_id="channel_breakout")
    rule = trailing.reply.content["versions"][-1]["definition"]["rules"]["long"]["trail"]
    assert f"trail `{rule}`" in said("when does channel_breakout get out?", trailing)
