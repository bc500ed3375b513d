"""Plans whose rules are those of a strategist in Python: held to the envelope and to themselves alone."""

import json
from typing import Any

import pytest

import thinktwice as tt
from schemas.vocabulary import PlanKind, Trend, VolatilityBand
from services.high_level.hypotheses import declared_hypotheses
from services.journal.consolidations import recorded_consolidations
from services.playbooks.loader import load_playbooks
from tests.worker.wire import AGREES

YEAR: dict[str, Any] = {"start": "2003-01-01", "end": "2003-12-31", "symbols": ("AAPL", "IBM")}
RULES: dict[str, Any] = {
    "playbook_id": "own_break",
    "direction": "long",
    "thesis": "Strength goes on.",
    "setup": "close > highest_20",
    "activation_window_bars": 0,
    "stop": "lowest_10",
    "exit": "close < lowest_10",
    "horizon_bars": 100,
    "conviction": 0.45,
}
CELLS = len(Trend) * len(VolatilityBand)


class Break:
    """Proposes its own rules; `first` are those that it proposes before it is sent back."""

    reads = ("highest_20", "lowest_10 - 0 * close")

    def __init__(self, first: dict[str, Any] | None = None, **rules: Any) -> None:
        self.rules = RULES | rules
        self.first = self.rules | (first or {})
        self.revisions: list[Any] = []

    async def answer(self, snapshot, revision):
        if snapshot.position is not None:
            return tt.StrategistAnswer(kind=PlanKind.HOLD, reason="its exits are in charge", model="break")
        if revision is not None:
            self.revisions.append(revision)
        plan = tt.PolicyProposal(**(self.first if revision is None else self.rules))
        return tt.StrategistAnswer(
            kind=PlanKind.PROPOSE, reason="a break may come", proposal=plan, model="break"
        )


class Half(Break):
    """Its own rules for one symbol, ours for the other."""

    def __init__(self, ours: tt.Strategist) -> None:
        super().__init__()
        self.ours = ours

    async def answer(self, snapshot, revision):
        if snapshot.symbol == "AAPL":
            return await super().answer(snapshot, revision)
        return await self.ours.answer(snapshot, revision)


def payloads(result: tt.BacktestResult, kind: str) -> list[dict[str, Any]]:
    return [json.loads(row.payload) for row in result.rows if row.kind == kind]


@pytest.fixture(scope="module")
def halves() -> tt.BacktestResult:
    return tt.backtest(start="2003-01-01", end="2006-12-31", symbols=("AAPL", "IBM"), strategist=Half)


def test_plans_with_own_rules_trade_and_the_run_replays(halves, tmp_path):
    own = halves.trades.query("playbook_id == 'own_break'")
    assert set(own["symbol"]) == {"AAPL"}
    assert len(own) > 5
    assert set(own["exit_reason"]) <= {"exit_rule", "stop", "time_stop"}
    assert halves.document["errors"] == 0
    frozen = [row["policy"] for row in payloads(halves, "policy_frozen")]
    assert {policy["playbook_hash"] == "" for policy in frozen if policy["symbol"] == "AAPL"} == {True}
    assert all(policy["playbook_hash"] for policy in frozen if policy["symbol"] == "IBM")
    assert halves.verify()
    assert "own rules, own_break" in str(halves.why(own["fill_id"].iloc[0]))
    address = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    kept = tt.load(halves.save(address), db=address)
    assert kept.head_hash == halves.head_hash
    halves.to_html(tmp_path / "run.html")
    assert "own_break" in (tmp_path / "run.html").read_text("utf-8")
    for shown in (tt.ask.playbooks(db=address), tt.ask.gate(db=address), tt.ask.trades(db=address)):
        assert shown.text


def test_own_plans_have_a_cell_of_their_own_in_memory_and_expectations(halves):
    traded = {"own_break": 0}
    for row in halves.rows:
        payload = json.loads(row.payload)
        if row.kind == "episode":
            name = payload["episode"]["playbook_id"]
            traded[name] = traded.get(name, 0) + 1
        elif row.kind == "policy_snapshot":
            known = {seen["playbook_id"]: seen["n"] for seen in payload["snapshot"]["expectations"]}
            assert {name: n for name, n in known.items() if n} == {k: n for k, n in traded.items() if n}
    cases: dict[str, set[str]] = {}
    proposals = {row["proposal_hash"]: row["proposal"] for row in payloads(halves, "policy_proposal")}
    for row in payloads(halves, "policy_reflection"):
        plan, memory = proposals[row["proposal_hash"]], row["result"].get("memory")
        if plan is not None and memory is not None:
            seen = {case["playbook_id"] for case in (*memory["winners"], *memory["losers"])}
            cases.setdefault(plan["playbook_id"], set()).update(seen)
    assert cases["own_break"] == {"own_break"}
    assert all(seen <= {name} for name, seen in cases.items())


def test_own_plans_have_clusters_and_members_of_the_family_of_their_own(halves):
    report = payloads(halves, "high_level_report")[-1]["report"]
    clusters = [found for found in report["clusters"] if found["playbook_id"] == "own_break"]
    assert clusters
    assert max(found["n"] for found in clusters) > 5
    declared = len(declared_hypotheses(load_playbooks(None), ["1d"]))
    assert {found["family_size"] for found in clusters} == {declared + 1 + CELLS}
    changed = {item["playbook_id"] for item in report["recommendations"] if item["change"]}
    assert "own_break" not in changed


def test_signals_of_own_plans_are_counted_while_one_is_in_force(halves):
    (part,) = (found for found in halves.document["signals"]["playbooks"] if found["playbook"] == "own_break")
    armed = [row for row in payloads(halves, "thesis_armed") if row["playbook_id"] == "own_break"]
    assert part["met"] == len(armed) > 5
    assert part["met"] + sum(part["not_met"].values()) == part["entry_rule_true"]
    assert "own_break: entry rule true" in repr(halves)


def test_own_plan_at_more_risk_than_the_cap_trades_at_the_cap():
    quantities = {}
    for risk in (0.0025, 0.005, 0.02, 0.5):
        result = tt.backtest(**YEAR, strategist=Break(risk_fraction=risk))
        quantities[risk] = payloads(result, "entry_filled")[0]["quantity"]
        over = set(result.findings.query("code == 'risk_fraction_over_cap'")["severity"])
        assert over == ({"minor"} if risk > 0.01 else set())
        clamped = {clamp for row in payloads(result, "order_clamped") for clamp in row["clamps"]}
        assert ("risk_cap" in clamped) is (risk > 0.005)
        assert result.document["errors"] == 0
    assert quantities[0.5] == quantities[0.02] == quantities[0.005]
    assert quantities[0.005] == pytest.approx(2 * quantities[0.0025])


@pytest.mark.parametrize(
    ("mode", "rules", "reason", "remedy"),
    [
        ("off", {"setup": "close > 9 * highest_20"}, "setup_not_in_force", "playbook own_break: no setup of"),
        (
            "deterministic",
            {"setup": "close > high + 1"},
            "unreachable",
            "plans of the strategist: loosen the rule of rules.* that is never true",
        ),
    ],
)
def test_run_of_own_plans_without_a_trade_speaks_of_these_alone(mode, rules, reason, remedy):
    result = tt.backtest(**YEAR, strategist=Break(**rules), reflection=mode)
    causes = {cause["reason"]: cause["remedy"] for cause in result.document["why_no_trade"]}
    assert causes[reason].startswith(remedy)
    assert not any(book.id in remedy for remedy in causes.values() for book in load_playbooks(None))


def test_run_whose_own_strategist_proposes_nothing_says_so():
    class Silent(Break):
        async def answer(self, snapshot, revision):
            return tt.StrategistAnswer(kind=PlanKind.ABSTAIN, reason="no")

    result = tt.backtest(**YEAR, strategist=Silent())
    (cause,) = result.document["why_no_trade"]
    assert (cause["reason"], cause["count"]) == ("abstained", result.document["policy_loop"]["evaluations"])


def test_own_plan_outside_the_allowed_playbooks_is_blocked_and_one_of_them_trades():
    refused = tt.backtest(**YEAR, strategist=Break(), envelope__allowed_playbooks=("trend_pullback",))
    assert refused.summary["trades"] == 0
    assert set(refused.findings["code"]) == {"playbook_not_allowed"}
    allowed = tt.backtest(**YEAR, strategist=Break(), envelope__allowed_playbooks=("own_break",))
    assert allowed.summary["trades"] > 0


def test_own_plan_is_sent_back_by_its_own_trades_not_by_a_prior_that_nobody_wrote():
    result = tt.backtest(**YEAR, strategist=Break(horizon_bars=3))
    short = result.findings.query("code == 'horizon_too_short'")
    assert set(short["severity"]) == {"minor"}
    assert result.summary["trades"] > 0


@pytest.mark.parametrize("mode", ["deterministic", "off"])
@pytest.mark.parametrize(
    ("first", "message"),
    [
        ({"exit": None}, "plan 'own_break', rules.long: give a way out beside the stop: target"),
        ({"setup": "close > {n}"}, "plan 'own_break': {n} is not a declared parameter"),
        (
            {"playbook_id": "break", "target": "2 * close"},
            "playbook_id 'break' is no active playbook (channel_breakout, mean_reversion, "
            "momentum_continuation, squeeze_breakout, trend_pullback): name one, or 'own_break' for",
        ),
        (
            {"playbook_id": "trend_pullback", "risk_fraction": 0.01, "target": "2 * close"},
            "risk_fraction 0.01 of a plan by 'trend_pullback': leave it out, or give the plan rules of its",
        ),
    ],
)
def test_own_plan_that_nothing_can_hold_is_sent_back_with_one_line(mode, first, message):
    own = Break(first)
    result = tt.backtest(**YEAR, strategist=own, reflection=mode)
    (found,) = own.revisions[0].findings
    assert found.message.startswith(message)
    assert "\n" not in found.message
    assert result.document["policy_loop"]["sent_back_for"]["plan_unusable"] > 0
    assert result.document["errors"] == 0
    assert result.summary["trades"] > 0  # what it proposed then


@pytest.mark.parametrize(
    ("first", "code", "message"),
    [
        ({"stop": "lowest_10 +"}, "rule_invalid", "rule 'lowest_10 +', column 12: the rule ends where"),
        ({"stop": "close + 5"}, "stop_on_wrong_side", "the stop 'close + 5' never lies below the close"),
        (
            {"stop": "close - atr_50"},
            "level_unknown",
            "the stop 'close - atr_50' is unknown on this snapshot, which has no atr_50: name it in `reads`",
        ),
    ],
)
def test_own_plan_that_its_own_rules_contradict_is_sent_back(first, code, message):
    own = Break(first)
    result = tt.backtest(**YEAR, strategist=own)
    found = {finding.code: finding for finding in own.revisions[0].findings}[code]
    assert found.message.startswith(message)
    assert result.summary["trades"] > 0


def test_own_plan_whose_name_a_playbook_has_is_held_to_that_playbook():
    rules = {"setup": "close > sma_20", "stop": "close - atr_14", "target": "close + 2 * atr_14"}
    own = Break({"playbook_id": "own_taken"})
    result = tt.backtest(**YEAR, playbooks=tt.Playbook("own_taken", long=rules), strategist=own)
    (first, *_) = own.revisions[0].findings
    assert first.code == "rules_differ_from_playbook"
    assert (
        "the name 'own_taken' is taken by a playbook: a plan with its own rules needs another"
        in first.message
    )
    assert result.summary["trades"] > 0


def test_strategist_that_reads_what_the_bars_do_not_have_is_refused_before_the_run():
    own = Break()
    own.reads = ("highest_20", "x.funding")
    with pytest.raises(tt.ConfigError, match=r"reads of the strategist: .*funding"):
        tt.backtest(**YEAR, strategist=own)


class Agreeing:
    """A model that has nothing against any plan."""

    name = "mine"

    def complete(self, *, system, prompt, max_tokens, deadline_ms):
        return tt.ModelReply(json.dumps(AGREES), "mine-1", input_tokens=7, output_tokens=3, latency_ms=1.0)


@pytest.mark.usefixtures("over_the_cap")
@pytest.mark.filterwarnings("ignore:playbook .* is above the cap:UserWarning")
def test_own_plan_that_a_model_was_asked_about_can_be_asked_about_again():
    weeks = YEAR | {"end": "2003-08-31"}
    result = tt.backtest(**weeks, strategist=Break(), model=Agreeing(), reflection="full")
    answered = recorded_consolidations(result.index).answered
    assert {found.request.playbook.id for found in answered} == {"own_break"}
    assert {found.request.playbook.rules["long"].setup for found in answered} == {RULES["setup"]}
    assert result.verify()
