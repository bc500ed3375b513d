"""The words of what a claim is of."""

from schemas.claims import WHOLE, Of

PREDICATES = {
    "playbook": "were of {}", "symbol": "were in {}", "regime": "began in {}", "direction": "were {}",
    "outcome": "{}", "exit_reason": "ended by {}", "failure_mode": "failed as {}",
    "period": "were entered in {}",
}  # fmt: skip
PLURALS = {
    "playbook": "playbooks", "symbol": "symbols", "regime": "regimes", "direction": "directions",
    "exit_reason": "reasons of exit", "failure_mode": "failure modes", "outcome": "outcomes", "year": "years",
}  # fmt: skip


def words_of(of: Of) -> str:
    """A subject in words: "the run", "AAPL", "winning shorts of AAPL that ended by stop in 2004"."""
    if of == WHOLE:
        return "the run"
    named = [name for name in (of.playbook, of.symbol) if name is not None]
    place = " in ".join(named)
    is_named = (
        of.direction is None and of.outcome is None and of.exit_reason is None and of.failure_mode is None
    )
    head = place if is_named and place else _noun(of) + (f" of {place}" if place else "")
    head += f" in {of.regime}" if of.regime else ""
    head += _ending(of)
    return head + (f" in {period_words(of.period)}" if of.period else "")


def _ending(of: Of) -> str:
    ends = [f"ended by {of.exit_reason}"] if of.exit_reason else []
    ends += [f"failed as {of.failure_mode}"] if of.failure_mode else []
    return f" that {' and '.join(ends)}" if ends else ""


def _noun(of: Of) -> str:
    noun = {None: "trades", "long": "longs", "short": "shorts"}[of.direction]
    return {None: noun, "won": f"winning {noun}", "lost": f"losing {noun}"}[of.outcome]


def period_words(period: str) -> str:
    """`2004`, `2004-06`, or `2004-01 to 2004-06`."""
    return period.replace("/", " to ")


def predicate(of: Of) -> str:
    """What is said of trades that are this subject: "won and were in AAPL"."""
    lines = [
        PREDICATES[name].format(period_words(value) if name == "period" else value)
        for name, value in of.payload().items()
        if value is not None
    ]
    return " and ".join(lines)
