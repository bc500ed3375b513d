"""`thinktwice factcheck` on what a run saw beside its trades: account, bars of snapshots, trials on paper."""

import json
import sqlite3
from datetime import UTC, datetime

import pytest

from services.evidence.facts import Subject, period_of
from services.evidence.observed import KnownSnapshot, Observed
from tests.worker.cli.test_factcheck import told


def rows(folder, kind):
    with sqlite3.connect(folder / "thinktwice.db") as store:
        found = store.execute("select seq, payload from journal where kind = ? order by seq", (kind,))
        return [(seq, json.loads(payload)) for seq, payload in found]


def day(ns):
    return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d")


def verdicts(shell, text):
    """Verdict and row of each figure of a text."""
    claims = told(shell, text)[1]["claims"]
    return [
        (item["verdict"], item["rows"][0]["seq"])
        for item in claims
        if item["kind"] in ("number", "percent", "count") and item["rows"]
    ]


def test_account_at_a_time_is_what_the_newest_snapshot_says(planted):
    snapshots = [(seq, payload["snapshot"]) for seq, payload in rows(planted.folder, "policy_snapshot")]
    date = day(snapshots[len(snapshots) // 2][1]["bar_label"])
    seq, seen = next(item for item in reversed(snapshots) if day(item[1]["bar_label"]) == date)
    equity, cash = seen["risk"]["equity"], seen["risk"]["cash"]
    drawdown = 100 * seen["risk"]["drawdown"]
    for text, value, other in (
        ("Equity stood at {:,.2f} on {}.", equity, equity + 1),
        ("As of {1}, the account's cash was {0:,.0f} dollars.", cash, cash + 100),
        ("The drawdown on {1} was {0:.2f} %.", drawdown, drawdown + 1),
        ("As of {1} the account returned {0:.2f} %.", 100 * (equity / 1e5 - 1), 42),
    ):
        assert verdicts(planted, text.format(value, date)) == [("verified", seq)], text
        assert verdicts(planted, text.format(other, date)) == [("contradicted", seq)], text


def test_account_at_the_end_is_what_the_document_of_the_run_says(planted):
    with sqlite3.connect(planted.folder / "thinktwice.db") as store:
        document = json.loads(store.execute("select document from runs").fetchone()[0])
    (end, _), told_of = rows(planted.folder, "run_finished")[0], document["performance"]
    returned, deepest = 100 * told_of["total_return"], 100 * told_of["max_drawdown"]
    text = "The account's return is {:.2f} %. The maximum drawdown was {:.2f} %."
    assert verdicts(planted, text.format(returned, deepest)) == [("verified", end)] * 2
    assert verdicts(planted, text.format(returned + 1, deepest + 1)) == [("contradicted", end)] * 2


def test_bar_of_a_trade_is_that_of_the_snapshot_behind_its_policy(planted):
    seen = {
        found["snapshot_hash"]: (seq, found["snapshot"])
        for seq, found in rows(planted.folder, "policy_snapshot")
    }
    behind = {
        found["policy_id"]: found["policy"]["snapshot_hash"]
        for _, found in rows(planted.folder, "policy_frozen")
    }
    episode = rows(planted.folder, "episode")[3][1]["episode"]
    seq, snapshot = seen[behind[episode["policy_id"]]]
    text = "In the snapshot of trade {}, the close was {:.3f}."
    assert verdicts(planted, text.format(episode["episode_id"], snapshot["close"])) == [("verified", seq)]
    other = text.format(episode["episode_id"], snapshot["close"] + 0.5)
    assert verdicts(planted, other) == [("contradicted", seq)]
    name, value = next(item for item in snapshot["features"].items() if "_" in item[0] and item[1])
    text = "The {} of trade {} was {:.4f}."
    assert verdicts(planted, text.format(name, episode["episode_id"], value)) == [("verified", seq)]
    assert verdicts(planted, text.format(name, episode["episode_id"], value + 1))[0] == ("contradicted", seq)


def test_trial_is_what_its_newest_row_says_and_not_the_trades_of_the_account(planted):
    seq, payload = rows(planted.folder, "shadow_trials")[-1]
    shown = payload["trials"][0]
    named = f"{shown['kind']} trial of {shown['parameter']} in {shown['playbook_id']}"
    text = "The {} has {} trades, a mean of {:+.2f}R and an E-value of {:.2f}."
    true = text.format(named, shown["n"], shown["mean_r"], shown["e_value"])
    false = text.format(named, shown["n"] + 1, shown["mean_r"] + 1, shown["e_value"] + 1)
    assert verdicts(planted, true) == [("verified", seq)] * 3
    assert verdicts(planted, false) == [("contradicted", seq)] * 3
    assert verdicts(planted, f"The shadow trial of {shown['playbook_id']} has {shown['n']} trades.") == []
    side = ("gained", "lost") if shown["mean_r"] > 0 else ("lost", "gained")
    for word, code in zip(side, (0, 1), strict=True):
        assert told(planted, f"The {named} {word}.")[0] == code


@pytest.mark.parametrize("count", [0, 2])
def test_bar_of_which_there_is_none_or_several_is_no_answer(count):
    from schemas.claims import FactRow

    snapshot = KnownSnapshot("IBM", period_of(2000)[0], {"close": 2.0}, {}, FactRow(seq=1, kind="x"))
    observed = Observed((snapshot,) * count)
    subject = Subject(symbol="IBM", feature="close", period=period_of(2000))
    assert observed.of_bar(subject, ()) == []
    assert Observed((snapshot,)).of_bar(subject, ()) == [(2.0, snapshot.row)]
