"""A world in which one playbook loses by construction: the gates open, and what follows stands in the
journal.
"""

import json
from collections.abc import Callable
from typing import Any

from schemas.no_learn import NoLearnZone
from schemas.settings import HighLevelSettings, Settings
from schemas.vocabulary import EvidenceGrade, RecommendedAction
from services.playbooks.lifecycle import PROVEN
from services.playbooks.loader import load_playbooks
from services.slow_loop.shadow_ledger import ShadowLedgers
from tests.worker.shared_runs import Run, losing_run, losing_settings, planted_run, planted_world, run_on
from trading_core.market import Market
from worker.feeds.sample_data.worlds import make_world
from worker.studies.scenarios import PLANTED, planted_books


def _versions(run: Run | None = None) -> list[dict]:  # type: ignore[type-arg]
    found = (run or planted_run()).of("playbook_version")
    return [episode for episode in found if episode["playbook_id"] == "buys_strength"]


def test_planted_failure_is_found_significant_and_not_before_the_count_gate() -> None:
    run = losing_run()
    reports = [payload["report"] for payload in run.of("high_level_report")]
    grades = [
        episode["grade"]
        for report in reports
        for episode in report["clusters"]
        if episode["playbook_id"] == "buys_strength" and episode["regime"] is None
    ]
    assert grades[0] != EvidenceGrade.SIGNIFICANT
    assert EvidenceGrade.SIGNIFICANT in grades
    assert min(report["n_episodes"] for report in reports) >= 20
    assert run.document["errors"] == 0


def test_planted_failure_lowers_exposure_at_once_and_sends_the_better_value_to_shadow() -> None:
    structural = next(
        verdict["verdict"]
        for verdict in losing_run().of("replan_verdict")
        if any(action["kind"] == "set_threshold" for action in verdict["verdict"]["actions"])
    )
    kinds = {action["kind"]: action for action in structural["actions"]}
    assert kinds["set_risk_fraction"]["lowers_exposure"] is True
    assert (kinds["set_threshold"]["parameter"], kinds["set_threshold"]["value"]) == ("side", -1.0)
    same_verdict = [
        version for version in _versions(losing_run()) if version["report_id"] == structural["report_id"]
    ]
    states = [(trial["state"], trial["definition"]["risk_fraction"]) for trial in same_verdict]
    assert ("active", 0.0025) in states
    assert [state for state, _ in states if state in ("candidate", "shadow")] == ["candidate", "shadow"]


def test_planted_candidate_is_used_only_once_its_own_shadow_trades_prove_it() -> None:
    run = planted_run()
    promoted = next(
        trial for trial in _versions() if trial["state"] == "active" and trial["evidence"].get("e_value")
    )
    assert promoted["evidence"]["e_value"] >= promoted["evidence"]["e_needed"] >= 40.0
    assert promoted["evidence"]["n"] >= 20
    assert promoted["definition"]["parameters"]["side"]["value"] == -1.0
    rows = [(row.kind, json.loads(row.payload)) for row in run.rows]
    at = next(k for k, (kind, item) in enumerate(rows) if kind == "playbook_version" and item == promoted)
    frozen = [
        (k, item["policy"]["playbook_version"], item["policy"]["proposal"]["setup"])
        for k, (kind, item) in enumerate(rows)
        if kind == "policy_frozen" and item["policy"]["playbook_id"] == "buys_strength"
    ]
    before = {setup for k, _, setup in frozen if k < at}
    after = {setup for k, version, setup in frozen if k > at}
    assert all("-1.0 *" not in setup and "-1 *" not in setup for setup in before)
    assert after
    assert before.isdisjoint(after)


def test_planted_shadow_episodes_stay_out_of_memory_and_the_account() -> None:
    run = planted_run()
    shadow = [episode["episode"] for episode in run.of("shadow_episode")]
    live = {episode["episode"]["episode_id"] for episode in run.of("episode")}
    assert len(shadow) > 20
    assert all(item["ledger"] == "shadow" for item in shadow)
    assert live.isdisjoint(episode["episode_id"] for episode in shadow)
    assert run.document["episodes"] == len(live) == run.document["memory"]["episodes"]


def test_planted_promotion_pays_after_costs_on_the_live_account() -> None:
    run = run_on(planted_world(1_600), definitions=planted_books())
    promoted = next(
        row for row in _versions(run) if row["state"] == "active" and row["evidence"].get("e_value")
    )
    traded = [row["episode"] for row in run.of("episode") if row["episode"]["playbook_id"] == "buys_strength"]
    before = [row["r"] for row in traded if row["playbook_version"] < promoted["version"]]
    after = [row["r"] for row in traded if row["playbook_version"] == promoted["version"]]
    assert len(after) > 20
    assert sum(before) / len(before) < -0.3
    assert sum(after) / len(after) > 0.0


def test_planted_reports_reach_the_judge_and_nothing_on_trial_is_tried_again() -> None:
    run = losing_run()
    assert [report["report_id"] for report in run.of("high_level_report")] == [
        verdict["report_id"] for verdict in run.of("replan_verdict")
    ]
    replans = run.document["judge"]["replans"]
    assert replans[RecommendedAction.REPLAN] >= 1
    assert sum(replans.values()) == len(run.of("high_level_report"))
    tried = planted_run()
    assert {trial["kind"] for trial in tried.document["high_level"]["on_trial"]} >= {
        "candidate",
        "experiment",
    }
    assert list(tried.document["high_level"]["on_trial"]) == tried.of("shadow_trials")[-1]["trials"]
    assert tried.of("action_refused") == []
    mended = tried.document["judge"]["replans"]
    assert mended[RecommendedAction.RESEARCH_EXPERIMENT] >= 1
    assert mended[RecommendedAction.POLICY_ADJUST] >= 1


def test_planted_replan_opens_a_boundary_at_the_next_close_of_every_retired_symbol() -> None:
    run = losing_run()
    rows = [(row.kind, row.known_at, row.symbol, json.loads(row.payload)) for row in run.rows]
    verdicts = [(at, claim["verdict"]) for kind, at, _, claim in rows if kind == "replan_verdict"]
    replanned = next(
        at for at, item in verdicts if any(action["kind"] == "replan" for action in item["actions"])
    )
    events = [(at, symbol, item["events"]) for kind, at, symbol, item in rows if kind == "policy_event"]
    opened = [(at, symbol) for at, symbol, kinds in events if "replan" in kinds]
    assert opened
    bar = 4 * 3_600 * 10**9
    assert min(at for at, _ in opened) == replanned + bar
    assert len({symbol for at, symbol in opened if at == replanned + bar}) > 1


def test_planted_next_request_knows_what_open_trials_have_shown() -> None:
    requests = [payload["request"] for payload in planted_run().of("high_level_request")]
    trials = [trial for request in requests for trial in request["shadow_trials"]]
    assert any(trial["kind"] == "candidate" and trial["n"] > 0 for trial in trials)
    reports = [report["report"]["shadow_trials"] for report in planted_run().of("high_level_report")]
    assert reports == [request["shadow_trials"] for request in requests]


def test_planted_trials_say_what_they_need() -> None:
    requests = [payload["request"] for payload in planted_run().of("high_level_request")]
    trials = [trial for request in requests for trial in request["shadow_trials"]]
    needed = {(trial["playbook_id"], trial["e_needed"]) for trial in trials if trial["kind"] == "candidate"}
    assert ("buys_strength", 40.0) in needed
    assert len(needed) == len({book for book, _ in needed})  # each keeps the level it began at
    assert min(level for _, level in needed) == 40.0
    assert {trial["e_needed"] for trial in trials if trial["kind"] == "experiment"} >= {40.0}
    assert all("e_needed" in trial for trial in trials)


def test_planted_shadow_trades_of_a_no_learn_zone_prove_nothing() -> None:
    zone = NoLearnZone(start=0, end=2**62, reason="all of it")
    settings = losing_settings()
    world = make_world("reverting", seed=3, bars=300, symbols=2)
    envelope = settings.envelope.model_copy(update={"no_learn_zones": (zone,)})
    definition = next(playbook for playbook in load_playbooks(PLANTED) if playbook.id == "buys_strength")
    end = int(world.close_times[-1])
    market, found = Market.of(world, now=end), {}
    for name, limits in (("free", settings.envelope), ("zoned", envelope)):
        ledgers = ShadowLedgers(market, settings.execution, limits)
        found[name] = ledgers.evaluate(definition, "side", -1.0, 0, end)
    assert len(found["free"]) > 5
    assert len(found["zoned"]) == 0


def test_planted_grid_trades_are_those_of_the_episodes_on_the_same_bars_and_come_in_two_parts_as_in_one() -> (
    None
):
    settings, world = losing_settings(), make_world("reverting", seed=3, bars=300, symbols=2)
    definition = next(playbook for playbook in load_playbooks(PLANTED) if playbook.id == "buys_strength")
    market = Market.of(world, now=int(world.close_times[-1]))
    rules, times = tuple(definition.rules), world.times.tolist()
    free = ShadowLedgers(market, settings.execution, settings.envelope).open(definition, rules, 0)
    _, halted, third, *_ = free.advance(300)
    zone = NoLearnZone(start=halted.entry_label, end=halted.exit_label, symbol=halted.symbol, reason="halted")
    envelope = settings.envelope.model_copy(update={"no_learn_zones": (zone,)})
    ledgers = ShadowLedgers(market, settings.execution, envelope)
    made, request = (ledgers.open(definition, rules, 0) for _ in range(2))
    episodes = [episode for episode in made.advance(300) if not episode.no_learn]
    figures = [(episode.entry_label, episode.exit_label, episode.r) for episode in episodes]
    parts = [request.resolve_learnable(times.index(third.exit_label)), request.resolve_learnable(300)]
    assert len(parts[0])
    assert len(figures) < len(made.episodes)
    assert figures == [
        (times[trade["entry_t"]], times[trade["exit_t"]], trade["r"]) for part in parts for trade in part
    ]


def test_planted_fault_is_mended_at_default_settings_by_an_experiment_that_proves_itself() -> None:
    """Experiment, its proof, a recommendation that rests on it, a candidate, its promotion, policies."""
    run = planted_run()
    rows = [(row.kind, row.known_at, json.loads(row.payload)) for row in run.rows]

    def first(kind: str, holds: Callable[[dict[str, Any]], object], after: int = 0) -> int:
        return next(k for k, (name, _, row) in enumerate(rows) if k >= after and name == kind and holds(row))

    def ours(one: dict[str, Any]) -> bool:
        return bool(one["playbook_id"] == "buys_strength")

    opened = first(
        "playbook_version",
        lambda reason: ours(reason) and reason["state"] == "shadow" and "experiment" in reason["reason"],
    )
    proven = first(
        "shadow_trials",
        lambda entry: any(
            ours(trial) and trial["kind"] == "experiment" and (trial["e_value"] or 0.0) >= trial["e_needed"]
            for trial in entry["trials"]
        ),
        opened,
    )
    request = first(
        "high_level_report",
        lambda payload: any(
            item["change"] == {"kind": "set_threshold", "parameter": "side", "value": -1.0}
            and "tried as an experiment" in item["reason"]
            for item in payload["report"]["recommendations"]
        ),
        proven,
    )
    begun = first(
        "playbook_version",
        lambda reason: ours(reason) and reason["state"] == "shadow" and "candidate" in reason["reason"],
        request,
    )
    promoted = first("playbook_version", lambda reason: ours(reason) and reason["reason"] == PROVEN, begun)
    assert rows[promoted][2]["definition"]["parameters"]["side"]["value"] == -1.0
    of_candidate = [
        event["episode"]
        for kind, _, event in rows[:promoted]
        if kind == "shadow_episode" and event["kind"] == "candidate"
    ]
    assert len(of_candidate) >= 20
    assert min(episode["entry_label"] for episode in of_candidate) >= rows[begun][1]
    frozen = [
        entry["policy"]["proposal"]["setup"]
        for kind, _, entry in rows[promoted:]
        if kind == "policy_frozen" and entry["policy"]["playbook_id"] == "buys_strength"
    ]
    assert any("-1" in setup for setup in frozen)


def test_planted_fault_stays_where_the_slow_loop_is_off() -> None:
    off = run_on(planted_world(), Settings(high_level=HighLevelSettings(enabled=False)), planted_books())
    assert not [version for version in off.of("playbook_version") if version["state"] != "active"]
    gained = planted_run().document["performance"]["total_return"]
    assert off.document["performance"]["total_return"] < gained - 0.01


def test_request_names_the_positions_of_the_account_that_are_open():
    assert open_entries_of(planted_run()) + open_entries_of(losing_run()) > 4


def open_entries_of(run: Run) -> int:
    """Requests of a run that name open positions; every request is compared."""
    policies = {frozen["policy_id"]: frozen["policy"]["playbook_id"] for frozen in run.of("policy_frozen")}
    moves = [row for row in run.rows if row.kind in ("entry_filled", "episode", "high_level_request")]
    held: dict[str, tuple[str, int]] = {}
    compared = 0
    for row in moves:
        payload = json.loads(row.payload)
        if row.kind == "high_level_request":
            shown = [
                (episode["playbook_id"], episode["entry_label"])
                for episode in payload["request"]["open_entries"]
            ]
            assert sorted(shown) == sorted(held.values())
            compared += bool(shown)
        elif row.kind == "episode":
            held.pop(payload["episode"]["symbol"])
        else:
            held[str(row.symbol)] = policies[payload["policy_id"]], payload["bar_label"]
    return compared
