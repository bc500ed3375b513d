"""The main job on real bars: what every link of the way must have done at least once."""

import json

import pytest

from schemas.vocabulary import PolicyEventKind
from services.journal.chain import relink
from tests.worker.shared_runs import embedded_run


def test_backtest_embedded_every_bar_is_validated_and_nothing_forbidden_ran() -> None:
    run = embedded_run()
    ticks = run.document["tick_validation"]
    assert ticks["bars_validated"] == run.document["data"]["bars"] == 12_154
    assert (ticks["llm_calls"], ticks["memory_reads"], ticks["policy_writes"]) == (0, 0, 0)
    assert run.document["errors"] == 0


def test_backtest_embedded_shows_every_kind_of_evidence() -> None:
    document = embedded_run().document
    loop = document["policy_loop"]
    assert len(document["tick_validation"]["events"]) >= 5
    assert len([kind for kind in loop["events"] if kind in set(PolicyEventKind)]) >= 4
    assert document["performance"]["trades"] >= 30
    assert sum(loop["skips"].values()) > 0
    assert sum(document["high_level"]["skips"].values()) > 0
    assert loop["reflections"]["revise"] + loop["reflections"]["block"] > 0
    assert loop["finding_codes"]["over_confident"] > 0
    assert document["high_level"]["runs"] >= 1


def test_backtest_embedded_policy_evaluations_stay_below_a_third_of_the_bars() -> None:
    document = embedded_run().document
    assert 0 < document["policy_loop"]["evaluations"] < document["tick_validation"]["bars_validated"] / 3


def test_backtest_embedded_closed_positions_equal_episodes_and_cash_is_conserved() -> None:
    run = embedded_run()
    exits, entries = run.of("exit_filled"), run.of("entry_filled")
    episodes = [payload["episode"] for payload in run.of("episode")]
    assert len(exits) == len(episodes) == run.document["episodes"] == run.document["performance"]["trades"]
    assert len(entries) == len(exits) + len(run.document["open_positions"])
    assert sum(one["pnl"] for one in exits) - sum(
        one["fee"] for one in entries[: len(exits)]
    ) == pytest.approx(sum(one["pnl"] for one in episodes) - sum(one["fee"] for one in entries[: len(exits)]))
    realised = sum(one["pnl"] for one in episodes)
    unrealised = sum(one["unrealised_pnl"] for one in run.document["open_positions"])
    gained = run.document["performance"]["total_return"] * 100_000.0
    open_fees = sum(one["fee"] for one in entries) - sum(
        next(e["fee"] for e in entries if e["order_id"] == x["entry_order_id"]) for x in exits
    )
    assert gained == pytest.approx(realised + unrealised - open_fees, abs=1e-6)


def test_backtest_embedded_every_report_reaches_the_judge_and_hold_counts() -> None:
    run = embedded_run()
    reports = [payload["report_id"] for payload in run.of("high_level_report")]
    verdicts = [payload["report_id"] for payload in run.of("replan_verdict")]
    assert reports == verdicts
    assert (
        sum(run.document["judge"]["replans"].values()) == len(reports) == run.document["high_level"]["runs"]
    )


def test_backtest_embedded_one_skip_per_skipped_policy_event() -> None:
    run = embedded_run()
    skips = run.of("policy_skip")
    assert len(skips) == sum(run.document["policy_loop"]["skips"].values())
    assert len({(one["event_id"], one["event"]) for one in skips}) == len(skips)
    slots = [one["slot"] for one in run.of("slow_skip")]
    assert len(set(slots)) == len(slots)


def test_backtest_embedded_no_order_without_a_frozen_policy_that_passed() -> None:
    run = embedded_run()
    frozen = {one["policy_id"]: one["policy"] for one in run.of("policy_frozen")}
    passed = {
        one["reflection_hash"] for one in run.of("policy_reflection") if one["result"]["status"] == "pass"
    }
    approved = {
        one["verdict_hash"] for one in run.of("boundary_verdict") if one["verdict"]["decision"] == "approve"
    }
    orders = run.of("order_accepted")
    assert len(orders) >= 30
    for order in orders:
        policy = frozen[order["policy_id"]]
        assert policy["reflection_hash"] in passed
        assert policy["verdict_hash"] in approved


def test_backtest_embedded_journal_is_one_chain_of_known_times() -> None:
    rows = embedded_run().rows
    assert [row.seq for row in rows] == list(range(len(rows)))
    assert all(row.hash == relink(row) for row in rows)
    assert all(row.ts_event <= row.known_at for row in rows)
    clock = 0
    for row in rows:
        assert row.known_at >= clock or row.kind in ("state_transition",), row.kind
        clock = max(clock, row.known_at)
    assert json.loads(rows[0].payload)["symbols"] == ["AAPL", "FB", "GOOG", "IBM", "MSFT"]


def test_backtest_embedded_memory_is_read_at_boundaries_only() -> None:
    document = embedded_run().document
    reads, evaluations = document["memory"]["reads"], document["policy_loop"]["evaluations"]
    reflections = sum(document["policy_loop"]["reflections"].values())
    assert evaluations <= reads <= evaluations + reflections


def test_backtest_embedded_judge_sees_what_the_reflection_refused_and_approves_none_of_it() -> None:
    run = embedded_run()
    status = {one["reflection_hash"]: one["result"]["status"] for one in run.of("policy_reflection")}
    verdicts = [
        (status[one["reflection_hash"]], one["verdict"]["decision"]) for one in run.of("boundary_verdict")
    ]
    assert {decision for said, decision in verdicts if said == "pass"} == {"approve"}
    refused = [decision for said, decision in verdicts if said != "pass"]
    assert refused
    assert "approve" not in refused


def test_backtest_embedded_experiments_end_with_what_they_have_shown() -> None:
    ended = [one for one in embedded_run().of("playbook_version") if one["state"] in ("expired", "retired")]
    assert ended
    assert all(one["evidence"]["n"] > 0 and one["evidence"]["mean_r"] is not None for one in ended)


def test_backtest_embedded_heartbeats_count_from_the_last_evaluation() -> None:
    last: dict[str, int] = {}
    beats = 0
    for one in embedded_run().of("policy_snapshot"):
        snapshot = one["snapshot"]
        symbol, bars = snapshot["symbol"], snapshot["data_window"]["bars"]
        if snapshot["events"] == ["heartbeat"] and symbol in last:
            beats += 1
            assert bars - last[symbol] >= 5
        last[symbol] = bars
    assert beats > 500


def test_backtest_embedded_enters_refines_and_manages_in_every_declared_way() -> None:
    run = embedded_run()
    orders = {one["order_id"]: one for one in run.of("order_accepted")}
    entered = {orders[one["order_id"]]["entry_kind"] for one in run.of("entry_filled")}
    assert entered == {"market", "limit", "stop"}
    assert {one["playbook_id"] for one in run.of("entry_refined") if "entry" in one} == {"trend_pullback"}
    assert {one["by"] for one in run.of("stop_tightened")} >= {"trail", "break_even"}
    assert "unfilled" in {one["reason"] for one in run.of("order_refused")}
    assert {one["playbook_id"] for one in run.of("scale_out_filled")} == {"mean_reversion"}
    assert run.document["errors"] == 0


def test_backtest_embedded_every_playbook_trades() -> None:
    run = embedded_run()
    loaded = {one["playbook_id"] for one in run.of("playbook_version")}
    assert {one["episode"]["playbook_id"] for one in run.of("episode")} == loaded


def test_backtest_embedded_scale_outs_close_half_and_belong_to_one_trade() -> None:
    run = embedded_run()
    entries = {one["order_id"]: one for one in run.of("entry_filled")}
    exits = {one["entry_order_id"]: one for one in run.of("exit_filled")}
    scaled = run.of("scale_out_filled")
    assert len({one["entry_order_id"] for one in scaled}) == len(scaled) > 3
    for one in scaled:
        entry = entries[one["entry_order_id"]]
        assert one["quantity"] == pytest.approx(0.5 * entry["quantity"])
        if one["entry_order_id"] in exits:
            assert exits[one["entry_order_id"]]["quantity"] == pytest.approx(one["remaining"])


def test_backtest_embedded_stops_only_tighten() -> None:
    run = embedded_run()
    sides = {one["policy_id"]: one["direction"] for one in run.of("entry_filled")}
    for one in run.of("stop_tightened"):
        sign = 1.0 if sides[one["policy_id"]] == "long" else -1.0
        assert (one["stop"] - one["stop_before"]) * sign > 0.0
