"""Candidates that begin one after the other share one level, and a promotion gives to those after it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from schemas.episode import Episode
from schemas.settings import GateSettings, JudgeSettings, Settings
from schemas.slow_reflection import OpenEntry
from services.playbooks.measures import RISK, Measure, alter
from services.slow_loop.shadow_trials import ShadowTrials
from services.slow_loop.trial_evidence import paired_evidence
from tests.services.high_level.builders import DAY_NS, START, episode, playbook

BOOK = playbook("pullback")
OVER = START + 7 * 200 * DAY_NS  # a look at which every week of a ledger is over


class Paper:
    """A ledger whose trades, one a week, are given; it hands them out at its first advance."""

    open_since = None

    def __init__(self, outcomes: list[float]) -> None:
        weeks = [START + 7 * k * DAY_NS for k in range(len(outcomes))]
        self.episodes = [
            episode(BOOK, number=k, r=r, exit_label=weeks[k], entry_label=weeks[k])
            for k, r in enumerate(outcomes)
        ]

    def advance(self, until: int) -> tuple[Any, ...]:
        return ()


class Ledgers:
    """Opens one `Paper` per version."""

    def __init__(self, outcomes: dict[str, list[float]]) -> None:
        self.outcomes = outcomes
        bars = SimpleNamespace(close_times=np.arange(100) * DAY_NS + START, timeframe="1d")
        self.market = SimpleNamespace(bars=bars)

    def open(self, definition: Any, directions: Any, start_row: int, regime_key: str | None = None) -> Paper:
        return Paper(self.outcomes.get(definition.id, []))


class Lifecycle:
    """Versions in shadow, as given; what was promoted or retired leaves it."""

    def __init__(self) -> None:
        self.open: list[Any] = []
        self.cuts: list[Any] = []
        self.begun: list[str] = []
        self.promoted: list[str] = []
        self.retired: list[str] = []
        self.incumbent = 99  # its horizon, in bars
        self.banned: tuple[str, ...] = ()

    def active(self, playbook_id: str) -> Any:
        """The incumbent of every candidate: other rules, and a ledger without a trade."""
        made = playbook("incumbent", horizon_bars=self.incumbent)
        eligibility = {side: alter(item, banned=self.banned) for side, item in made.eligibility.items()}
        return alter(made, eligibility=eligibility)

    def begin(self, name: str, kind: str = "candidate", since: int = START) -> None:
        facts: dict[str, Any] = {"version_hash": name, "kind": kind, "since": since, "expires_at": OVER}
        facts["definition"] = playbook(name, horizon_bars=20 + len(self.begun))
        self.begun.append(name)
        self.open.append(SimpleNamespace(**facts, regime_key=None, directions=("long",)))

    def shadows(self) -> tuple[Any, ...]:
        return tuple(self.open)

    def risk_cuts(self) -> tuple[Any, ...]:
        return tuple(self.cuts)

    def _leave(self, name: str, into: list[str]) -> tuple[str]:
        self.open = [item for item in self.open if item.version_hash != name]
        into.append(name)
        return (name,)

    def promote(self, name: str, evidence: Any, now: int) -> tuple[str]:
        return self._leave(name, self.promoted)

    def retire(self, name: str, evidence: Any, now: int) -> tuple[str]:
        return self._leave(name, self.retired)


def trials(lifecycle: Lifecycle, **outcomes: list[float]) -> ShadowTrials:
    made: Any = ShadowTrials
    context = SimpleNamespace(settings=Settings(), events=None)
    return made(context, Ledgers(outcomes), lifecycle, lambda row, now: None)  # type: ignore[no-any-return]


def needed(shadow: ShadowTrials) -> dict[str, Any]:
    bans = {name: evidence for (name, _), evidence in shadow.measured.items() if name == "ban"}
    return {name: evidence.get("e_needed") for name, evidence in (shadow.shown | bans).items()}


def test_candidates_need_more_the_later_they_begin():
    lifecycle = Lifecycle()
    shadow = trials(lifecycle)
    for name in ("first", "second", "third"):
        lifecycle.begin(name)
        shadow.step(10, OVER)
    assert needed(shadow) == {"first": 40.0, "second": 120.0, "third": 240.0}


def test_candidate_keeps_its_level_and_its_number_when_others_leave():
    lifecycle = Lifecycle()
    shadow = trials(lifecycle)
    lifecycle.begin("first")
    lifecycle.begin("second")
    shadow.step(10, OVER)
    lifecycle.open = lifecycle.open[1:]
    lifecycle.begin("third")
    shadow.step(11, OVER)
    assert needed(shadow) == {"second": 120.0, "third": 240.0}


def test_promotion_leaves_more_to_the_candidates_that_begin_after_it():
    lifecycle = Lifecycle()
    shadow = trials(lifecycle, proven=[1.0] * 40)
    lifecycle.begin("proven")
    shadow.step(10, OVER)
    assert lifecycle.promoted == ["proven"]
    lifecycle.begin("next", since=OVER)
    shadow.step(11, OVER)
    assert needed(shadow) == {"next": pytest.approx(60.0)}


def test_evidence_that_would_have_been_enough_for_one_candidate_alone_is_not_for_a_later_one():
    outcomes = [1.0, 1.0, -0.6] * 18  # enough for the first that begins, not for the fourth
    lifecycle = Lifecycle()
    shadow = trials(lifecycle, early=outcomes, late=outcomes)
    lifecycle.begin("early")
    shadow.step(10, OVER)
    assert lifecycle.promoted == ["early"]

    lifecycle = Lifecycle()
    shadow = trials(lifecycle, late=outcomes)
    for name in ("a", "b", "c", "late"):
        lifecycle.begin(name)
    shadow.step(10, OVER)
    assert lifecycle.promoted == []
    assert 40.0 < shadow.shown["late"]["e_value"] < needed(shadow)["late"] == 400.0  # type: ignore[operator]


def test_candidate_against_another_incumbent_goes_on_with_neither_its_ledgers_nor_its_level():
    lifecycle = Lifecycle()
    shadow = trials(lifecycle)
    lifecycle.begin("candidate")
    shadow.step(10, OVER)
    first = dict(shadow._beside)
    lifecycle.incumbent = 98
    shadow.step(11, OVER)
    (key,) = shadow._beside.keys() - first.keys()
    assert shadow._beside[key] not in first.values()
    assert needed(shadow) == {"candidate": 120.0}
    lifecycle.incumbent = 99
    shadow.step(12, OVER)
    assert needed(shadow) == {"candidate": 40.0}
    assert shadow.counts == (2, 0)


def test_candidate_that_gains_no_more_than_its_incumbent_is_not_promoted():
    """On its own it proves a gain; the trades of the incumbent on the same bars are as good."""
    for theirs, promoted in (([1.0] * 40, []), ([0.1] * 40, ["proven"])):
        lifecycle = Lifecycle()
        shadow = trials(lifecycle, proven=[1.0] * 40, incumbent=theirs)
        lifecycle.begin("proven")
        shadow.step(10, OVER)
        assert lifecycle.promoted == promoted
        assert shadow.shown["proven"]["incumbent_n"] == 40


def test_experiment_is_shown_beside_what_is_in_force_with_its_blocks_left_and_proven_by_its_own_trades():
    lifecycle = Lifecycle()
    shadow = trials(lifecycle, tried=[1.0] * 40, incumbent=[0.25] * 30)
    lifecycle.begin("tried", kind="experiment")
    shadow.step(10, OVER - 21 * DAY_NS)
    (shown,) = shadow.summaries()
    assert (shown["n"], shown["incumbent_n"], shown["incumbent_r"]) == (40, 30, 0.25)
    assert shown["blocks_left"] == 1  # on daily bars a block is a month
    assert "difference_r" not in shown
    assert float(shown["e_value"] or 0.0) >= float(shown["e_needed"] or 0.0) > 1.0


def test_refuted_candidate_is_told_while_the_rules_it_was_compared_with_and_the_bans_stay():
    lifecycle = Lifecycle()
    shadow = trials(lifecycle, bad=[-1.0, -1.0, 0.4] * 20)
    lifecycle.begin("bad")
    shadow.step(10, OVER)
    assert lifecycle.retired == ["bad"]
    (payload,) = shadow.summaries()
    assert (payload["playbook_id"], payload["kind"], payload["n"]) == ("bad", "refuted", 60)
    shadow.step(11, OVER)
    assert shadow.summaries() == (payload,)
    lifecycle.incumbent = 98
    assert shadow.summaries() == ()
    lifecycle.incumbent, lifecycle.banned = 99, ("up/mid",)
    assert shadow.summaries() == ()


def test_promotion_uses_up_the_evidence_and_the_level_of_what_it_promotes():
    """The same candidate, proposed again after its rules were left, begins with the next level."""
    lifecycle = Lifecycle()
    shadow = trials(lifecycle, proven=[1.0] * 40)
    lifecycle.begin("proven")
    again = lifecycle.open
    shadow.step(10, OVER)
    ledgers = dict(shadow._open)
    lifecycle.open = [SimpleNamespace(**vars(again[0]) | {"since": OVER})]
    shadow._judge = JudgeSettings(promotion_minimum_trades=41)
    shadow.step(11, OVER)
    assert needed(shadow) == {"proven": pytest.approx(60.0)}
    assert shadow.counts == (2, 1)
    assert ledgers.keys() == shadow._open.keys()
    assert not set(ledgers.values()) & set(shadow._open.values())


def test_candidate_that_a_promotion_in_the_same_step_has_ended_is_not_weighed():
    """Otherwise what it has shown against the incumbent that left would promote it too."""
    lifecycle = Lifecycle()
    shadow = trials(lifecycle, first=[1.0] * 40, second=[1.0] * 60)
    lifecycle.begin("first")
    lifecycle.begin("second")

    def take_the_place(name: str, into: list[str]) -> tuple[str]:
        lifecycle.open = []
        into.append(name)
        return (name,)

    lifecycle._leave = take_the_place  # type: ignore[method-assign]
    shadow.step(10, OVER)
    assert lifecycle.promoted == ["first"]
    assert list(shadow.shown) == ["first"]


def test_experiments_share_a_level_of_their_own_and_a_ban_shares_that_of_the_candidates():
    lifecycle = Lifecycle()
    shadow = trials(lifecycle)
    lifecycle.begin("experiment", "experiment")
    lifecycle.begin("ban", "banned_cell")
    lifecycle.begin("candidate")
    shadow.step(10, OVER)
    lifecycle.begin("later")
    lifecycle.begin("second", "experiment")
    shadow.step(11, OVER)
    found = {"experiment": 40.0, "second": 120.0, "ban": 120.0, "candidate": 40.0, "later": 240.0}
    assert needed(shadow) == found
    assert shadow.counts == (3, 0)


@pytest.mark.parametrize("kind", ["experiment", "candidate"])
def test_trials_tell_the_one_value_that_they_try(kind):
    lifecycle = Lifecycle()
    shadow = trials(lifecycle)
    stretch = playbook("incumbent").parameters["stretch"]
    for name, changes in (
        ("one", {"stretch": alter(stretch, value=1.1)}),
        (
            "two",
            {"stretch": alter(stretch, value=1.1), "exit_below": alter(stretch, value=0.9)},
        ),
        ("none", {}),
    ):
        lifecycle.begin(name, kind)
        trial = lifecycle.open[-1]
        parameters = {**trial.definition.parameters, **changes}
        trial.definition = alter(trial.definition, parameters=parameters)
    shadow.step(10, OVER)
    payload = {
        summary["playbook_id"]: (summary.get("parameter"), summary.get("value"))
        for summary in shadow.summaries()
    }
    assert payload == {"one": ("stretch", 1.1), "two": (None, None), "none": (None, None)}


@pytest.mark.parametrize(("minimum", "promoted"), [(41, []), (40, ["proven"])])
def test_promotion_waits_for_its_minimum_of_trades_whatever_the_evidence(minimum, promoted):
    lifecycle = Lifecycle()
    shadow = trials(lifecycle, proven=[1.0] * 40)
    shadow._judge = JudgeSettings(promotion_minimum_trades=minimum)
    lifecycle.begin("proven")
    shadow.step(10, OVER)
    assert shadow.shown["proven"]["e_value"] > 40.0  # type: ignore[operator]
    assert lifecycle.promoted == promoted


def cut(since: int) -> Measure:
    return Measure(RISK, 0.0025, since, since + 1, BOOK)


def traded(outcomes: list[float], **fields: Any) -> list[Episode]:
    """Trades of the account, one a week from `START` on."""
    weeks = [START + 7 * k * DAY_NS for k in range(len(outcomes))]
    return [
        episode(BOOK, number=k, r=r, exit_label=weeks[k], entry_label=weeks[k], **fields)
        for k, r in enumerate(outcomes)
    ]


@pytest.mark.parametrize(
    ("outcomes", "proven"),
    [([1.0] * 40, True), ([1.0] * 19, False), ([-1.0, 1.0] * 15, False), ([-1.0] * 30, False)],
)
def test_risk_cut_is_contradicted_by_the_trades_and_the_evidence_of_a_promotion(outcomes, proven):
    lifecycle = Lifecycle()
    shadow = trials(lifecycle)
    lifecycle.cuts.append(cut(START))
    shadow.step(10, OVER, traded(outcomes))
    ledger = (BOOK.content_hash, "")
    assert set(shadow.proven) == ({ledger} if proven else set())
    assert shadow.measured[ledger]["n"] == len(outcomes)
    assert shadow.measured[ledger]["e_needed"] == 40.0


def test_risk_cut_is_weighed_by_the_trades_that_its_own_playbook_entered_since():
    lifecycle = Lifecycle()
    shadow = trials(lifecycle)
    lifecycle.cuts.append(cut(START + 30 * 7 * DAY_NS))
    other = [entry.model_copy(update={"playbook_id": "other"}) for entry in traded([1.0] * 40)]
    shadow.step(10, OVER, [*traded([1.0] * 40), *other])
    assert shadow.measured[BOOK.content_hash, ""]["n"] == 10
    assert shadow.proven == {}
    (payload,) = shadow.summaries()
    assert (payload["playbook_id"], payload["kind"], payload["value"], payload["n"]) == (
        "pullback",
        "risk_cut",
        0.0025,
        10,
    )


def test_risk_cut_waits_for_the_week_in_which_a_position_of_its_playbook_is_open():
    """A loser that is still open must not be left out of its week: the winners exit first."""
    lifecycle = Lifecycle()
    shadow = trials(lifecycle)
    lifecycle.cuts.append(cut(START))
    week = START + 7 * 30 * DAY_NS
    waiting = {"playbook_id": BOOK.id, "regime": "up/mid", "entry_label": week}
    for named, blocks in ((waiting, 30), (waiting | {"playbook_id": "other"}, 40)):
        shadow.step(10, OVER, traded([1.0] * 40), [OpenEntry(**named)])
        assert shadow.measured[BOOK.content_hash, ""]["blocks"] == blocks
    before = cut(START + 7 * DAY_NS)
    lifecycle.cuts[:] = [before]
    shadow.step(11, OVER, traded([1.0] * 40), [OpenEntry(**waiting | {"entry_label": START})])
    assert shadow.measured[before.ledger]["blocks"] == 39  # opened before the cut: not of its trades


def test_strict_gate_weighs_a_difference_as_it_weighs_a_claim():
    """Twenty trades a week on one view: a strict gate takes them for one bet."""
    outcomes = np.random.default_rng(3).normal(0.4, 1.0, (40, 20))
    found = []
    for strict in (False, True):
        mine = Paper([])
        mine.episodes = [
            episode(BOOK, number=k, r=float(r), week=k // 20, ledger="shadow")
            for k, r in enumerate(outcomes.flat)
        ]
        gate = GateSettings(strict=strict)
        found.append(paired_evidence(mine, Paper([]), gate, OVER)["e_value"])
    assert found[0] > 2.0 * found[1] > 0.0  # type: ignore[operator]


def test_risk_cut_shares_the_level_after_the_candidates_and_bans_that_began_with_it():
    lifecycle = Lifecycle()
    shadow = trials(lifecycle)
    lifecycle.cuts.append(cut(START))
    lifecycle.begin("ban", "banned_cell")
    lifecycle.begin("candidate")
    shadow.step(10, OVER)
    lifecycle.begin("later")
    shadow.step(11, OVER)
    assert shadow.measured[BOOK.content_hash, ""]["e_needed"] == 240.0
    assert needed(shadow) == {"ban": 120.0, "candidate": 40.0, "later": 400.0}


@pytest.mark.parametrize(
    ("outcomes", "proven"),
    [([1.0] * 40, True), ([1.0] * 19, False), ([-1.0, 1.0] * 15, False), ([-1.0] * 30, False)],
)
def test_ban_is_proven_by_the_trades_and_the_evidence_of_a_promotion(outcomes, proven):
    lifecycle = Lifecycle()
    shadow = trials(lifecycle, ban=outcomes)
    lifecycle.begin("ban", "banned_cell")
    shadow.step(10, OVER)
    assert set(shadow.proven) == ({("ban", None)} if proven else set())
    assert lifecycle.promoted == lifecycle.retired == [], (
        "a report may lift it, else the end of its life does"
    )


def test_candidate_that_its_trades_speak_against_is_retired_at_the_plain_level():
    lifecycle = Lifecycle()
    shadow = trials(lifecycle, bad=[-1.0, -1.0, 0.4] * 20)
    for name in ("a", "b", "bad"):
        lifecycle.begin(name)
    shadow.step(10, OVER)
    assert lifecycle.retired == ["bad"]
    assert lifecycle.promoted == []
