"""What was tried on the bars of a run before it: in its first row, in its reports, and nowhere read again."""

import asyncio
import json
from functools import partial

import numpy as np
import pytest

from schemas.settings import Settings
from schemas.slow_reflection import HighLevelReflectionReport
from schemas.trials import TrialLedger
from services.high_level.hypotheses import declared_hypotheses
from services.high_level.report_lines import ledger_line
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.loader import load_playbooks
from services.statistics.multiplicity import online_level
from tests.worker.replays import backtest_replay
from tests.worker.shared_runs import (
    NO_EXPERIMENTS,
    losing_run,
    losing_settings,
    losing_world,
    planted_run,
    planted_world,
    run_on,
)
from tests.worker.trials_stored import read_requests, rows_of, seeded, slice_bars, stored_run
from worker.runs.backtest import run_backtest
from worker.runs.trials import GivenTrial
from worker.studies.scenarios import planted_books

HYPOTHESES = len(set(declared_hypotheses(load_playbooks(None), ["1d"])))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Three configurations, the first of them twice, one that counts nothing, and one on other bars."""
    folder = tmp_path_factory.mktemp("trials")
    runs = [stored_run(folder, seeded(seed)) for seed in (0, 1, 0, 2)]
    runs.append(stored_run(folder, seeded(3), fresh=True))
    runs.append(stored_run(folder, seeded(0), slice_bars().select(("AAPL",))))
    return folder, runs


def payloads(folder, run, kind):
    rows = read_requests(folder, lambda opened: rows_of(opened, run.record.run_id, kind))
    return [json.loads(row.payload) for row in rows]


def test_empty_store_has_the_head_that_it_had(store):
    """As without any ledger: its first row, its requests and its reports say nothing of it."""
    folder, runs = store
    alone = run_on(slice_bars(), seeded(0))
    assert runs[0].record.head_hash == alone.document["journal"]["head_hash"]
    [genesis] = payloads(folder, runs[0], "genesis")
    assert "ledger" not in genesis
    reports = payloads(folder, runs[0], "high_level_report")
    assert reports
    assert all("ledger" not in report["report"] for report in reports)


def test_same_configuration_on_the_same_bars_has_the_same_head_whatever_came_between(store):
    _, runs = store
    assert runs[2].record.head_hash == runs[0].record.head_hash


def test_later_configuration_has_the_earlier_ones_in_its_first_row_and_its_reports(store):
    folder, runs = store
    [genesis] = payloads(folder, runs[3], "genesis")
    ledger = TrialLedger.model_validate(genesis["ledger"])
    assert (ledger.configurations, ledger.hypotheses, ledger.fresh) == (2, 2 * HYPOTHESES, False)
    requests = payloads(folder, runs[3], "high_level_request")
    assert {json.dumps(request["request"]["ledger"]) for request in requests} == {
        json.dumps(genesis["ledger"])
    }
    assert TrialLedger.of_document(runs[3].document["ledger"]) == ledger
    text = ledger_line(payloads(folder, runs[3], "high_level_report")[-1]["report"])
    assert text is not None
    assert "Ledger of trials: 2 earlier configurations on these bars are counted" in text


def test_levels_of_a_later_configuration_are_shared(store):
    folder, runs = store
    first, third = (
        HighLevelReflectionReport.model_validate_json(
            json.dumps(payloads(folder, run, "high_level_report")[-1]["report"])
        )
        for run in (runs[0], runs[3])
    )
    alone = {
        (cluster.playbook_id, cluster.regime): cluster.alpha
        for cluster in first.clusters
        if cluster.family_size
    }
    shared = {
        (cluster.playbook_id, cluster.regime): cluster.alpha
        for cluster in third.clusters
        if cluster.family_size
    }
    assert alone
    assert shared == pytest.approx({key: alpha / 3 for key, alpha in alone.items()})


def test_fresh_ledger_runs_as_on_an_empty_store_and_every_report_says_so(store):
    folder, runs = store
    line = "resh ledger: 3 earlier configurations on these bars are not counted"
    reports = payloads(folder, runs[4], "high_level_report")
    assert all(line in str(ledger_line(report["report"])) for report in reports)
    fields = runs[4].document["ledger"]
    assert (fields["fresh"], fields["configurations"]) == (True, 3)
    assert set(fields["counted"].values()) == {0}
    first = payloads(folder, runs[0], "high_level_report")
    for payload, other in zip(first, reports, strict=True):
        assert [c["alpha"] for c in payload["report"]["clusters"]] == [
            c["alpha"] for c in other["report"]["clusters"]
        ]


def test_fresh_ledger_on_an_empty_store_verifies(tmp_path):
    bars = slice_bars().select(("AAPL",))
    run = stored_run(tmp_path, seeded(1), bars, fresh=True)

    async def replayed(opened):
        return await backtest_replay(seeded(1), bars, opened, run.record).compare()

    report = read_requests(tmp_path, replayed)
    assert (report.ok, report.document, run.document["ledger"]["fresh"]) == (True, (), False)


def test_run_on_some_of_the_symbols_overlaps(store):
    """AAPL alone was looked at four times before, by four configurations."""
    _, runs = store
    assert runs[5].document["ledger"]["configurations"] == 4


def test_verify_after_more_runs_were_stored_still_reproduces_the_head(store):
    folder, runs = store

    async def replayed(opened, run, bars):
        return await backtest_replay(run[0], bars, opened, run[1].record).compare()

    for settings, run in ((seeded(1), runs[1]), (seeded(3), runs[4])):
        report = read_requests(folder, partial(replayed, run=(settings, run), bars=slice_bars()))
        assert (report.ok, report.problem, report.document) == (True, None, ())
        assert report.head_hash == run.record.head_hash


def test_session_that_is_rebuilt_starts_with_what_its_run_started_with(store):
    folder, runs = store

    async def rebuilt(opened):
        return await backtest_replay(seeded(2), slice_bars(), opened, runs[3].record).rebuild()

    found = read_requests(folder, rebuilt)
    assert found.session.ledger.configurations == 2
    assert found.compared == runs[3].record.events


def test_replays_and_rebuilt_sessions_register_nothing(store):
    """The ledger holds the runs of the fixture and no other, whatever was played again above."""
    folder, runs = store

    async def entered(opened):
        return [trial.run_id for trial in await opened.trials.all()]

    assert read_requests(folder, entered) == [run.record.run_id for run in runs]


def test_run_that_is_no_trial_of_its_own_is_not_entered(tmp_path):
    """As the arms of `ablate` are stored."""
    run = stored_run(tmp_path, seeded(0), slice_bars().select(("AAPL",)), fresh=None)

    async def entered(opened):
        return await opened.trials.all(), await opened.seals.problems(run.record.run_id)

    assert read_requests(tmp_path, entered) == ([], [])


def test_judge_shares_with_the_same_trials_as_the_report():
    """Where earlier configurations are counted, the judge's second look comes to the grades of the report."""
    ledger = TrialLedger(configurations=2, hypotheses=20, candidates=3, promotions=1)
    sink, alone = MemorySink(), losing_run()
    running = run_backtest(
        losing_settings(NO_EXPERIMENTS), losing_world(1_880), JournalWriter(sink),
        definitions=planted_books(), trial=GivenTrial(ledger),
    )  # fmt: skip
    asyncio.run(running)
    shown = [(row.kind, json.loads(row.payload)) for row in sink.rows]
    verdicts = [payload["verdict"] for kind, payload in shown if kind == "replan_verdict"]
    assert any(verdict["actions"] for verdict in verdicts)
    assert "grade_mismatch" not in {finding["code"] for verdict in verdicts for finding in verdict["refused"]}
    needs = [
        trial["e_needed"]
        for kind, payload in shown
        if kind == "high_level_request"
        for trial in payload["request"]["shadow_trials"]
        if trial["kind"] != "experiment"  # they share levels of their own
    ]
    first = online_level(losing_settings(NO_EXPERIMENTS).judge.promotion_alpha, 4, 1)
    assert needs[0] == pytest.approx(1.0 / first)
    assert alone.of("high_level_report")[0]["report"]["clusters"] != next(
        payload["report"]["clusters"] for kind, payload in shown if kind == "high_level_report"
    )


def test_counted_configurations_deflate_a_sharpe_ratio_further():
    """Up to the first report that has one, the two runs trade alike."""
    ledger, alone = TrialLedger(configurations=2, hypotheses=20, candidates=3), planted_run()
    first = next(
        payload["report"] for payload in alone.of("high_level_report") if deflated(payload["report"])
    )
    bars = int(np.searchsorted(planted_world().close_times, first["known_at"])) + 1
    sink = MemorySink()
    running = run_backtest(
        Settings(), planted_world(bars), JournalWriter(sink),
        definitions=planted_books(), trial=GivenTrial(ledger),
    )  # fmt: skip
    asyncio.run(running)
    [shared] = [
        deflated(json.loads(row.payload)["report"])
        for row in sink.rows
        if row.kind == "high_level_report" and row.known_at == first["known_at"]
    ]
    assert shared.keys() == deflated(first).keys()
    assert all(shared[cell] < dsr for cell, dsr in deflated(first).items())


def deflated(report):
    """{playbook and regime: its deflated Sharpe ratio}, of those that have one."""
    clusters = report["clusters"]
    return {(item["playbook_id"], item["regime"]): item["dsr"] for item in clusters if item["dsr"]}
