"""A run that did nothing says why: on whole runs, and each cause alone on counters."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schemas.reflection import Finding, Remedy
from schemas.settings import EnvelopeSettings, PolicyLoopSettings, ReflectionSettings, Settings
from schemas.vocabulary import CheckName, EvaluationOutcome, PolicyEventKind, Severity
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.loader import load_playbooks
from services.policy_loop.counters import PolicyCounters
from tests.worker.shared_runs import Run, embedded_bars, fewer_bars, played, run_on, slice_run
from worker.bootstrap import assemble
from worker.cli.runs import _row
from worker.pages.text_parts import text_of
from worker.runs.no_trade_remedies import ENDS, REMEDIES
from worker.runs.run_result import RunResult
from worker.runs.run_text import summary_parts
from worker.runs.signal_lines import WORDS
from worker.runs.why_no_trade import BY_DETAIL, GOES_ON, RunCounts, why_no_trade
from worker.session import Timing

TEXTBOOK = Path(__file__).parent / "textbook"
PERIOD = ("2003-01-01", "2004-06-30")
DIP_BUYER = {book.id: book for book in load_playbooks(None)}["trend_pullback"]


def textbook(name: str) -> list[Any]:
    return [book for book in load_playbooks(TEXTBOOK) if book.id == name]


def reasons(run: Run) -> dict[str, int]:
    return {cause["reason"]: cause["count"] for cause in run.document["why_no_trade"]}


def printed(document: dict[str, Any]) -> list[str]:
    return text_of(summary_parts(document), 60).splitlines()


@pytest.mark.parametrize(
    ("name", "code", "remedy"),
    [
        ("rsi2", "order_reward_to_risk", "move rules.*.target away or .stop nearer, or lower "
        "reflection.min_reward_to_risk"),
    ],
)  # fmt: skip
def test_run_of_a_textbook_playbook_without_a_trade_says_what_refused_its_orders(name, code, remedy):
    run = run_on(embedded_bars(*PERIOD), definitions=textbook(name))
    assert (run.document["performance"]["trades"], run.document["errors"]) == (0, 0)
    found = reasons(run)
    assert found[code] == run.document["signals"]["orders_refused"]["reward_to_risk"]
    assert not {"memory_insufficient", "never_fired"} & set(found)
    shown = printed(run.document)
    message = shown[shown.index("no trade, and what would change it:") + 1 :]
    assert any(line.startswith(f"  {code} {found[code]:,}: {remedy}") for line in message)


def test_run_of_twenty_bars_says_what_the_warm_up_needs():
    bars = embedded_bars("2013-02-01", "2013-02-28")
    run = run_on(bars)
    cause, *_ = run.document["why_no_trade"]
    each = bars.shape[0]
    assert (cause["reason"], cause["count"]) == ("warming_up", bars.bar_count)
    assert f"at most {each} bars, and a symbol needs 120 of its own" in cause["remedy"]
    assert f"give {120 - each} more" in cause["remedy"]
    shown = printed(run.document)
    first = shown.index("no trade, and what would change it:")
    assert shown[first + 1] == f"  warming_up {bars.bar_count}: {cause['remedy']}"


def test_run_warm_up_that_is_asked_for_is_what_the_regime_needs():
    """With so many bars each the policy loop evaluates, with one less it does not."""
    for rows, evaluations in ((119, 0), (125, 1)):
        bars = embedded_bars("2003-01-01", "2004-06-30")
        few = bars.select(bars.symbols, int(bars.times[0]), int(bars.times[rows - 1]))
        assert (run_on(few).document["policy_loop"]["evaluations"] >= 1) is bool(evaluations)


def test_run_with_a_trade_gives_no_reason():
    assert slice_run().document["why_no_trade"] == []
    assert not any(line.startswith("no trade") for line in printed(slice_run().document))


def test_run_with_an_open_position_and_no_closed_trade_gives_no_reason():
    first = slice_run().of("entry_filled")[0]
    bars = embedded_bars("2003-01-01", "2005-10-31")
    run = run_on(bars.select(bars.symbols, int(bars.times[0]), first["bar_label"]))
    assert run.document["performance"]["trades"] == 0
    assert run.document["open_positions"]
    assert run.document["why_no_trade"] == []


def test_run_whose_evaluations_all_fail_names_the_errors(monkeypatch):
    def broken(*args: Any, **named: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr("agents.strategies.rule_strategist.RuleStrategist.answer", broken)
    run = run_on(embedded_bars(*PERIOD))
    cause = run.document["why_no_trade"][0]
    assert (cause["reason"], cause["count"]) == ("error", run.document["policy_loop"]["evaluations"])
    assert "thinktwice journal r --kind error" in cause["remedy"]


@pytest.mark.parametrize(
    ("settings", "reason", "words"),
    [
        (
            Settings(envelope=EnvelopeSettings(kill_switch=True)),
            "kill_switch",
            "envelope.kill_switch = false",
        ),
        (
            Settings(envelope=EnvelopeSettings(allowed_playbooks=("another",))),
            "not_eligible",
            "allowed_playbooks",
        ),
        (
            Settings(policy_loop=PolicyLoopSettings(events=(PolicyEventKind.POSITION_OPENED,))),
            "no_evaluation",
            "policy_loop.events",
        ),
        (
            Settings(reflection=ReflectionSettings(min_reward_to_risk=9.0)),
            "order_reward_to_risk",
            "reflection.min_reward_to_risk",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_run_kept_from_trading_by_a_setting_names_it(settings, reason, words):
    run = run_on(embedded_bars(*PERIOD), settings)
    causes = {cause["reason"]: cause["remedy"] for cause in run.document["why_no_trade"]}
    assert words in causes[reason]


def test_run_with_reflection_off_and_a_setup_that_is_never_true_says_so():
    rules = {side: part.model_copy(update={"setup": "close < 0"}) for side, part in DIP_BUYER.rules.items()}
    book = DIP_BUYER.model_copy(update={"rules": rules})
    run = run_on(embedded_bars(*PERIOD), Settings(reflection=ReflectionSettings(mode="off")), [book])
    first = run.document["why_no_trade"][0]
    text = "no setup of it was ever true: loosen rules.*.setup"
    assert (first["reason"], first["remedy"]) == ("setup_false", f"playbook trend_pullback: {text}")
    assert printed(run.document)[1] == f"trend_pullback: entry rule true 0 times: {text}"


@pytest.mark.parametrize(
    ("exit_rule", "code", "cure"),
    [("bars_held >= 0", "tautology", "narrow"), ("close < close", "unreachable", "loosen")],
)
def test_run_whose_exit_is_always_or_never_true_says_what_to_do_with_it(exit_rule, code, cure):
    rules = {side: part.model_copy(update={"exit": exit_rule}) for side, part in DIP_BUYER.rules.items()}
    run = run_on(embedded_bars(*PERIOD), definitions=[DIP_BUYER.model_copy(update={"rules": rules})])
    causes = {cause["reason"]: cause["remedy"] for cause in run.document["why_no_trade"]}
    assert causes[code].startswith(f"playbook trend_pullback: {cure} the rule of rules.* that is")


def test_run_whose_playbook_fits_no_regime_names_the_labels_that_ruled_its_signals_out():
    eligible = {
        side: part.model_copy(update={"trend": ("up",), "volatility": ("low",), "banned": ("up/low",)})
        for side, part in DIP_BUYER.eligibility.items()
    }
    run = run_on(embedded_bars(*PERIOD), definitions=[DIP_BUYER.model_copy(update={"eligibility": eligible})])
    (part,) = run.document["signals"]["playbooks"]
    causes = {cause["reason"]: cause for cause in run.document["why_no_trade"]}
    assert causes["not_eligible"]["count"] == part["not_met"]["not_eligible"] > 50
    label, count = next(iter(part["because"]["not_eligible"].items()))
    assert "widen [eligibility.*]" in causes["not_eligible"]["remedy"]
    assert f"({label} {count}" in causes["not_eligible"]["remedy"]


def test_runs_list_shows_the_first_reason_beside_no_trades():
    data = {"symbols": ["A"], "timeframe": "1d", "bars": 9}

    def shown(document: dict[str, Any] | None) -> Any:
        record: Any = SimpleNamespace(
            run_id="r0001", status="finished", created_at=0, name="n", data=data, events=1, head_hash="ab",
            document=document, ended_early=None,
        )  # fmt: skip
        return _row(record)["trades"]

    flat = {"performance": {"trades": 0}, "why_no_trade": [{"reason": "warming_up"}]}
    assert shown(flat) == "0 (warming_up)"
    assert shown({"performance": {"trades": 7}, "why_no_trade": []}) == 7
    assert shown(None) == "-"


def facts(**changes: Any) -> RunCounts:
    fields: dict[str, Any] = {
        "run_id": "r", "traded": False, "bars": {"AAA": 500, "BBB": 500}, "needed_bars": 120,
        "signals": signals(), "policy": counters(), "events": {}, "entries_blocked": 0,
    }  # fmt: skip
    return RunCounts(**fields | changes)


def signals(refused: dict[str, int] | None = None, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"playbooks": list(parts), "orders_refused": refused or {}}


def part(never: str | None = None, because: dict[str, Any] | None = None, **not_met: int) -> dict[str, Any]:
    return {"playbook": "dips", "never_true": never, "not_met": not_met, "because": because or {}}


def counters(**changes: Any) -> PolicyCounters:
    made = PolicyCounters(evaluations=10)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


SENT_BACK = part(sent_back=9, because={"sent_back": {"level_unknown": 2, "horizon_too_long": 7}})
UNPLANNED = part(no_policy=6, because={"no_policy": {"abstained": 6}})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (facts(traded=True, bars={"AAA": 0}), []),
        (facts(bars={"AAA": 0, "BBB": 0}), [("no_bars", 2)]),
        (facts(bars={"AAA": 0, "BBB": 20}), [("no_bars", 1), ("warming_up", 20)]),
        (
            facts(bars={"AAA": 0, "BBB": 500}, events={"envelope_breach": 2}),
            [("envelope_breach", 2), ("no_bars", 1)],
        ),
        (facts(signals=signals(None, part("unknown"), part("unknown"))), [("setup_unknown", 0)]),
        (
            facts(signals=signals(None, part("false"), UNPLANNED)),
            [("abstained", 6), ("setup_false", 0)],
        ),
        (facts(entries_blocked=4), [("entries_blocked", 4)]),
        (facts(signals=signals(None, SENT_BACK)), [("horizon_too_long", 7), ("level_unknown", 2)]),
        (facts(signals=signals(None, part(judge_refused=7, in_position=9))), [("judge_refused", 7)]),
        (
            facts(policy=counters(evaluations=0), signals=signals(None, part(warming_up=4))),
            [("features_unknown", 4)],
        ),
        (facts(events={"thesis_armed": 2, "thesis_expired": 2}), [("thesis_expired", 2)]),
        (facts(events={"invalidation_hit": 1}), [("invalidation_hit", 1)]),
        (facts(events={"thesis_armed": 1}), [("run_ended", 0)]),
        (
            facts(events={"activation_triggered": 9}, signals=signals({"halted": 7, "unfilled": 2})),
            [("order_halted", 7), ("order_unfilled", 2)],
        ),
    ],
)  # fmt: skip
def test_why_no_trade_tells_each_cause_apart(found, expected):
    causes = why_no_trade(found)
    assert [(cause["reason"], cause["count"]) for cause in causes] == expected
    assert all(cause["remedy"] for cause in causes)


def test_why_no_trade_shows_the_first_finding_that_sent_a_plan_back_and_what_would_settle_it():
    long = Finding(
        check=CheckName.EXPECTATION,
        code="horizon_too_long",
        severity=Severity.MAJOR,
        message="a horizon of 100 bars",
        remedy=Remedy(field="horizon_bars", op="at_most", value=30),
    )
    found = facts(policy=counters(examples={long.code: long}), signals=signals(None, SENT_BACK))
    first, second = why_no_trade(found)
    seen = "(once: a horizon of 100 bars; horizon_bars at most 30 would settle it)"
    assert first["remedy"] == f"playbook dips: {REMEDIES['horizon_too_long']} {seen}"
    assert second["remedy"] == f"playbook dips: {REMEDIES['level_unknown']}"


def test_run_of_two_playbooks_kept_out_for_one_reason_names_both():
    rules = {side: part.model_copy(update={"stop": "close"}) for side, part in DIP_BUYER.rules.items()}
    books = [DIP_BUYER.model_copy(update={"id": name, "rules": rules}) for name in ("dips", "dips_too")]
    run = run_on(embedded_bars(*PERIOD), definitions=books)
    remedies = [cause["remedy"] for cause in run.document["why_no_trade"]]
    assert any(remedy.startswith("playbook dips, dips_too: ") for remedy in remedies), remedies


def test_why_no_trade_has_a_remedy_for_whatever_stops_a_signal_and_for_findings_that_exist():
    from services.policy_loop.signal_log import ENDED
    from trading_core.kernel.records import REFUSALS

    page = (Path(__file__).parents[3] / "docs/reference/findings.md").read_text("utf-8")
    ends = {*map(str, EvaluationOutcome), *ENDED.values(), "no_evaluation", "halted"}
    stops = ends - {"frozen", "held", "tightened", "filled", "kept_previous", "error"}
    stops |= {*(set(WORDS) - set(GOES_ON) - set(BY_DETAIL)), *ENDS, *(f"order_{code}" for code in REFUSALS)}
    assert stops <= set(REMEDIES)
    codes = set(REMEDIES) - stops - {"abstained", "features_unknown"}
    assert [code for code in codes if f"| `{code}` |" not in page] == []


def test_history_before_a_run_is_not_laid_to_the_market():
    """A paper run that is stopped before its first own bar."""
    session = assemble(Settings(), fewer_bars(*PERIOD), JournalWriter(MemorySink()))
    session.begin()
    session.policy_loop.signals.first_row = fewer_bars(*PERIOD).shape[0]
    played(session, history=True)
    (cause,) = RunResult(session, Timing()).document("r", "memory")["why_no_trade"]
    assert cause["reason"] == "setup_history"
    assert cause["remedy"].endswith("bars before the run warm it up and are not traded: let it run on")
