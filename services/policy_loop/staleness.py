"""Is an answer still about the market and the account that it was asked about?

A backtest and a replay wait for every answer, so nothing has changed there. A live feed does not wait: an
answer that took more than its bars, or whose position, regime or risk state is another by now, is dropped.
A pure comparison of two states of the account: when the policy loop asks, and when the answer is there.
"""

from dataclasses import dataclass

from schemas.vocabulary import PolicyState

# Which of the states of a group it is changes nothing for an answer: neither forbids a policy, or the same
# position is open, and the next bar leads from the one to the other by itself.
ALIKE = (
    frozenset({PolicyState.IDLE, PolicyState.COOLDOWN}),
    frozenset({PolicyState.POSITION_OPEN, PolicyState.HOLD_LOCK}),
)


@dataclass(frozen=True)
class AccountState:
    """What an answer must still find as it was.

    Attributes:
        row: last validated row of the series.
        state: of the symbol's state machine.
        position: side, entry row and quantity of the open position; None without one. Its stop may trail.
        regime: key of the regime's labels; None while warming up.
        halted, kill_switch: whether the envelope blocks entries, and whether the operator does.
    """

    row: int
    state: PolicyState
    position: tuple[str, int, float] | None
    regime: str | None
    halted: bool
    kill_switch: bool


def why_stale(account_state: AccountState, now: AccountState, most_bars: int) -> str | None:
    """Why an answer to `account_state` may not be acted on at `now`; None when it may.

    Args:
        account_state: state when the snapshot was taken.
        now: state when the answer is there.
        most_bars: rows that may have been validated in between.
    """
    late = now.row - account_state.row
    if late > most_bars:
        return f"{late} bars later than its snapshot, at most {most_bars} are allowed"
    if now.position != account_state.position:
        return f"the position was {_describe(account_state.position)} and is {_describe(now.position)}"
    if now.state != account_state.state and not any(
        {now.state, account_state.state} <= group for group in ALIKE
    ):
        return f"the state was {account_state.state} and is {now.state}"
    if now.regime != account_state.regime:
        return f"the regime was {account_state.regime} and is {now.regime}"
    if (now.halted, now.kill_switch) != (account_state.halted, account_state.kill_switch):
        return f"entries were {_entries(account_state)} and are {_entries(now)}"
    return None


def _describe(position: tuple[str, int, float] | None) -> str:
    return "none" if position is None else f"{position[0]} {position[2]!r}"


def _entries(account: AccountState) -> str:
    if account.kill_switch:
        return "stopped by the kill switch"
    return "halted" if account.halted else "allowed"
