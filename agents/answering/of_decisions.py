"""Sentences on what was decided: how far policies came, and why no trade was taken."""

from collections.abc import Iterator

from agents.answering.of_trades import whom
from agents.answering.statements import Part, Reply, Statement, day_of, quote_line
from services.model_calls.quoting import count_noun

MOST_REASONS = 5


def of_decisions(reply: Reply) -> Iterator[Statement]:
    """How many policies and entries there were, then what stopped others, the commonest reason first."""
    content, name = reply.content, whom(reply.params)
    since = f" since {day_of(reply.params['since'])}" if reply.params.get("since") else ""
    policies = count_noun(content["policies_frozen"], "policy", "policies")
    bars = count_noun(content["evaluations"], "evaluation")
    entries = count_noun(content["entries"], "entry", "entries")
    yield reply.tell(f"Of {name}{since}, as of {reply.day}: {bars}, {policies} frozen, {entries}.", Part.WHAT)
    if content["entries"]:
        yield reply.tell("So trades were taken.", Part.WHAT, content["newest_entry"])
    elif not content["reasons"]:
        yield reply.tell("Nothing was thought of that could have become a trade.", Part.REASON)
    for reason in content["reasons"][:MOST_REASONS]:
        yield reply.tell(
            f"{reason['what'].capitalize()}, {quote_line(reason['reason'].replace('_', ' '))}: "
            f"{count_noun(reason['count'], 'time')}, last on {day_of(reason['newest'])}.",
            Part.REASON,
            reason["row"],
        )
