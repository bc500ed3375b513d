"""`thinktwice factcheck` on what a run saw beside its trades: account, bars of snapshots, trials on paper."""

import json
import sqlite3
from datetime import UTC, datetime

import pytest

from schemas.claims import FactRow, Of, ValueClaim
from services.claims.check import ClaimResult, check
from services.evidence.facts import period_of
from services.evidence.observed import KnownSnapshot, Observed
from services.evidence.run_facts import RunFacts
from tests.services.store.stores import opened
from tests.worker.cli.test_factcheck import read_shown


def rows(folder, kind):
    with opened(folder / "thinktwice.db") as store:
        found = store.execute(
            "select seq, unpacked(payload) from journal where kind = ? order by seq", (kind,)
        )
        return [(seq, json.loads(payload)) for seq, payload in found]


def day(ns):
    return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d")


def verdicts(shell, text):
    """Verdict of each figure of a text, and the row that bears it out."""
    claims = read_shown(shell, text)[1]["claims"]
    return [(item["verdict"], item["rows"][0]["seq"] if item["rows"] else None) for item in claims]


def test_account_at_a_time_is_what_the_newest_snapshot_says(planted):
    snapshots = [(seq, payload["snapshot"]) for seq, payload in rows(planted.folder, "policy_snapshot")]
    date = day(snapshots[len(snapshots) // 2][1]["bar_label"])
    seq, seen = next(item for item in reversed(snapshots) if day(item[1]["bar_label"]) == date)
    equity, cash = seen["risk"]["equity"], seen["risk"]["cash"]
    drawdown, exposure = 100 * seen["risk"]["drawdown"], 100 * seen["risk"]["gross_exposure"]
    for text, value, other in (
        ("The equity in {1} was {0:,.2f}.", equity, equity + 1),
        ("The cash in {1} was {0:,.1f}.", cash, cash + 100),
        ("The present drawdown in {1} was {0:.2f} %.", drawdown, drawdown + 1),
        ("The gross exposure in {1} was {0:.1f} %.", exposure, exposure + 1),
    ):
        assert verdicts(planted, text.format(value, date)) == [("verified", seq)], text
        assert verdicts(planted, text.format(other, date)) == [("contradicted", None)], text


def test_account_of_a_time_has_no_return_since_that_is_counted_from_the_start(planted):
    snapshots = [payload["snapshot"] for _, payload in rows(planted.folder, "policy_snapshot")]
    date, equity = day(snapshots[-1]["bar_label"]), snapshots[-1]["risk"]["equity"]
    text = f"The return in {date[:4]} was {100 * (equity / 1e5 - 1):.1f} %."
    (claim,) = read_shown(planted, text)[1]["claims"]
    assert (claim["verdict"], claim["so"]) == (
        "unverifiable",
        f"the run does not have the return in {date[:4]}",
    )


@pytest.mark.parametrize("measure", ["equity", "cash", "present drawdown", "gross exposure"])
def test_account_in_a_time_of_many_closes_has_no_one_value(planted, measure):
    snapshots = [payload["snapshot"] for _, payload in rows(planted.folder, "policy_snapshot")]
    year, value = (
        day(snapshots[-1]["bar_label"])[:4],
        "99,999.00" if measure in ("equity", "cash") else "1.4 %",
    )
    (claim,) = read_shown(planted, f"The {measure} in {year} was {value}.")[1]["claims"]
    assert (claim["verdict"], claim["so"]) == (
        "unverifiable",
        f"the run does not have the {measure} in {year}",
    )


def test_account_at_the_end_is_what_the_document_of_the_run_says(planted):
    with sqlite3.connect(planted.folder / "thinktwice.db") as store:
        document = json.loads(store.execute("select document from runs").fetchone()[0])
    (end, _), told_of = rows(planted.folder, "run_finished")[0], document["performance"]
    returned, deepest = 100 * told_of["total_return"], 100 * told_of["max_drawdown"]
    text = "The return was {:.2f} %. The largest drawdown was {:.2f} %."
    assert verdicts(planted, text.format(returned, deepest)) == [("verified", end)] * 2
    assert verdicts(planted, text.format(returned + 1, deepest + 1)) == [("contradicted", None)] * 2


@pytest.mark.parametrize(
    "words", ["In the snapshot of trade {}, the close was 12.5.", "Its trial has {} trades."]
)
def test_what_no_claim_can_say_is_not_read(planted, words):
    text = words.format(rows(planted.folder, "episode")[3][1]["episode"]["episode_id"])
    code, document = read_shown(planted, text)
    assert (code, document["claims"], document["not_read"]) == (0, [], [text])


IBM = KnownSnapshot("IBM", period_of(2000)[0], 2.0, {}, FactRow(seq=1, kind="policy_snapshot"))


def close_of(of, *snapshots):
    """The close that a run of these snapshots has of a subject; None where it has none."""
    facts = RunFacts(0, symbols=("IBM",), observed=Observed(snapshots))
    result = check(ValueClaim(measure="close", of=of), facts)
    return result.figures[0].text if isinstance(result, ClaimResult) else None


def test_bar_of_which_there_is_none_or_several_is_no_answer():
    of = Of(symbol="IBM", period="2000")
    assert [close_of(of, *[IBM] * count) for count in (0, 1, 2)] == [None, "2.00", None]


def test_close_of_some_trades_of_a_symbol_is_no_answer():
    assert close_of(Of(symbol="IBM"), IBM) == "2.00"
    assert close_of(Of(symbol="IBM", direction="long"), IBM) is None
