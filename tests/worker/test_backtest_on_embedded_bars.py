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
    assert sum(loop["passed_over"].values()) > 0
    assert loop["sent_back_own"] == 0, "what cannot pass is not offered"
    assert loop["stand_downs"] < 100
    assert loop["finding_codes"]["memory_insufficient"] > 0
    assert loop["finding_codes"]["memory_estimate"] > 1_000, "every reflection shows what is earned here"
    assert "memory_contradicts" not in loop["finding_codes"], "no rules have the cases that it takes"
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
    assert sum(trade["pnl"] for trade in exits) - sum(
        entry["fee"] for entry in entries[: len(exits)]
    ) == pytest.approx(
        sum(episode["pnl"] for episode in episodes) - sum(entry["fee"] for entry in entries[: len(exits)])
    )
    realised = sum(episode["pnl"] for episode in episodes)
    unrealised = sum(item["unrealised_pnl"] for item in run.document["open_positions"])
    gained = run.document["performance"]["total_return"] * 100_000.0
    open_fees = sum(entry["fee"] for entry in entries) - sum(
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
    assert len({(skip["event_id"], skip["event"]) for skip in skips}) == len(skips)
    slots = [skip["slot"] for skip in run.of("slow_skip")]
    assert len(set(slots)) == len(slots)


def test_backtest_embedded_no_order_without_a_frozen_policy_that_passed() -> None:
    run = embedded_run()
    frozen = {entry["policy_id"]: entry["policy"] for entry in run.of("policy_frozen")}
    passed = {
        reflection["reflection_hash"]
        for reflection in run.of("policy_reflection")
        if reflection["result"]["status"] == "pass"
    }
    approved = {
        verdict["verdict_hash"]
        for verdict in run.of("boundary_verdict")
        if verdict["verdict"]["decision"] == "approve"
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
    status = {
        reflection["reflection_hash"]: reflection["result"]["status"]
        for reflection in run.of("policy_reflection")
    }
    verdicts = [
        (status[verdict["reflection_hash"]], verdict["verdict"]["decision"])
        for verdict in run.of("boundary_verdict")
    ]
    assert {decision for text, decision in verdicts if text == "pass"} == {"approve"}
    refused = [decision for reply, decision in verdicts if reply != "pass"]
    assert refused
    assert "approve" not in refused


def test_backtest_embedded_experiments_end_with_what_they_have_shown() -> None:
    ended = [
        version
        for version in embedded_run().of("playbook_version")
        if version["state"] in ("expired", "retired")
    ]
    assert ended
    assert all(entry["evidence"]["n"] > 0 and entry["evidence"]["mean_r"] is not None for entry in ended)


def test_backtest_embedded_heartbeats_count_from_the_last_evaluation() -> None:
    last: dict[str, int] = {}
    beats = 0
    for entry in embedded_run().of("policy_snapshot"):
        snapshot = entry["snapshot"]
        symbol, bars = snapshot["symbol"], snapshot["data_window"]["bars"]
        if snapshot["events"] == ["heartbeat"] and symbol in last:
            beats += 1
            assert bars - last[symbol] >= 5
        last[symbol] = bars
    assert beats > 500


def test_backtest_embedded_enters_refines_and_manages_in_every_declared_way() -> None:
    run = embedded_run()
    orders = {order["order_id"]: order for order in run.of("order_accepted")}
    entered = {orders[fill["order_id"]]["entry_kind"] for fill in run.of("entry_filled")}
    assert entered == {"market", "limit", "stop"}
    assert {refined["playbook_id"] for refined in run.of("entry_refined") if "entry" in refined} == {
        "trend_pullback"
    }
    assert {move["by"] for move in run.of("stop_tightened")} >= {"trail", "break_even"}
    assert "unfilled" in {refusal["reason"] for refusal in run.of("order_refused")}
    assert {fill["playbook_id"] for fill in run.of("scale_out_filled")} == {"mean_reversion"}
    assert run.document["errors"] == 0


def test_backtest_embedded_every_playbook_trades() -> None:
    run = embedded_run()
    loaded = {version["playbook_id"] for version in run.of("playbook_version")}
    assert {episode["episode"]["playbook_id"] for episode in run.of("episode")} == loaded


def test_backtest_embedded_scale_outs_close_half_and_belong_to_one_trade() -> None:
    run = embedded_run()
    entries = {fill["order_id"]: fill for fill in run.of("entry_filled")}
    exits = {fill["entry_order_id"]: fill for fill in run.of("exit_filled")}
    scaled = run.of("scale_out_filled")
    assert len({item["entry_order_id"] for item in scaled}) == len(scaled) > 3
    for item in scaled:
        entry = entries[item["entry_order_id"]]
        assert item["quantity"] == pytest.approx(0.5 * entry["quantity"])
        if item["entry_order_id"] in exits:
            assert exits[item["entry_order_id"]]["quantity"] == pytest.approx(item["remaining"])


def test_backtest_embedded_stops_only_tighten() -> None:
    run = embedded_run()
    sides = {fill["policy_id"]: fill["direction"] for fill in run.of("entry_filled")}
    for move in run.of("stop_tightened"):
        sign = 1.0 if sides[move["policy_id"]] == "long" else -1.0
        assert (move["stop"] - move["stop_before"]) * sign > 0.0
