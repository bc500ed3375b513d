"""Safe mode as a machine: entered for a reason, left when none is left, hard ones only by the operator."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from worker.live.entry_guard import EntryGuard
from worker.live.safe_mode import HARD, SafeMode, SafeModeReason

SECOND = 10**9
STORE, LOOP = SafeModeReason.STORE_AWAY, SafeModeReason.CRASH_LOOP


def kinds(changes):
    return [(change.kind, change.reason) for change in changes]


def test_soft_reason_enters_and_its_end_leaves():
    mode, changes = SafeMode().raise_reason(STORE, 5, "refused")
    assert mode.active
    assert mode.summary == "store_away (refused)"
    assert kinds(changes) == [("entered", STORE)]
    assert mode.raise_reason(STORE, 6, "again") == (mode, ())
    mode, changes = mode.clear_reason(STORE, 7)
    assert not mode.active
    assert mode.summary is None
    assert kinds(changes) == [("left", STORE)]
    assert mode.clear_reason(STORE, 8) == (mode, ())


def test_hard_reason_that_is_gone_waits_for_the_operator():
    mode, _ = SafeMode().raise_reason(LOOP, 1)
    assert mode.release(2) == (mode, ())  # it still holds: nobody can talk it away
    mode, changes = mode.clear_reason(LOOP, 3)
    assert mode.active
    assert kinds(changes) == [("gone", LOOP)]
    assert mode.summary == "crash_loop, gone, waits for the operator"
    mode, changes = mode.release(4)
    assert not mode.active
    assert kinds(changes) == [("left", LOOP)]


def test_hard_reason_that_comes_back_before_the_release_holds_again():
    mode, _ = SafeMode().raise_reason(LOOP, 1)
    mode, _ = mode.clear_reason(LOOP, 2)
    mode, changes = mode.raise_reason(LOOP, 3)
    assert kinds(changes) == [("raised", LOOP)]
    assert mode.held[0].since == 1
    assert mode.release(4) == (mode, ())


def test_release_leaves_what_still_holds():
    mode, _ = SafeMode().raise_reason(LOOP, 1)
    mode, _ = mode.raise_reason(STORE, 2)
    mode, _ = mode.clear_reason(LOOP, 3)
    mode, changes = mode.release(4)
    assert [held.reason for held in mode.held] == [STORE]
    assert kinds(changes) == [("ended", LOOP)]


def test_operators_release_tells_of_the_end_and_not_that_something_waits():
    shown = []
    guard = EntryGuard(("A",), lambda kind, detail: shown.append((detail["change"], detail["reason"])))
    guard.hold(LOOP)
    guard.hold(STORE)
    guard.release()
    assert [held.reason for held in guard.mode.held] == [STORE]
    assert shown == [("entered", LOOP), ("raised", STORE), ("ended", LOOP)]


class Machine(RuleBasedStateMachine):
    """Against a plain model: reasons that hold, hard ones that wait."""

    def __init__(self):
        super().__init__()
        self.mode, self.holds, self.waits, self.at = SafeMode(), set(), set(), 0
        self.inside = False

    def after(self, step):
        before = self.mode
        self.mode, changes = step
        self.at += 1
        for change in changes:
            if change.kind in ("entered", "left"):
                assert self.inside == (change.kind == "left")
                self.inside = change.kind == "entered"
        assert bool(changes) == (before != self.mode)
        shown = [change.reason for change in changes]
        assert len(shown) == len(set(shown)), "a change of a reason is told once"

    @rule(reason=st.sampled_from(SafeModeReason), detail=st.text(max_size=5))
    def raise_it(self, reason, detail):
        self.after(self.mode.raise_reason(reason, self.at, detail))
        self.holds.add(reason)
        self.waits.discard(reason)

    @rule(reason=st.sampled_from(SafeModeReason))
    def clear_it(self, reason):
        self.after(self.mode.clear_reason(reason, self.at))
        if reason in self.holds and reason in HARD:
            self.waits.add(reason)
        self.holds.discard(reason)

    @rule()
    def release_it(self):
        self.after(self.mode.release(self.at))
        self.waits.clear()

    @invariant()
    def entries_are_blocked_exactly_while_something_holds_or_waits(self):
        assert {held.reason for held in self.mode.held if not held.gone} == self.holds
        assert {held.reason for held in self.mode.held if held.gone} == self.waits
        assert self.mode.active == bool(self.holds | self.waits) == self.inside
        assert self.waits <= HARD
        assert list(self.mode.held) == sorted(self.mode.held, key=lambda held: held.reason)


TestMachine = Machine.TestCase
