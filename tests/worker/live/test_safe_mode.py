"""Safe mode is entered for a reason and left when none is left; crashes end by the operator alone."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from services.feeds.port import BarRow
from worker.live.safe_mode import EntryGuard, SafeModeReason

STORE, LOOP = SafeModeReason.STORE_AWAY, SafeModeReason.CRASH_LOOP


class Machine(RuleBasedStateMachine):
    """Against a plain model: what holds."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[dict[str, Any]] = []
        self.guard = EntryGuard(("A", "B"), lambda kind, detail: self.shown.append(detail))
        self.holds: set[SafeModeReason] = set()
        self.inside = False

    def after(self, before: tuple[SafeModeReason, ...]) -> None:
        changes, self.shown[:] = list(self.shown), []
        assert bool(changes) == (before != self.guard.reasons)
        assert len({change["reason"] for change in changes}) == len(changes), "a change is told once"
        for change in changes:
            if change["change"] in ("entered", "left"):
                assert self.inside == (change["change"] == "left")
                self.inside = change["change"] == "entered"

    @rule(reason=st.sampled_from(SafeModeReason), detail=st.text(max_size=5))
    def hold_it(self, reason: SafeModeReason, detail: str) -> None:
        before = self.guard.reasons
        self.guard.hold(reason, detail)
        self.holds.add(reason)
        self.after(before)

    @rule(behind=st.booleans())
    def take_row(self, behind: bool) -> None:
        before = self.guard.reasons
        row = self.guard.guard_row(BarRow(0, {}), store_behind=behind)
        self.holds = self.holds & {LOOP} | ({STORE} if behind else set())
        assert bool(row.blocked) == bool(self.holds), (
            "a row without a doubt ends every reason but that of crashes"
        )
        self.after(before)

    @rule()
    def release_it(self) -> None:
        before = self.guard.reasons
        self.guard.release()
        self.holds.discard(LOOP)
        self.after(before)

    @invariant()
    def entries_are_blocked_exactly_while_something_holds(self) -> None:
        assert set(self.guard.reasons) == self.holds
        assert bool(self.guard.in_force({})) == bool(self.guard.summary) == bool(self.holds) == self.inside
        assert list(self.guard.reasons) == sorted(self.holds)


TestMachine = Machine.TestCase


def test_operators_release_ends_the_reason_of_crashes_and_no_other() -> None:
    shown: list[tuple[str, str]] = []
    guard = EntryGuard(("A",), lambda kind, detail: shown.append((detail["change"], detail["reason"])))
    guard.hold(LOOP, "kill off")
    guard.hold(STORE)
    guard.hold(LOOP, "again")
    assert guard.summary == "crash_loop (kill off); store_away"
    guard.release()
    assert (guard.reasons, guard.summary) == ((STORE,), "store_away")
    guard.release(STORE)
    left: tuple[Any, Any] = guard.reasons, guard.summary
    assert left == ((), None)
    assert shown == [("entered", LOOP), ("raised", STORE), ("ended", LOOP), ("left", STORE)]
