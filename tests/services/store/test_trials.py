"""The ledger of trials: what counts as tried before, each configuration once, on both dialects."""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import update

from schemas.trials import MOST, NO_TRIALS, TrialCounts, TrialLedger
from services.store import open_store
from services.store.integrity import examine
from services.store.seals import seal_row
from services.store.tables import seals, trials
from services.store.trials import TriedOn
from tests.services.journal.rows import written_rows
from tests.services.store.stores import new_run

ROWS = written_rows(3)
DAY = 86_400 * 10**9
BARS = TriedOn("c0", "books", "data", "1d", ("AAPL", "IBM"), 100 * DAY, 200 * DAY)


def counts(hypotheses: int = 10, candidates: int = 0, promotions: int = 0) -> TrialCounts:
    return TrialCounts(hypotheses=hypotheses, candidates=candidates, promotions=promotions)


def in_store(address, scenario):
    async def opened():
        async with await open_store(address, create=True) as store:
            return await scenario(store)

    return asyncio.run(opened())


async def tried(store, on: TriedOn, trial_counts: TrialCounts | None = None, **named) -> TrialLedger:
    """A run that begins on these bars, and comes as far as is told."""
    run_id = (await store.runs.create(new_run())).run_id
    ledger: TrialLedger = await store.trials.begin(run_id, on, 10, **named)
    if trial_counts is not None:
        await store.trials.advance(run_id, trial_counts)
    return ledger


def test_twenty_configurations_are_one_budget(address):
    async def scenario(store):
        return [await tried(store, replace(BARS, config_hash=f"c{k}"), counts(10, 2, 1)) for k in range(20)]

    found = in_store(address, scenario)
    assert found[0] == NO_TRIALS
    assert [item.configurations for item in found] == list(range(20))
    assert found[-1] == TrialLedger(configurations=19, hypotheses=190, candidates=38, promotions=19)


def test_same_configuration_again_is_no_new_trial_and_starts_with_what_it_started_with(address):
    """Also when others came between, and when its bars have grown; of its runs the furthest counts."""

    async def scenario(store):
        first = await tried(store, BARS, counts(10, 1))
        await tried(store, replace(BARS, config_hash="c1"), counts(10, 5))
        again = await tried(store, replace(BARS, last_label=300 * DAY), counts(12, 3, 1))
        return first, again, await tried(store, replace(BARS, config_hash="c2"))

    first, again, after = in_store(address, scenario)
    assert first == again == NO_TRIALS
    assert after == TrialLedger(configurations=2, hypotheses=22, candidates=8, promotions=1)


@pytest.mark.parametrize(
    "other",
    [
        {"timeframe": "4h"},
        {"symbols": ("MSFT",)},
        {"first_label": 201 * DAY, "last_label": 300 * DAY},
        {"first_label": 1 * DAY, "last_label": 99 * DAY},
    ],
    ids=["timeframe", "symbols", "later", "earlier"],
)
def test_trial_on_bars_without_overlap_does_not_count(address, other):
    async def scenario(store):
        await tried(store, replace(BARS, config_hash="c1", data="other", **other))
        return await tried(store, BARS)

    assert in_store(address, scenario) == NO_TRIALS


@pytest.mark.parametrize(
    "other",
    [
        {"symbols": ("IBM", "MSFT")},
        {"first_label": 200 * DAY, "last_label": 300 * DAY},
        {"first_label": 1 * DAY, "last_label": 100 * DAY},
        {"playbooks": "others", "config_hash": "c0", "data": "data"},
        {"config_hash": "c0"},
    ],
    ids=["one_symbol", "one_bar_after", "one_bar_before", "other_playbooks", "other_data"],
)
def test_trial_on_overlapping_bars_counts(address, other):
    async def scenario(store):
        await tried(store, replace(BARS, **({"config_hash": "c1", "data": "other"} | other)))
        return await tried(store, BARS)

    assert in_store(address, scenario).configurations == 1


def test_trial_of_a_run_that_takes_bars_reaches_to_the_last_it_has_stored(address):
    async def scenario(store):
        await tried(store, replace(BARS, config_hash="c1", last_label=None))
        [found] = await store.trials.all()
        after = await tried(store, replace(BARS, data="later", first_label=101 * DAY))
        return found.on.last_label, after

    last, after = in_store(address, scenario)
    assert last == BARS.first_label
    assert after == NO_TRIALS


def test_run_that_begins_again_after_a_crash_keeps_what_it_started_with(address):
    async def scenario(store):
        run_id = (await store.runs.create(new_run())).run_id
        await tried(store, replace(BARS, config_hash="c1"))
        first = await store.trials.begin(run_id, BARS, 10)
        await tried(store, replace(BARS, config_hash="c2"))
        return first, await store.trials.begin(run_id, BARS, 10), len(await store.trials.all())

    first, again, rows = in_store(address, scenario)
    assert first == again
    assert (first.configurations, rows) == (1, 3)


def test_fresh_run_counts_nothing_says_so_and_counts_for_others(address):
    async def scenario(store):
        await tried(store, replace(BARS, config_hash="c1"))
        fresh = await tried(store, BARS, fresh=True)
        return fresh, await tried(store, BARS), await tried(store, replace(BARS, config_hash="c2"))

    fresh, same, other = in_store(address, scenario)
    assert (fresh.configurations, fresh.fresh, fresh.in_force) == (1, True, NO_TRIALS)
    assert fresh.line() == "fresh ledger: 1 earlier configuration on these bars is not counted"
    assert (same.configurations, same.fresh) == (1, False)
    assert other.configurations == 2


def test_fresh_run_on_bars_that_nobody_tried_is_as_any_other(address):
    async def scenario(store):
        await tried(store, replace(BARS, first_label=300 * DAY, last_label=400 * DAY))
        return await tried(store, BARS, fresh=True)

    assert in_store(address, scenario) == NO_TRIALS


def test_ledger_counts_one_of_each_in_the_singular():
    one = TrialLedger(configurations=1, hypotheses=1, candidates=1, promotions=1)
    assert one.line() == (
        "ledger of trials: 1 earlier configuration on these bars is counted "
        "(1 hypothesis, 1 candidate, 1 promotion)"
    )
    many = TrialLedger(configurations=2, hypotheses=2_000, candidates=2)
    assert many.line() == (
        "ledger of trials: 2 earlier configurations on these bars are counted "
        "(2,000 hypotheses, 2 candidates, 0 promotions)"
    )


@pytest.mark.parametrize("fresh", [False, True])
def test_ledger_of_a_document_says_what_is_counted_beside_what_was_tried(fresh):
    ledger = TrialLedger(configurations=2, hypotheses=82, candidates=3, promotions=1, fresh=fresh)
    payload = ledger.document()
    assert (payload["hypotheses"], payload["fresh"]) == (82, fresh)
    sums = {"configurations": 2, "hypotheses": 82, "candidates": 3, "promotions": 1}
    assert payload["counted"] == (dict.fromkeys(sums, 0) if fresh else sums)
    assert TrialLedger.of_document(payload) == ledger


def test_processes_that_begin_together_see_each_other(address):
    """Every one of eight counts a different number of others."""

    async def one(k: int) -> int:
        async with await open_store(address, create=True, timeout_s=60.0) as store:
            return (await tried(store, replace(BARS, config_hash=f"c{k}"))).configurations

    async def together():
        async with await open_store(address, create=True):
            return await asyncio.gather(*(one(k) for k in range(8)))

    assert sorted(asyncio.run(together())) == list(range(8))


def test_ledger_takes_hostile_names_and_huge_counts(address):
    names = ("'; DROP TABLE trials; --", "[red]\x1b[2J", "\ud800", "")
    most = counts(MOST, MOST, MOST)

    async def scenario(store):
        for k in range(3):
            await tried(store, replace(BARS, config_hash=f"c{k}", symbols=names), most)
        return (await store.trials.all())[0].on.symbols, await tried(
            store, replace(BARS, config_hash="c9", symbols=names[:1])
        )

    symbols, ledger = in_store(address, scenario)
    assert symbols == names
    assert (ledger.candidates, ledger.promotions) == (MOST, MOST)


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        (update(trials).values(candidates=5), "r0001: row in the ledger of trials 'r0001' was changed"),
        (trials.delete(), "r0001: row in the ledger of trials '1' is missing"),
        (seals.delete(), "r0001: row in the ledger of trials 'r0001' was not written by the program"),
    ],
    ids=["changed", "deleted", "added"],
)
def test_full_check_finds_a_ledger_that_was_changed(address, statement, shown):
    async def scenario(store):
        await tried(store, BARS, counts(10, 2, 1))
        async with store.trials._writer.begin() as connection:
            await connection.execute(statement)

    async def checked():
        return await examine(address, full=True)

    in_store(address, lambda store: tried(store, replace(BARS, data="other"), counts()))
    assert asyncio.run(checked()).problems == ()
    in_store(address, scenario)
    assert any(problem.startswith(shown) for problem in asyncio.run(checked()).problems)


def test_full_check_holds_the_ledger_against_the_first_row_of_the_journal(address):
    async def scenario(store):
        run_id = (await store.runs.create(new_run())).run_id
        await store.journal.append(run_id, ROWS)
        await store.trials.begin(run_id, BARS, 10)
        async with store.trials._writer.begin() as connection:
            text = json.dumps(TrialLedger(configurations=3).payload())
            await connection.execute(update(trials).values(ledger=text))
            await seal_row(connection, trials, trials.c.run_id == run_id)

    in_store(address, scenario)
    problems = asyncio.run(examine(address, full=True)).problems
    assert "r0001: it did not start with what the ledger of trials says" in problems


def test_trial_stays_counted_when_its_run_is_gone(tmp_path):
    """The program deletes no run; whoever does so by hand has tried what he has tried."""
    path = tmp_path / "store.db"
    address = f"sqlite:///{path}"
    in_store(address, lambda store: tried(store, BARS, counts(10, 1)))
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("DELETE FROM runs")
    assert asyncio.run(examine(address, full=True)).problems == ()
    after = in_store(address, lambda store: tried(store, replace(BARS, config_hash="c1")))
    assert (after.configurations, after.candidates) == (1, 1)
