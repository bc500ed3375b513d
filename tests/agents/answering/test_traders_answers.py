"""What a trader is told of ranks, groups, holds, counts, bans and trades that were not taken."""

import asyncio
import json
import sqlite3

import pytest

from agents.answering.rules import rule_answer
from schemas.evidence_plan import EvidenceCall
from schemas.fact_check import FactRow
from services.store import open_store
from tests.worker.evidence_stores import store_run
from worker.review.evidence import store_tools
from worker.review.run_views import RunViews

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
    return " ".join(one.text for one in rule_answer(calls, NEWEST, question))


def test_worst_and_best_trades_are_those_of_all_trades_not_of_a_page(call, trades):
    worst, best = min(one["r"] for one in trades), max(one["r"] for one in trades)
    assert f"{worst:+.2f}R" in said("worst trade?", call("episodes", order="worst", limit=1))
    assert f"{best:+.2f}R" in said("best trade?", call("episodes", order="best", limit=1))
    told = call("episodes", order="worst", limit=2).reply.content
    rest = call("episodes", order="worst", limit=100, cursor=told["next_cursor"]).reply.content
    rs = [one["r"] for one in (*told["episodes"], *rest["episodes"])]
    assert rs == sorted(one["r"] for one in trades)[: len(rs)]


def test_groups_are_told_with_the_one_that_made_most_and_least(call, trades):
    totals: dict[str, float] = {}
    for one in trades:
        totals[one["symbol"]] = totals.get(one["symbol"], 0.0) + one["r"]
    first, last = max(totals, key=totals.__getitem__), min(totals, key=totals.__getitem__)
    text = said("which symbol lost most", call("episodes", by="symbol"))
    assert f"{first} made the most, {totals[first]:+.2f}R" in text
    assert f"{last} the least, {totals[last]:+.2f}R" in text


def test_holds_are_told_of_each_playbook(call, trades):
    text = said("how long do i hold by playbook", call("episodes", by="playbook"))
    for book in {one["playbook_id"] for one in trades}:
        bars = sorted(one["hold_bars"] for one in trades if one["playbook_id"] == book)
        middle = (bars[(len(bars) - 1) // 2] + bars[len(bars) // 2]) / 2
        assert f"The trades of {book} are held for {middle:g} bars at the median" in text


def test_all_of_the_last_trades_that_are_asked_for_are_told(call, trades):
    lost = [one for one in trades if one["r"] < 0][-3:]
    text = said("last three losing trades", call("episodes", outcome="lost", limit=3))
    assert all(f"{one['r']:+.2f}R" in text for one in lost)


def test_trades_since_a_day_are_those_that_ended_after_it(call, trades):
    later = [one for one in trades if one["exit_label"] >= 1_072_915_200_000_000_000]
    figures = call("episodes", since="2004-01-01").reply.content["figures"]
    assert figures["trades"] == len(later) > 0


def test_reasons_against_trades_are_counted_with_a_row_of_each(call, stored):
    with sqlite3.connect(stored) as store:
        count = "select count(*) from journal where kind = ? and symbol = 'IBM'"
        skips, frozen, entries = (
            store.execute(count, (kind,)).fetchone()[0]
            for kind in ("policy_skip", "policy_frozen", "entry_filled")
        )
    found = call("decisions", symbol="IBM", limit=100)
    content = found.reply.content
    told = [one for one in content["reasons"] if one["what"] == "evaluation skipped"]
    assert sum(one["count"] for one in told) == skips > 0
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
    assert "There are 1 run." in said("how many runs", call("list_runs"))
    assert "The run has 5 playbooks." in said("how many playbooks", call("playbooks"))


def test_fill_that_sold_is_said_not_to_be_bought(call, trades):
    shorts = call("episodes", direction="short", limit=1).reply.content["episodes"]
    found = call("explain_fill", fill_id=shorts[0]["fill_id"])
    assert "That fill bought; nothing was sold by it." in said("why was this sold", found)
    assert "nothing was" not in said("why was this bought", found)


def test_side_that_was_never_traded_is_said_to_be_supposed(call, trades):
    sides = {tuple(one[name] for name in ("symbol", "playbook_id", "regime", "direction")) for one in trades}
    symbol, book, regime, _ = sorted(one for one in sides if (*one[:3], "long") not in sides)[0]
    where = {"symbol": symbol, "playbook_id": book, "regime": regime}
    found = call("episodes", **where, direction="long", limit=1)
    told = said(f"why was {symbol} bought", found)
    assert f"The question supposes a long trade of {book} on {symbol} in {regime}: none was made." in told
