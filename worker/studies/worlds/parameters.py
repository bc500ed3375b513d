"""What can be set about a world, and its defaults."""

from dataclasses import dataclass

from worker.studies.worlds.payoffs import Bracket, Payoff, StudentT


@dataclass(frozen=True)
class Parameters:
    """Numbers that make a kind of world; each kind reads some of them.

    Attributes:
        per_week: bets a week and cell.
        target: R of a winner against losers of -1R; 0 draws Student's t(3) instead.
        symbols: trades that share one bet; `rho` is the correlation of their drivers.
        rho: correlation of trades that share something.
        rows_low: fewest rows of one bet; `rows_high` the most.
        rows_high: most rows of one bet.
        phi: correlation of a trade's driver with the one before.
        share: variance share of a common shock.
        span: weeks that one shock lasts.
        win_hours: hours until a winner exits; `loss_hours` for a loser.
        loss_hours: hours until a loser exits.
        tail: index of the winners' Lomax tail.
        sigma: of a lognormal outcome.
        cost: R that every trade pays, inside its outcomes.
        crash_every: weeks from one crash to the next on average.
        crash_trades: trades at -1R in a crash week.
        calm: mean R of calm weeks.
    """

    per_week: float = 5.0
    target: float = 0.0
    symbols: int = 8
    rho: float = 0.9
    rows_low: int = 1
    rows_high: int = 15
    phi: float = 0.3
    share: float = 0.3
    span: int = 1
    win_hours: float = 60.0
    loss_hours: float = 4.0
    tail: float = 2.2
    sigma: float = 1.0
    cost: float = 0.3
    crash_every: float = 13.0
    crash_trades: int = 30
    calm: float = 0.4

    @property
    def payoff(self) -> Payoff:
        """The bracket with that target, else Student's t."""
        return Bracket(self.target) if self.target > 0.0 else StudentT()

    @property
    def count(self) -> int:
        """Bets a week as a whole number."""
        return max(round(self.per_week), 1)
