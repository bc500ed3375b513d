"""What a model strategist is shown beside the snapshot: bars, cases, outcomes, lessons, and nothing later."""

import asyncio
import contextlib
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from agents.strategies.strategist_reply import ReplyFault, read_strategist_reply
from prompts import load_prompt
from schemas.background import DecisionBackground
from schemas.settings import ExecutionSettings, ReflectionSettings, Settings
from schemas.slow_reflection import ClusterFinding
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import EvidenceGrade, RecommendedAction
from services.journal.chain import JournalRow
from services.journal.index import JournalIndex
from services.journal.references import check_references
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.policy_loop.background import LAST, RANKED_BARS, SHOWN_BARS
from services.policy_loop.evaluation import Evaluation
from tests.agents.strategies.questions import change, propose, question
from tests.services.journal.rows import stream
from tests.services.store.artefacts import report, request
from tests.worker.asking_models import PERIOD, Asked, agreeing_run, asking
from tests.worker.shared_runs import fewer_bars, slice_run
from trading_core.bars import BarSeries
from worker.bootstrap import assemble
from worker.cli.ask_again import study_parts
from worker.cli.printing import print_document
from worker.models import Models, Overrides
from worker.session import Session, Timing
from worker.studies.ask_again.asking import StudyArm
from worker.studies.ask_again.figures import study_document
from worker.studies.ask_again.strategist import read_strategist_questions

BARS = fewer_bars(*PERIOD)


def session(settings: Settings | None = None) -> tuple[Session, Asked]:
    model = Asked()
    made = assemble(
        settings or asking(),
        BARS,
        JournalWriter(MemorySink()),
        own=Overrides(models=Models(strategist=model)),
    )
    made.begin()
    return made, model


def gathered(rows: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(snapshot, background) of every evaluation that asked a model."""
    shown = [(row.kind, json.loads(row.payload)) for row in rows]
    snapshots = {
        snapshot["snapshot_hash"]: snapshot["snapshot"]
        for kind, snapshot in shown
        if kind == "policy_snapshot"
    }
    return [
        (snapshots[snapshot["snapshot_hash"]], snapshot["background"])
        for kind, snapshot in shown
        if kind == "strategist_background"
    ]


def plain_bars(bars: BarSeries, snapshot: dict[str, Any]) -> list[list[float | None]]:
    """Return, range and volume of the last bars with their ranks, counted one by one."""
    s = bars.symbols.index(snapshot["symbol"])
    now = snapshot["known_at"]
    rows = [t for t in range(bars.shape[0]) if bars.present[t, s] and bars.close_times[t] <= now]
    values = []
    for place, t in enumerate(rows):
        before = rows[place - 1] if place else None
        rise = None if before is None else bars.close[t, s] / bars.close[before, s] - 1.0
        values.append([rise, (bars.high[t, s] - bars.low[t, s]) / bars.close[t, s], float(bars.volume[t, s])])
    window = values[-RANKED_BARS:]
    shown = []
    for bar in values[-SHOWN_BARS:]:
        line: list[float | None] = []
        for column, value in enumerate(bar):
            known = [entry[column] for entry in window if entry[column] is not None]
            others = len(known) - 1
            if value is None:
                line += [None, None]
                continue
            rank = sum((item < value) + 0.5 * (item == value) for item in known) - 0.5
            line += [value, rank / others if others else None]
        shown.append(line)
    return shown


NAMES = tuple(f"{name}{end}" for name in ("close_return", "range_share", "volume") for end in ("", "_rank"))


def test_background_has_the_other_symbols_with_their_regimes_positions_and_exposure() -> None:
    rows = list(agreeing_run()[0].rows)
    messages = [(row.kind, json.loads(row.payload)) for row in rows]
    held: dict[str, str] = {}
    shown = []
    for kind, payload in messages:
        if kind == "entry_filled":
            held[payload["policy_id"]] = payload["direction"]
        elif kind == "exit_filled":
            held.pop(payload["policy_id"], None)
        elif kind == "strategist_background":
            others = payload["background"]["others"]
            positions = [other for other in others if other["position"] is not None]
            shown.append(len(positions))
            assert all((other["exposure"] > 0) == (other["position"] == "long") for other in positions)
            assert all(other["exposure"] == 0.0 for other in others if other["position"] is None)
            assert others[: len(positions)] == positions
            assert len(positions) <= len(held)
    assert max(shown) > 0, "some question is asked while another symbol has a position"
    named = {other["symbol"] for _, background in gathered(rows) for other in background["others"]}
    assert named == {name for s, name in enumerate(BARS.symbols) if BARS.present[:, s].any()}


def test_question_holds_the_symbols_own_last_bars_with_their_ranks() -> None:
    run, model = agreeing_run()
    found = gathered(run.rows)
    assert len(found) > 100
    for snapshot, background in found[::17]:
        wanted = plain_bars(BARS, snapshot)
        bars = background["recent_bars"]
        assert [bar["bars_ago"] for bar in bars] == list(range(len(wanted)))[::-1]
        for bar, line in zip(bars, wanted, strict=True):
            assert [bar[name] for name in NAMES] == pytest.approx(line, rel=1e-5)
    query = model.questions[0].background
    assert query is not None
    assert query["recent_bars"] == {
        name: [bar[name] for bar in found[0][1]["recent_bars"]] for name in ("bars_ago", *NAMES)
    }


def test_question_holds_the_cases_that_a_reflection_on_such_a_plan_retrieves() -> None:
    run, model = agreeing_run()
    cases = {
        (snapshot["symbol"], snapshot["known_at"], episode["playbook_id"], episode["direction"]): episode[
            "memory"
        ]
        for snapshot, background in gathered(run.rows)
        for episode in background["cases"]
    }
    snapshots = {entry["snapshot_hash"]: entry["snapshot"] for entry in run.of("policy_snapshot")}
    proposals = {proposal["proposal_hash"]: proposal["proposal"] for proposal in run.of("policy_proposal")}
    compared = 0
    for row in run.of("policy_reflection"):
        seen, plan = snapshots[row["snapshot_hash"]], proposals.get(row["proposal_hash"])
        if plan is None or row["result"]["memory"] is None:
            continue
        key = (seen["symbol"], seen["known_at"], plan["playbook_id"], plan["direction"])
        assert cases[key] == row["result"]["memory"]
        compared += bool(row["result"]["memory"]["winners"])
    assert compared > 10
    shown = [item for requested in model.questions for item in (requested.background or {}).get("cases", ())]
    assert {tuple(sorted(item)) for item in shown} == {
        ("base_rates", "direction", "failures", "insufficient", "losers", "playbook_id", "winners")
    }
    assert any(item["winners"] for item in shown)


def test_question_holds_what_became_of_the_symbols_last_plans() -> None:
    run, model = agreeing_run()
    check_outcomes(run.rows)
    shown = [
        plan for requested in model.questions for plan in (requested.background or {}).get("last_plans", ())
    ]
    assert {"replaced", "retired", "exit_filled"} <= {plan["became"] for plan in shown}
    assert {trade["reason"] for plan in shown for trade in plan["trades"]} > {"stop"}
    assert any(plan["orders_refused"] or plan["theses_expired"] for plan in shown)


def check_outcomes(rows: Any) -> None:
    """Every plan that is shown is one of the symbol's last ones, with the trades that were closed by then."""
    frozen, trades = defaultdict(list), defaultdict(list)
    for row in rows:
        payload = json.loads(row.payload)
        if row.kind == "policy_frozen":
            frozen[row.symbol].append((row.known_at, payload["policy_id"]))
        elif row.kind == "exit_filled":
            trades[payload["policy_id"]].append((row.known_at, payload["reason"], payload["r"]))
    closed = 0
    for snapshot, background in gathered(rows):
        now, plans = snapshot["known_at"], background["last_plans"]
        # What is frozen at this very close may be of this evaluation: it is told from the next one on.
        before = [name for at, name in frozen[snapshot["symbol"]] if at < now][-LAST:]
        assert [plan["policy_id"] for plan in plans] == before[::-1]
        for plan in plans:
            wanted = [trade for trade in trades[plan["policy_id"]] if trade[0] <= now]
            assert [(trade["closed_at"], trade["reason"], trade["r"]) for trade in plan["trades"]] == wanted
            closed += len(wanted)
    assert closed > 10


def cluster(grade: str, playbook_id: str = "mean_reversion") -> ClusterFinding:
    """One graded cluster with the episodes it rests on."""
    return ClusterFinding(
        playbook_id=playbook_id, regime="up/high", timeframe=None, n=31, blocks=12, mean_r=-0.4,
        reference_r=0.0, e_value=9.0, lower_r=-0.7, upper_r=-0.1, smallest_detectable_r=0.3, alpha=0.1,
        family_id="f", family_size=3, grade=EvidenceGrade(grade), strongest_action=RecommendedAction.HOLD,
        reason="lost beyond doubt", evidence=("e1", "e2"),
    )  # fmt: skip


def test_question_holds_lessons_in_force_and_what_the_last_report_found() -> None:
    made, _ = session()
    background, snapshot = made.policy_loop.background, first_snapshot()
    assert background is not None

    def built() -> DecisionBackground:
        found = background.build(snapshot)
        assert found is not None
        return found

    step_until(made, lambda: made.clock.now >= snapshot.known_at)
    assert (built().findings, built().lessons) == ((), ())
    graded = [cluster(grade) for grade in EvidenceGrade]
    shown = report(request(snapshot.known_at), clusters=tuple(graded))
    made.slow_loop.last_report = shown
    assert [(finding.grade, finding.n, finding.reason) for finding in built().findings] == [
        (EvidenceGrade.SUGGESTIVE, 31, "lost beyond doubt"),
        (EvidenceGrade.SIGNIFICANT, 31, "lost beyond doubt"),
    ]
    made.slow_loop.last_report = shown.model_copy(update={"known_at": snapshot.known_at + 1})
    assert built().findings == ()
    version = made.books.reader.active()[0]
    taught = version.model_copy(update={"report_id": "r", "reason": "lost in up/high", "since": 7})
    made.books.registry._active[version.definition.id] = taught
    assert [(lesson.playbook_id, lesson.reason, lesson.since) for lesson in built().lessons] == [
        (version.definition.id, "lost in up/high", 7)
    ]


def first_snapshot() -> PolicySnapshot:
    return PolicySnapshot.model_validate(gathered(agreeing_run()[0].rows)[0][0])


def step_until(made: Session, reached: Callable[[], bool]) -> None:
    async def driven() -> None:
        timing = Timing()
        while not reached():
            await made.step(timing)

    asyncio.run(driven())


def test_constant_part_holds_the_tolerances_that_the_checks_measure_by() -> None:
    def shown(settings: Settings) -> dict[str, Any]:
        made, model = session(settings)
        step_until(made, lambda: bool(model.requests))
        _, _, rest = model.requests[0]["system"].partition("What every plan is measured by (JSON):\n")
        tolerances: dict[str, Any] = json.loads(rest.partition("\n")[0])
        return tolerances

    before = shown(asking())
    assert before["cost_bps_per_side"] == 7.0
    reflection = ReflectionSettings(conviction_tolerance=0.11, min_reward_to_risk=0.93, max_staleness_bars=5)
    execution = ExecutionSettings(fee_bps=4.0, slippage_bps=2.5, spread_bps=3.0, tick_size=0.25)
    after = shown(asking().model_copy(update={"reflection": reflection, "execution": execution}))
    assert {name: value for name, value in after.items() if before[name] != value} == {
        "conviction_at_most_hit_rate_plus": 0.11,
        "reward_to_risk_after_costs_at_least": 0.93,
        "staleness_bars_at_most": 5,
        "cost_bps_per_side": 6.5,
        "spread_bps": 3.0,
        "tick_size": 0.25,
    }


def test_question_tells_times_in_iso_8601_and_numbers_in_six_digits() -> None:
    _, model = agreeing_run()
    for prompt in [entry["prompt"] for entry in model.requests[::13]]:
        assert not re.search(r"(?<![\w.])\d{15,}", prompt)
        assert not re.search(r"(?<![\w.])\d*\.\d{11,}", prompt)
        requested = question(prompt)
        assert re.fullmatch(r"200\d-\d\d-\d\dT00:00:00Z", requested.snapshot["known_at"])
        floats = [
            number
            for number in numbers([requested.snapshot, requested.background])
            if isinstance(number, float)
        ]
        assert len(floats) > 100
        assert all(float_ == float(f"{float_:.6g}") for float_ in floats)


def numbers(value: Any) -> list[Any]:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return [number for part in parts for number in numbers(part)]
    return [value]


def test_prompt_offers_no_rule_of_the_models_own_and_a_reply_with_one_is_still_read() -> None:
    system = load_prompt("strategist").system
    assert "The rule language" not in system
    assert '"field": "stop"' not in system
    assert "crosses_above(" not in system
    assert '"field": "parameter"' in system
    reply = propose("b", change("stop", "close"))
    assert not isinstance(read_strategist_reply(json.dumps(reply)), ReplyFault)


def test_run_journals_what_a_model_was_shown_and_a_run_by_rules_journals_none() -> None:
    run, model = agreeing_run()
    choices = [entry for entry in model.questions if entry.revision is None and entry.correction is None]
    shown = [background["snapshot_hash"] for _, background in gathered(run.rows)]
    unasked = [row for row in run.of("policy_proposal") if row["fallback"] == "nothing_to_choose"]
    assert len(shown) == len(set(shown)) == len(choices) + len(unasked)
    assert not slice_run().of("strategist_background")
    index = asyncio.run(JournalIndex.read(stream(list(run.rows))))
    assert check_references(index, finished=True).ok


@pytest.mark.parametrize("anonymise", [False, True])
def test_question_is_asked_again_from_the_store_word_for_word(anonymise: bool) -> None:
    run, model = agreeing_run(anonymise)
    index = asyncio.run(JournalIndex.read(stream(list(run.rows))))
    settings = asking(anonymise=anonymise)
    found = read_strategist_questions("r", index, settings)
    assert found.bare == 0
    again = Asked()

    async def ask() -> None:
        for entry in found.requested:
            await entry.ask(again, settings, load_prompt("strategist"))

    asyncio.run(ask())
    first = [entry["prompt"] for entry in model.requests if question(entry["prompt"]).revision is None]
    assert [entry["prompt"] for entry in again.requests] == first
    assert {entry["system"] for entry in again.requests} == {entry["system"] for entry in model.requests}


def test_question_of_a_run_by_rules_is_asked_without_a_background_and_says_so_once() -> None:
    index = asyncio.run(JournalIndex.read(stream(list(slice_run().rows))))
    found = read_strategist_questions("r", index, Settings())
    assert found.bare == len(found.requested) > 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        arms = (StudyArm(load_prompt("strategist"), asking()),)
        print_document(study_document(found, (), arms, ((),), 1), False, study_parts)
    assert printed.getvalue().count(f"without_background {found.bare}") == 1


def late_rows(made: Session) -> list[JournalRow]:
    """Rows of a run in which every evaluation thinks one bar after its boundary, when more is known."""

    async def driven() -> list[JournalRow]:
        timing, waiting = Timing(), list[Evaluation]()
        while not made.engine.done:
            step = made.validate(timing, made.engine.t + 1)
            for evaluation in waiting:
                await made.policy_loop.think(evaluation)
                made.policy_loop.close(evaluation)
            opened = [made.policy_loop.open(boundary) for boundary in step.boundaries]
            waiting = [evaluation for evaluation in opened if evaluation is not None]
        for evaluation in waiting:
            await made.policy_loop.think(evaluation)
            made.policy_loop.close(evaluation)
        made.finish()
        await made.journal.flush()
        rows: list[JournalRow] = made.journal._sink.rows  # type: ignore[attr-defined]
        return rows

    return asyncio.run(driven())


def test_strategist_that_thinks_while_later_bars_come_is_shown_nothing_later_than_its_snapshot() -> None:
    made, model = session()
    rows = late_rows(made)
    assert made.policy_loop.counters.errors == 0
    assert not made.policy_loop.backgrounds, "nothing is kept of an evaluation that is over"
    found = gathered(rows)
    assert len(found) > 100
    for snapshot, background in found:
        moments = [time for time in times(background) if time is not None]
        assert max(moments, default=0) <= snapshot["known_at"]
    for snapshot, background in found[::29]:
        last = plain_bars(BARS, snapshot)[-1]
        assert [background["recent_bars"][-1][name] for name in NAMES] == pytest.approx(last, rel=1e-5)
    check_outcomes(rows)
    for requested in model.questions:
        now = datetime.fromisoformat(requested.snapshot["known_at"])
        assert all(datetime.fromisoformat(time) <= now for time in times(requested.background))


def times(value: Any, name: str = "") -> list[Any]:
    if isinstance(value, dict):
        return [time for key, part in value.items() for time in times(part, key)]
    if isinstance(value, list):
        return [time for part in value for time in times(part, name)]
    shown = name in ("known_at", "since") or name.endswith("_at")
    return [value] if shown and name != "expires_at" else []
