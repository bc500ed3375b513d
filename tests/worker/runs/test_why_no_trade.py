"""A run that did nothing says why: on whole runs, and each cause alone on counters."""

from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from schemas.reflection import Finding, Remedy
from schemas.settings import EnvelopeSettings, PolicyLoopSettings, ReflectionSettings, Settings
from schemas.vocabulary import CheckName, PolicyEventKind, Severity
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.loader import load_playbooks
from services.policy_loop.counters import FindingExample, PolicyCounters
from tests.worker.shared_runs import Run, embedded_bars, fewer_bars, played, run_on, slice_run
from worker.bootstrap import assemble
from worker.cli.runs import _trades
from worker.cli.summary import render
from worker.runs.no_trade_remedies import FINDINGS, REFUSALS
from worker.runs.run_result import RunResult
from worker.runs.why_no_trade import RunFacts, why_no_trade
from worker.session import Timing

TEXTBOOK = Path(__file__).parent / "textbook"
PERIOD = ("2003-01-01", "2004-06-30")
DIP_BUYER = {book.id: book for book in load_playbooks(None)}["trend_pullback"]


def textbook(name: str) -> list[Any]:
    return [book for book in load_playbooks(TEXTBOOK) if book.id == name]


def reasons(run: Run) -> dict[str, int]:
    return {cause["reason"]: cause["count"] for cause in run.document["why_no_trade"]}


def printed(document: dict[str, Any]) -> list[str]:
    console = Console(file=StringIO(), width=60, color_system=None)
    render(document, console)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


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
    told = shown[shown.index("no trade, and what would change it:") + 1 :]
    assert any(line.startswith(f"  {code} {found[code]:,}: {remedy}") for line in told)


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
    bars = embedded_bars("2003-01-01", "2006-06-30")
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
            "kill_switch_on",
            "envelope.kill_switch = false",
        ),
        (
            Settings(envelope=EnvelopeSettings(allowed_playbooks=("another",))),
            "no_playbook",
            "envelope.allowed_playbooks",
        ),
        (
            Settings(policy_loop=PolicyLoopSettings(events=(PolicyEventKind.POSITION_OPENED,))),
            "event_disabled",
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
    assert reasons(run)["setup_never_true"] == run.document["policy_loop"]["frozen"] > 0
    said = "trend_pullback: entry rule true 0 times: no setup of it was ever true: loosen rules.*.setup"
    assert printed(run.document)[1] == said


def test_run_whose_playbook_fits_no_regime_names_the_regimes_that_were():
    eligible = {
        side: part.model_copy(update={"trend": ("up",), "volatility": ("low",), "banned": ("up/low",)})
        for side, part in DIP_BUYER.eligibility.items()
    }
    run = run_on(embedded_bars(*PERIOD), definitions=[DIP_BUYER.model_copy(update={"eligibility": eligible})])
    causes = {cause["reason"]: cause for cause in run.document["why_no_trade"]}
    assert causes["no_eligible_playbook"]["count"] > 100
    assert "/neutral" in causes["no_eligible_playbook"]["remedy"]


def test_runs_list_shows_the_first_reason_beside_no_trades():
    flat = {"performance": {"trades": 0}, "why_no_trade": [{"reason": "warming_up"}]}
    assert _trades(flat) == "0 (warming_up)"
    assert _trades({"performance": {"trades": 7}, "why_no_trade": []}) == "7"
    assert _trades({"performance": {"trades": 0}}) == "0"  # of a run that was stored by an earlier version
    assert _trades({}) == "-"


def facts(**changes: Any) -> RunFacts:
    fields: dict[str, Any] = {
        "run_id": "r", "traded": False, "timeframe": "1d", "bars": {"AAA": 500, "BBB": 500},
        "needed_bars": 120, "policy": counters(), "events": {}, "refused": {}, "entries_blocked": 0,
        "kill_switch": False, "directions": ("long", "short"), "allowed": (), "playbooks": (DIP_BUYER,),
    }  # fmt: skip
    return RunFacts(**fields | changes)


def counters(**changes: Any) -> PolicyCounters:
    made = PolicyCounters(evaluations=10)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def outcome(**counts: int) -> PolicyCounters:
    return counters(outcomes=Counter(counts))


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
        (
            facts(bars={"AAA": 20, "BBB": 500}, policy=outcome(frozen=3)),
            [("setup_never_true", 3), ("warming_up", 20)],
        ),
        (facts(bars={"AAA": 130}, playbooks=textbook("rsi2")), [("rules_warming_up", 130)]),
        (facts(entries_blocked=4), [("entries_blocked", 4)]),
        (facts(events={"envelope_breach": 2}), [("envelope_breach", 2)]),
        (facts(policy=counters(evaluations=0)), [("no_policy_event", 0)]),
        (facts(policy=outcome(stale=5)), [("stale", 5)]),
        (facts(policy=counters(reflections=Counter({"pass": 7}))), [("judge_refused", 7)]),
        (facts(policy=counters(invocations=Counter({"disabled": 7}))), [("judge_refused", 7)]),
        (
            facts(policy=outcome(frozen=3), events={"thesis_armed": 2, "thesis_expired": 2}),
            [("thesis_expired", 2)],
        ),
        (
            facts(policy=outcome(frozen=3), events={"thesis_armed": 1, "invalidation_hit": 1}),
            [("invalidation_hit", 1)],
        ),
        (
            facts(policy=outcome(frozen=3), events={"policy_expired": 3}),
            [("setup_never_true", 3), ("policy_expired", 3)],
        ),
        (facts(policy=outcome(frozen=1), events={"thesis_armed": 1}), [("run_ended", 1)]),
        (
            facts(
                policy=outcome(frozen=1),
                events={"thesis_armed": 1, "activation_triggered": 1, "order_accepted": 1},
            ),
            [("run_ended", 1)],
        ),
        (facts(policy=outcome(abstained=6)), [("strategist_abstained", 6)]),
        (facts(policy=outcome(abstained=6), timeframe="4h", playbooks=()), [("no_playbook", 6)]),
        (
            facts(
                policy=outcome(abstained=6),
                playbooks=(DIP_BUYER.model_copy(update={"timeframes": ("1h",)}),),
            ),
            [("timeframe_not_eligible", 6)],
        ),
        (
            facts(
                policy=outcome(frozen=1),
                events={"thesis_armed": 1, "activation_triggered": 9},
                refused={"unfilled": 2, "halted": 7},
            ),
            [("order_halted", 7), ("order_unfilled", 2)],
        ),
    ],
)  # fmt: skip
def test_why_no_trade_tells_each_cause_apart(found, expected):
    causes = why_no_trade(found)
    assert [(cause["reason"], cause["count"]) for cause in causes] == expected
    assert all(cause["remedy"] for cause in causes)


def test_why_no_trade_orders_findings_by_count_and_gives_the_bounds_of_the_playbook():
    long = Finding(
        check=CheckName.EXPECTATION,
        code="horizon_too_long",
        severity=Severity.MAJOR,
        message="a horizon of 100 bars",
        remedy=Remedy(field="horizon_bars", op="at_most", value=30),
    )
    strange = long.model_copy(update={"code": "of_a_model", "remedy": None})
    policy = counters(
        sent_back_for=Counter({"of_a_model": 1, "horizon_too_long": 9}),
        examples={
            "horizon_too_long": {"trend_pullback": FindingExample("trend_pullback", "long", long)},
            "of_a_model": {"gone": FindingExample("gone", "long", strange)},
        },
    )
    first, second = why_no_trade(facts(policy=policy))
    design = DIP_BUYER.expectation.hold_p90_bars
    assert (first["reason"], first["count"]) == ("horizon_too_long", 9)
    lower = f"lower horizon_bars ({DIP_BUYER.horizon_bars}) to 2 * expectation.hold_p90_bars = "
    assert f"{lower}{2 * design:g}" in first["remedy"]
    seen = "a horizon of 100 bars; horizon_bars at most 30 would settle it"
    assert first["remedy"].endswith(f"(once: {seen})")
    assert second["remedy"] == "see docs/reference/findings.md (once: a horizon of 100 bars)"


@pytest.mark.parametrize(("playbooks", "named"), [(1, 1), (3, 3), (6, 3)])
def test_why_no_trade_remedy_names_each_playbook_that_was_sent_back_and_how_many_more(playbooks, named):
    names = [f"book_{number}" for number in range(playbooks)]
    long = Finding(
        check=CheckName.EXPECTATION, code="horizon_too_long", severity=Severity.MAJOR, message="too long"
    )
    policy = counters(
        sent_back_for=Counter({"horizon_too_long": 9}),
        examples={"horizon_too_long": {name: FindingExample(name, "long", long) for name in names}},
    )
    books = tuple(DIP_BUYER.model_copy(update={"id": name}) for name in names)
    [cause] = why_no_trade(facts(policy=policy, playbooks=books))
    assert [name for name in names if f"playbook {name}: lower horizon_bars" in cause["remedy"]] == names[
        :named
    ]
    assert ("; and 3 more (once: too long)" in cause["remedy"]) == (playbooks == 6)


def test_run_of_two_playbooks_sent_back_for_one_reason_names_both():
    books = [book for book in load_playbooks(TEXTBOOK) if book.id == "donchian"]
    books.append(books[0].model_copy(update={"id": "donchian_too", "title": "Donchian again"}))
    asked = Settings(reflection=ReflectionSettings(min_reward_to_risk=9.0))
    run = run_on(embedded_bars(*PERIOD), asked, definitions=books)
    remedies = {cause["reason"]: cause["remedy"] for cause in run.document["why_no_trade"]}
    both = [remedy for remedy in remedies.values() if "donchian:" in remedy and "donchian_too:" in remedy]
    assert both, remedies


def test_why_no_trade_knows_every_reason_of_the_engine_and_only_findings_that_exist():
    from trading_core.kernel.records import REFUSALS as OF_THE_ENGINE

    page = (Path(__file__).parents[3] / "docs/reference/findings.md").read_text("utf-8")
    assert set(REFUSALS) == set(OF_THE_ENGINE)
    assert [code for code in FINDINGS if f"| `{code}` |" not in page] == []


@pytest.mark.parametrize(("bars", "reason"), [(500, "features_unknown"), (121, "warming_up")])
def test_features_that_stay_unknown_with_bars_enough_are_laid_to_the_prices(bars, reason):
    unknown = counters(evaluations=0, skips=Counter(warming_up=400))
    (cause,) = why_no_trade(facts(bars={"AAA": bars}, policy=unknown, playbooks=()))
    assert (cause["reason"], cause["count"]) == (reason, 400)
    assert ("cannot be computed from its prices" in cause["remedy"]) is (bars == 500)
    assert ("[policy_loop]" in cause["remedy"]) is (bars == 121)


def test_history_before_a_run_is_not_laid_to_the_prices():
    """A paper run that is stopped before its first own bar."""
    session = assemble(Settings(), fewer_bars(*PERIOD), JournalWriter(MemorySink()))
    session.begin()
    played(session, history=True)
    (cause,) = RunResult(session, Timing()).document("r", "memory")["why_no_trade"]
    assert cause["reason"] == "warming_up"
    assert cause["count"] == session.policy_loop.counters.of_history > 0
    assert cause["remedy"] == "bars before the run warm it up and are not traded: let it run on"
