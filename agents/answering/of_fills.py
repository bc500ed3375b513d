"""Sentences on one fill: what it was, and why, step by step back to its playbook."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agents.answering.statements import Part, Reply, Statement, day_of, join_words, price_of, quote_line, r_of
from agents.planning.row_questions import BOUGHT, SHORTED

Step = Mapping[str, Any]


def of_fill(reply: Reply) -> Iterator[Statement]:
    """What the fill was, then its reasons in the order of the chain, each kind once."""
    steps = reply.content["steps"]
    yield from _correct_premise(reply, steps[0])
    yield from ROOTS.get(steps[0]["kind"], _other)(reply, steps[0])
    seen = {steps[0]["kind"]}
    for step in steps[1:]:
        if step["kind"] not in seen and step["found"] and step["kind"] in REASONS:
            seen.add(step["kind"])
            yield reply.tell(REASONS[step["kind"]](step["facts"], step), Part.REASON, step["row"])
    missing = [step["title"] for step in steps if not step["found"]]
    if missing:
        yield reply.tell(f"Not found in the journal: {join_words(missing)}.", Part.PROOF)
    if reply.content.get("next_cursor") is not None:
        yield reply.tell("Further steps of the chain are in `thinktwice why`.", Part.NEXT)


BUYS = {("entry_filled", "long"), ("exit_filled", "short"), ("scale_out_filled", "short")}


def _correct_premise(reply: Reply, step: Step) -> Iterator[Statement]:
    """That the question has it the wrong way round: a fill that sold was not bought, nor the other way."""
    question = reply.question.casefold()
    buys, sells = BOUGHT.search(question) is not None, SHORTED.search(question) is not None
    did_buy = (step["kind"], step["facts"].get("direction")) in BUYS
    # Of a trade of a day one fill bought and another sold.
    if reply.named_day is None and step["kind"].endswith("_filled") and buys != sells and buys != did_buy:
        did, not_done = ("bought", "sold") if did_buy else ("sold", "bought")
        yield reply.tell(f"That fill {did}; nothing was {not_done} by it.", Part.WHAT, step["row"])


def _exit(reply: Reply, step: Step) -> Iterator[Statement]:
    facts = step["facts"]
    yield reply.tell(
        f"Fill {step['id']} closed a {_position(step)} on {day_of(facts['bar_label'])} at "
        f"{price_of(facts['price'])}, by {facts['reason']}.",
        Part.WHAT,
        step["row"],
    )
    yield reply.tell(f"It made {r_of(facts['r'])}, {facts['pnl']:.2f} in money.", Part.AMOUNT, step["row"])


def _entry(reply: Reply, step: Step) -> Iterator[Statement]:
    facts = step["facts"]
    yield reply.tell(
        f"Fill {step['id']} opened a {_position(step)} on {day_of(facts['bar_label'])} at "
        f"{price_of(facts['price'])}{_bracket(facts)}.",
        Part.WHAT,
        step["row"],
    )


def _position(step: Step) -> str:
    named = "" if step["symbol"] is None else f" in {step['symbol']}"
    return f"{step['facts']['direction']} position{named}"


def _other(reply: Reply, step: Step) -> Iterator[Statement]:
    facts = step["facts"]
    told = ", ".join(f"{name} {_value(name, value)}" for name, value in facts.items())
    yield reply.tell(f"{step['title']} has {told}.", Part.WHAT, step["row"])


def _value(name: str, value: Any) -> str:
    if isinstance(value, float):
        return price_of(value)
    return day_of(value) if name == "bar_label" else quote_line(str(value))


def _bracket(facts: Mapping[str, Any]) -> str:
    named = [f"{name} {price_of(facts[name])}" for name in ("stop", "target") if facts.get(name) is not None]
    return f", {', '.join(named)}" if named else ""


def _tell_entry(facts: Mapping[str, Any], step: Step) -> str:
    day, price = day_of(facts["bar_label"]), price_of(facts["price"])
    return f"The position was entered on {day} at {price}{_bracket(facts)}."


def _frozen(facts: Mapping[str, Any], step: Step) -> str:
    version = f"{facts['playbook_id']} version {facts['playbook_version']}"
    risk = f"{100 * facts['risk_fraction']:.2f} % of equity at risk"
    regime = facts.get("regime_key") or "a regime not known yet"
    return f"It followed policy {step['id']} of {version} in {regime}, with {risk}."


def _tell_evaluation(facts: Mapping[str, Any], step: Step) -> str:
    events = join_words(facts.get("events", []))
    return f"That policy was thought of on {day_of(facts['bar_label'])}{f', for {events}' if events else ''}."


def _tell_proposal(facts: Mapping[str, Any], step: Step) -> str:
    return (
        f"The strategist gave {facts['conviction']:g} conviction and said {quote_line(facts['rationale'])}."
    )


def _tell_reflection(facts: Mapping[str, Any], step: Step) -> str:
    checks = join_words(facts.get("checks_run", []))
    return f"The fast reflection answered {facts['status']} after {checks or 'no check'}."


def _tell_findings(facts: Mapping[str, Any], step: Step) -> str:
    return f"It found {facts['code']}: {quote_line(facts['message'])}."


def _tell_verdict(facts: Mapping[str, Any], step: Step) -> str:
    return f"The judge at the boundary decided {facts['decision']}: {quote_line(facts['reason'])}."


def _tell_invalidation(facts: Mapping[str, Any], step: Step) -> str:
    return (
        f"Its invalidation was hit on {day_of(facts['bar_label'])} at a close of {price_of(facts['close'])}."
    )


def _tell_move(facts: Mapping[str, Any], step: Step) -> str:
    stops = f"{price_of(facts['stop_before'])} to {price_of(facts['stop'])}"
    return f"Its stop was moved first on {day_of(facts['bar_label'])}, from {stops}, by {facts['by']}."


ROOTS: dict[str, Callable[[Reply, Step], Iterator[Statement]]] = {
    "exit_filled": _exit,
    "entry_filled": _entry,
}
REASONS: dict[str, Callable[[Mapping[str, Any], Step], str]] = {
    "invalidation_hit": _tell_invalidation,
    "entry_filled": _tell_entry,
    "stop_tightened": _tell_move,
    "policy_frozen": _frozen,
    "policy_event": _tell_evaluation,
    "policy_proposal": _tell_proposal,
    "policy_reflection": _tell_reflection,
    "finding": _tell_findings,
    "boundary_verdict": _tell_verdict,
}
