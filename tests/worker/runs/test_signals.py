"""Where the signals of a run went: every close at which an entry rule was true is accounted for.

The engine is watched row by row beside the account, so that what the account says of a close is compared with
what the state machine was there.
"""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np
import pytest
from markupsafe import Markup

import thinktwice as tt
from schemas.playbook import PlaybookDefinition
from schemas.settings import (
    EnvelopeSettings,
    ExecutionSettings,
    ReflectionSettings,
    Settings,
)
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import PlanKind
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.loader import load_playbooks
from services.playbooks.rendering import render_rules
from services.slow_loop.shadow_ledger import ShadowLedgers
from tests.worker.live.paper_runs import rows_of
from tests.worker.shared_runs import embedded_bars, planted_run, run_on, slice_run
from trading_core.bars import BarSeries
from trading_core.features.columns import FeatureColumns
from trading_core.rules.columns import RuleColumns
from worker.bootstrap import assemble
from worker.feeds.sample_data.worlds import make_world
from worker.live.stepper import BarAxes, LiveStepper
from worker.models import NO_OVERRIDES, Overrides
from worker.pages.text_parts import text_of
from worker.runs.run_result import RunResult
from worker.runs.run_text import summary_parts
from worker.runs.signal_lines import account_lines, count_lost
from worker.session import Session, Timing

BOOKS = {book.id: book for book in load_playbooks(None)}
OFF = Settings(reflection=ReflectionSettings(mode="off"))
BARS = ("2003-01-01", "2004-06-30")


def total(part: dict[str, Any]) -> int:
    return int(part["met"] + sum(part["not_met"].values()))


def account(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {part["playbook"]: part for part in document["signals"]["playbooks"]}


def demand_sums(document: dict[str, Any]) -> None:
    """Every part adds up, and so do its directions and details."""
    for part in document["signals"]["playbooks"]:
        assert part["entry_rule_true"] == total(part)
        for side in part["directions"].values():
            assert side["entry_rule_true"] == total(side)
        for name in ("entry_rule_true", "met"):
            assert part[name] == sum(side[name] for side in part["directions"].values())
        for reason, details in part["because"].items():
            assert sum(details.values()) == part["not_met"][reason]


@dataclass
class Watched:
    """What the engine was at the close of each row, and what it armed there: by (row, symbol)."""

    held: dict[tuple[int, int], str] = field(default_factory=dict)
    plans: dict[tuple[int, int], tuple[str, str] | None] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    armed: Counter[str] = field(default_factory=Counter)


def watched(
    bars: BarSeries, settings: Settings, books: list[PlaybookDefinition], own: Overrides = NO_OVERRIDES
) -> tuple[Watched, Session]:
    """A run taken row by row, with the engine looked at between the bar and what the loops make of it."""
    journal = JournalWriter(MemorySink())
    session, seen = assemble(settings, bars, journal, books, own=own), Watched()
    validate = session.validate

    def look(timing: Timing, end: int | None = None) -> Any:
        loop, before = session.policy_loop, session.engine.state.copy()
        plans = [loop.in_force(s) for s in range(len(bars.symbols))]
        step = validate(timing, session.engine.t + 1)
        row, after = step.t - 1, session.engine.state
        for s in range(len(bars.symbols)):
            waited = before["state"][s] != 0
            closed = before["direction"][s] != 0 or (after["direction"][s] != 0 and waited)
            kept = "in_position" if closed else ""
            if not kept and before["order"][s] == 1 and after["exit_own"][s] == after["own"][s]:
                kept = "in_position"  # entered and left inside this bar
            if not kept and before["state"][s] == 1:
                kept = "armed"
            if not kept and after["state"][s] in (4, 5):
                kept = "cooldown" if after["state"][s] == 4 else "invalidated"
            seen.held[row, s] = kept
            plan = plans[s]
            seen.plans[row, s] = None if plan is None else (plan.playbook_id, plan.proposal.direction)
        for event in step.events:
            if event.kind == "thesis_armed":
                seen.armed[event.detail["playbook_id"]] += 1
        return step

    session.validate = look  # type: ignore[method-assign]

    async def drive() -> None:
        timing = Timing()
        session.begin()
        while not session.engine.done:
            await session.step(timing)
        session.finish()
        await session.models.live.close()

    asyncio.run(drive())
    seen.document = RunResult(session, Timing()).document("r", "memory")
    return seen, session


def limited(book: PlaybookDefinition, **changes: Any) -> PlaybookDefinition:
    return book.model_copy(update=changes)


def always(book: PlaybookDefinition, setup: str, *sides: str) -> PlaybookDefinition:
    """A playbook of these directions with another setup."""
    kept = sides or tuple(book.rules)
    rules = {side: book.rules[side].model_copy(update={"setup": setup}) for side in kept}  # type: ignore[index]
    eligibility = {side: book.eligibility[side] for side in kept}  # type: ignore[index]
    return book.model_copy(update={"rules": rules, "eligibility": eligibility})


PULLBACK, SQUEEZE, REVERSION = (
    BOOKS[name] for name in ("trend_pullback", "squeeze_breakout", "mean_reversion")
)
CASES: dict[str, tuple[Settings, list[PlaybookDefinition]]] = {
    "all playbooks": (Settings(), list(BOOKS.values())),
    "long alone": (Settings(), [always(PULLBACK, PULLBACK.rules["long"].setup, "long")]),
    "short alone": (Settings(), [always(SQUEEZE, SQUEEZE.rules["short"].setup, "short")]),
    "reflection off": (OFF, [PULLBACK, REVERSION]),
    "cooldown": (Settings(envelope=EnvelopeSettings(cooldown_bars=20)), [PULLBACK, SQUEEZE]),
    "no cooldown": (Settings(envelope=EnvelopeSettings(cooldown_bars=0)), [SQUEEZE, REVERSION]),
    "fills at the close": (
        Settings(execution=ExecutionSettings(fill="close"), reflection=ReflectionSettings(mode="off")),
        [SQUEEZE, REVERSION],
    ),
    "no re-entry": (Settings(execution=ExecutionSettings(reentry=False)), [SQUEEZE, PULLBACK]),
    "kill switch": (Settings(envelope=EnvelopeSettings(kill_switch=True)), [PULLBACK, SQUEEZE]),
    "longs alone allowed": (Settings(envelope=EnvelopeSettings(allowed_directions=("long",))), [PULLBACK]),
    "setup always true": (OFF, [always(PULLBACK, "close > 0")]),
    "strict drawdown": (
        Settings(envelope=EnvelopeSettings(max_drawdown=0.01, max_daily_loss=0.005)),
        [SQUEEZE, REVERSION],
    ),
}


@pytest.mark.parametrize(("settings", "books"), CASES.values(), ids=CASES)
def test_signals_of_every_playbook_are_what_the_engine_was_at_their_closes(settings, books):
    bars = embedded_bars(*BARS)
    seen, session = watched(bars, settings, books)
    demand_sums(seen.document)
    columns, warm = RuleColumns(bars, FeatureColumns(bars)), session.market.regimes.trend >= 0
    warm &= np.isfinite(session.market.regimes.fingerprint).all(axis=2)
    for book in books:
        part, expected, signals = account(seen.document)[book.id], Counter[str](), 0
        for side in book.rules:
            for s in range(len(bars.symbols)):
                rows = np.flatnonzero(columns.boolean(render_rules(book, side).setup, s) == 1).tolist()
                signals += len(rows)
                if side not in settings.envelope.allowed_directions:
                    continue
                armed = armed_rows(session, bars.symbols[s], book.id, side)
                rest = [row for row in rows if row not in armed and warm[row, s]]
                expected.update(seen.held[row, s] for row in rest if seen.held[row, s])
                own = [seen.plans[row, s] == (book.id, side) for row in rest if not seen.held[row, s]]
                others = [seen.plans[row, s] for row in rest if not seen.held[row, s]]
                expected["own plan"] += sum(own)
                expected["no plan"] += sum(plan is None for plan in others)
        assert part["entry_rule_true"] == signals
        assert part["met"] == seen.armed[book.id]
        for reason in ("in_position", "armed", "cooldown", "invalidated"):
            assert part["not_met"].get(reason, 0) == expected[reason], reason
        assert "plan_setup_not_true" not in part["not_met"]  # nobody changed a setup here
        over = part["not_met"].get("invalidation_true", 0)
        expired = seen.document["tick_validation"]["events"].get("policy_expired", 0)
        assert over <= expected["own plan"] <= over + expired
        assert part["not_met"].get("no_policy", 0) <= expected["no plan"] + expected["own plan"]


def armed_rows(session: Session, symbol: str, playbook: str, side: str) -> set[int]:
    """Rows at which the journal says that a thesis of this entry rule was armed."""
    found = set()
    for row in session.journal._sink.rows + session.journal._buffer:  # type: ignore[attr-defined]
        if row.kind == "thesis_armed" and row.symbol == symbol:
            payload = json.loads(row.payload)
            if (payload["playbook_id"], payload["direction"]) == (playbook, side):
                found.add(int(np.searchsorted(session.bars.times, payload["bar_label"])))
    return found


class Changed:
    """A strategist of the caller's own: ours, with its answers changed."""

    def __init__(self, ours: Any, change: Any) -> None:
        self._ours, self._change = ours, change

    async def answer(self, snapshot: Any, revision: Any) -> StrategistAnswer:
        return self._change(await self._ours.answer(snapshot, revision))  # type: ignore[no-any-return]


def strategist(change: Any) -> Overrides:
    return Overrides(strategist=lambda ours: Changed(ours, change))


def with_setup(answer: StrategistAnswer, setup: str) -> StrategistAnswer:
    if answer.proposal is None:
        return answer
    return answer.model_copy(update={"proposal": answer.proposal.model_copy(update={"setup": setup})})


def test_signals_of_a_strategist_that_abstains_met_no_policy():
    own = strategist(lambda answer: StrategistAnswer(kind=PlanKind.ABSTAIN, reason="no"))
    seen, _ = watched(embedded_bars(*BARS), Settings(), [PULLBACK], own)
    part = account(seen.document)[PULLBACK.id]
    demand_sums(seen.document)
    assert part["met"] == 0
    assert set(part["not_met"]) == {"no_policy", "not_eligible", "warming_up"}
    assert set(part["because"]["no_policy"]) <= {"abstained", "no_evaluation"}
    assert part["because"]["no_policy"]["abstained"] > 20


def test_signals_under_a_plan_that_asks_for_more_say_so():
    """A strategist of one's own tightens the setup until it is never true."""
    own = strategist(lambda answer: with_setup(answer, "close < 0"))
    seen, _ = watched(embedded_bars(*BARS), OFF, [PULLBACK], own)
    demand_sums(seen.document)
    part = account(seen.document)[PULLBACK.id]
    assert part["met"] == 0
    assert part["not_met"]["plan_setup_not_true"] > 20
    assert not {"armed", "in_position", "sent_back"} & set(part["not_met"])


def test_signals_of_plans_that_are_sent_back_name_the_finding():
    """The stop of every proposal lies above its entry."""

    def upside_down(answer: StrategistAnswer) -> StrategistAnswer:
        if answer.proposal is None:
            return answer
        return answer.model_copy(
            update={"proposal": answer.proposal.model_copy(update={"stop": "close * 2"})}
        )

    book = always(PULLBACK, PULLBACK.rules["long"].setup, "long")
    seen, _ = watched(embedded_bars(*BARS), Settings(), [book], strategist(upside_down))
    demand_sums(seen.document)
    part = account(seen.document)[book.id]
    assert part["met"] == 0
    assert part["because"]["sent_back"] == {"rules_differ_from_playbook": part["not_met"]["sent_back"]}
    assert part["not_met"]["sent_back"] > 20
    assert seen.document["policy_loop"]["sent_back_for"]["stop_on_wrong_side"] > 20


def test_signals_of_a_base_that_cannot_pass_name_the_finding_that_kept_it_back():
    book = always(PULLBACK, PULLBACK.rules["long"].setup, "long")
    settings = Settings(reflection=ReflectionSettings(min_reward_to_risk=9.0))
    rules = {"long": book.rules["long"].model_copy(update={"target": "close + 0.1 * atr_14"})}
    document = run_on(embedded_bars(*BARS), settings, [book.model_copy(update={"rules": rules})]).document
    demand_sums(document)
    part = account(document)[book.id]
    assert part["because"]["sent_back"] == {"reward_to_risk_too_low": part["not_met"]["sent_back"]}
    assert document["policy_loop"]["sent_back_for"] == {}, "nothing was proposed, so nothing was sent back"
    assert document["signals"]["orders_refused"]["reward_to_risk"] > 0


def test_signals_under_the_kill_switch_are_blocked_and_nothing_else():
    document = run_on(embedded_bars(*BARS), CASES["kill switch"][0], [PULLBACK]).document
    part = account(document)[PULLBACK.id]
    assert (part["met"], document["performance"]["trades"]) == (0, 0)
    assert set(part["not_met"]) <= {"blocked", "warming_up", "no_policy", "not_eligible"}
    assert part["because"]["blocked"] == {"kill_switch": part["not_met"]["blocked"]}
    assert part["not_met"].get("no_policy", 0) <= 5  # before the first evaluation of each symbol


@pytest.mark.parametrize(
    ("settings", "changes", "detail"),
    [
        (Settings(), {"enabled": False}, "enabled"),
        (Settings(), {"timeframes": ("1h",)}, "timeframes"),
        (
            Settings(envelope=EnvelopeSettings(allowed_playbooks=("squeeze_breakout",))),
            {},
            "allowed_playbooks",
        ),
        (Settings(envelope=EnvelopeSettings(allowed_directions=("short",))), {}, "allowed_directions"),
        (Settings(envelope=EnvelopeSettings(allowed_symbols=("IBM",))), {}, "allowed_symbols"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_signals_that_a_setting_rules_out_name_it(settings, changes, detail):
    bars = embedded_bars(*BARS).select(("AAPL",))
    book = always(PULLBACK, PULLBACK.rules["long"].setup, "long").model_copy(update=changes)
    document = run_on(bars, settings, [book, SQUEEZE]).document
    part = account(document)[book.id]
    assert part["entry_rule_true"] == part["not_met"]["not_eligible"] > 0
    assert part["because"] == {"not_eligible": {detail: part["entry_rule_true"]}}


def test_signals_in_regimes_outside_of_the_playbook_name_the_label():
    eligible = {"long": PULLBACK.eligibility["long"].model_copy(update={"trend": ("up",), "banned": ()})}
    book = PULLBACK.model_copy(update={"eligibility": eligible, "rules": {"long": PULLBACK.rules["long"]}})
    document = run_on(embedded_bars(*BARS), definitions=[always(book, "close > 0", "long")]).document
    demand_sums(document)
    labels = account(document)[book.id]["because"]["not_eligible"]
    assert {"trend down", "trend sideways"} <= set(labels)
    assert "trend up" not in labels


def test_signals_follow_the_version_that_is_active():
    """A candidate with another value is promoted: from then on its entry rule counts."""
    run = planted_run()
    demand_sums(run.document)
    bars, columns = run.result.bars, RuleColumns(run.result.bars)
    expected, symbols = Counter[str](), range(len(bars.symbols))
    active: dict[str, list[Any]] = {}
    for payload in run.of("playbook_version"):
        active.setdefault(payload["definition"]["id"], []).append(payload)
    versions = {len(found) for found in active.values()}
    assert max(versions) > 1, "no version has changed, so nothing is shown"
    for name, found in active.items():
        edges = [0, *np.searchsorted(bars.close_times, [payload["since"] for payload in found[1:]], "right")]
        live = None
        for payload, begin, end in zip(found, edges, [*edges[1:], bars.shape[0]], strict=True):
            if payload["state"] == "active":
                live = payload["definition"]
            elif payload["definition"] == live:
                live = None
            if live is not None:
                definition = PlaybookDefinition.model_validate(live)
                setups = [render_rules(definition, side).setup for side in definition.rules]
                parts = [columns.boolean(setup, s)[begin:end] for setup in setups for s in symbols]
                expected[name] += sum(int((part == 1).sum()) for part in parts)
    assert {name: part["entry_rule_true"] for name, part in account(run.document).items()} == expected


def test_signals_of_a_setup_that_is_never_true_are_none():
    document = run_on(embedded_bars(*BARS), OFF, [always(PULLBACK, "close < 0")]).document
    part = account(document)[PULLBACK.id]
    assert (part["entry_rule_true"], part["met"], part["not_met"]) == (0, 0, {})
    assert (part["never_true"], part["rules_alone_trades"]) == ("false", 0)
    lines = account_lines(document)
    assert lines == [
        "trend_pullback: entry rule true 0 times: no setup of it was ever true: loosen rules.*.setup"
    ]


def silent(bars: BarSeries) -> BarSeries:
    return replace(bars, volume=np.where(bars.present, 0.0, np.nan))


def test_signals_of_bars_without_volume_are_laid_to_it():
    bars = silent(embedded_bars(*BARS).select(("AAPL",)))
    books = [always(PULLBACK, "volume > 1.0"), always(SQUEEZE, "close > 0")]
    document = run_on(bars, Settings(), books).document
    demand_sums(document)
    parts = account(document)
    assert parts[PULLBACK.id]["never_true"] == "volume_is_zero"
    assert parts[SQUEEZE.id]["never_true"] is None
    first = account_lines(document)[0]
    assert (
        first == "trend_pullback: entry rule true 0 times: its setup reads volume, and volume is 0 everywhere"
    )


def test_signals_of_one_bar_are_warming_up():
    bars = embedded_bars(*BARS).select(("AAPL",))
    one = bars.select(end_ns=int(bars.times[0]))
    document = run_on(one, Settings(), [always(PULLBACK, "close > 0", "long"), REVERSION]).document
    parts = account(document)
    assert parts[PULLBACK.id]["not_met"] == {"warming_up": 1}
    assert parts[REVERSION.id]["never_true"] == "unknown"
    assert account_lines(document)[0].startswith(
        "mean_reversion: entry rule true 0 times: its setup could be"
    )


def test_signals_of_a_symbol_that_starts_late_begin_with_its_bars():
    bars = embedded_bars(*BARS).select(("AAPL", "IBM"))
    present = bars.present.copy()
    present[:200, 0] = False
    columns: dict[str, Any] = {
        name: np.where(present, getattr(bars, name), np.nan)
        for name in ("open", "high", "low", "close", "volume")
    }
    late = replace(bars, present=present, **columns)
    book = always(PULLBACK, "close > 0", "long")
    seen, _ = watched(late, Settings(), [book])
    demand_sums(seen.document)
    part = account(seen.document)[book.id]
    assert part["entry_rule_true"] == int(present.sum())
    assert part["not_met"]["warming_up"] >= 2 * 100


def test_signals_of_minute_bars_add_up_and_are_what_the_engine_was():
    bars = make_world("reverting", seed=2, bars=1_500, symbols=2, timeframe="1m")
    books = [PULLBACK, SQUEEZE, REVERSION]
    seen, _ = watched(bars, Settings(), books)
    demand_sums(seen.document)
    assert sum(seen.armed.values()) == sum(part["met"] for part in account(seen.document).values())


def test_signals_on_history_before_a_run_do_not_count():
    bars = embedded_bars(*BARS).select(("AAPL", "IBM"))
    book = always(PULLBACK, "close > 0", "long")
    journal = JournalWriter(MemorySink())
    stepper = LiveStepper(
        Settings(), BarAxes(bars.symbols, bars.timeframe, bars.label), journal, lock_step=True,
        ask=lambda evaluation: None, definitions=[book],
    )  # fmt: skip

    async def drive() -> None:
        for number, row in enumerate(rows_of(bars)):
            await stepper.take(replace(row, history=number < 250))

    asyncio.run(drive())
    document = RunResult(stepper.session, Timing()).document("r", "memory")
    demand_sums(document)
    assert account(document)[book.id]["entry_rule_true"] == int(bars.present[250:].sum())


def test_signals_of_rules_alone_are_the_trades_of_a_ledger_beside_the_account():
    run = slice_run()
    session = run.result.session
    ledgers = ShadowLedgers(session.market, session.settings.execution, session.settings.envelope)
    for name, part in account(run.document).items():
        ledger = ledgers.open(BOOKS[name], tuple(BOOKS[name].rules), 0)
        assert part["rules_alone_trades"] == len(ledger.advance(run.result.bars.shape[0])) > 0


def test_signals_are_told_first_in_the_summary_the_page_and_the_printed_result(tmp_path):
    result = tt.backtest(start="2009-01-01", end="2009-12-31")
    document = result.document
    lines = account_lines(document)
    assert len(lines) == len(BOOKS) + 2  # what followed, and a warning: five playbooks share each symbol
    shown = text_of(summary_parts(document), 60).splitlines()
    assert shown[: len(lines)] == lines
    assert repr(result).splitlines()[: len(lines)] == lines
    assert result._repr_html_().startswith(f"<p>{escape(lines[0])}</p>")
    result.to_html(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text("utf-8")
    places = [page.index(str(Markup.escape(line))) for line in lines]
    assert [places[-1], *places[:-1]] == sorted(places)  # the last stands for all where they are folded
    assert max(places) < page.index("buy and hold")


def part_of(met: int, **not_met: int) -> dict[str, Any]:
    return {
        "playbook": "p", "entry_rule_true": met + sum(not_met.values()), "met": met, "not_met": not_met,
        "because": {}, "directions": {}, "never_true": None, "rules_alone_trades": 30,
    }  # fmt: skip


def document_of(*parts: dict[str, Any], refused: int = 2) -> dict[str, Any]:
    events = {"thesis_armed": sum(part["met"] for part in parts), "entry_filled": 1}
    return {
        "signals": {
            "playbooks": list(parts),
            "orders_refused": {"reward_to_risk": refused, "unfilled": 30} if refused else {},
        },
        "tick_validation": {"events": events},
    }


def test_signals_of_the_issue_are_said_as_it_asks():
    part = part_of(20, no_policy=31, in_position=9, sent_back=6)
    part["because"] = {"sent_back": {"invalidation_already_true": 4, "level_unknown": 2}}
    first, second, third = account_lines(document_of(part))
    assert first == (
        "p: entry rule true 66 times: 20 met a plan, 46 did not: no policy in force 31, sent back 6 "
        "(invalidation already true 4, level unknown 2), in a position 9; "
        "its rules alone, with reflection off: 30 trades"
    )
    assert (
        second == "of 20 signals that met a plan: filled 1, orders refused 32 (unfilled 30, reward_to_risk 2)"
    )
    assert third == "under half of the signals that could have traded met a plan: p 20 of 57"


@pytest.mark.parametrize(
    ("part", "warned"),
    [
        (part_of(1, in_position=500), False),
        (part_of(1, armed=300, cooldown=20, warming_up=100, not_eligible=90), False),
        (part_of(10, no_policy=10), False),
        (part_of(10, no_policy=11), True),
        (part_of(0, blocked=1), True),
    ],
)
def test_signals_warn_where_under_half_of_those_that_could_trade_met_a_plan(part, warned):
    assert (
        any(line.startswith("under half") for line in account_lines(document_of(part, refused=0))) is warned
    )
    assert count_lost(part) == sum(part["not_met"].get(name, 0) for name in ("no_policy", "blocked"))


@pytest.mark.parametrize(("refused", "warned"), [(3, False), (4, True)])
def test_signals_warn_where_orders_were_refused_for_good_and_not_where_they_were_taken_back(refused, warned):
    lines = account_lines(document_of(part_of(10, no_policy=4), refused=refused))
    assert (
        "under half of the signals that could have traded met a plan whose order stood: 6 of 14" in lines
    ) is warned


def test_snapshots_count_plans_by_entry_rule_and_how_many_of_them_met_their_setup():
    plans: dict[str, tuple[str, str]] = {}
    frozen: dict[str, tuple[str, str]] = {}  # on this row, at which every snapshot was taken before
    armed: set[str] = set()
    seen = at = 0
    for row in slice_run().rows:
        payload = json.loads(row.payload)
        if row.ts_event > at:
            plans, frozen, at = plans | frozen, {}, row.ts_event
        if row.kind == "policy_frozen":
            policy = payload["policy"]
            frozen[payload["policy_id"]] = policy["playbook_id"], policy["proposal"]["direction"]
        elif row.kind == "thesis_armed":
            armed.add(payload["policy_id"])
        elif row.kind == "policy_snapshot":
            fields = {
                (count["playbook_id"], count["direction"]): (count["plans"], count["armed"])
                for count in payload["snapshot"]["setups"]
            }
            tried = Counter(plans.values())
            met = Counter(rule for policy, rule in plans.items() if policy in armed)
            assert fields == {rule: (number, met[rule]) for rule, number in tried.items()}
            seen += bool(fields)
    assert seen > 100
    assert len(armed) < len(plans)
