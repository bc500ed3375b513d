"""Sentences on what was decided: how far policies came, and why no trade was taken."""

from collections.abc import Iterator

from agents.answering.of_trades import whom
from agents.answering.statements import Part, Reply, Statement, day_of, quoted
from services.model_calls.quoting import counted

MOST_REASONS = 5


def of_decisions(reply: Reply) -> Iterator[Statement]:
    """How many policies and entries there were, then what stopped others, the commonest reason first."""
    content, name = reply.content, whom(reply.params)
    since = f" since {day_of(reply.params['since'])}" if reply.params.get("since") else ""
    policies = counted(content["policies_frozen"], "policy", "policies")
    bars = counted(content["evaluations"], "evaluation")
    entries = counted(content["entries"], "entry", "entries")
    yield reply.told(f"Of {name}{since}, as of {reply.day}: {bars}, {policies} frozen, {entries}.", Part.WHAT)
    if content["entries"]:
        yield reply.told("So trades were taken.", Part.WHAT, content["newest_entry"])
    elif not content["reasons"]:
        yield reply.told("Nothing was thought of that could have become a trade.", Part.REASON)
    for one in content["reasons"][:MOST_REASONS]:
        yield reply.told(
            f"{one['what'].capitalize()}, {quoted(one['reason'].replace('_', ' '))}: "
            f"{counted(one['count'], 'time')}, last on {day_of(one['newest'])}.",
            Part.REASON,
            one["row"],
        )
