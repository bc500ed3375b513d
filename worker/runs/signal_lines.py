"""The account of signals in words, from the document of a run: a summary, a page and a result begin with it.

What stopped most signals comes first; a setup that is never true, volume that says nothing and bars too
few for a plan come before anything else.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from services.model_calls.quoting import count_noun

Part = Mapping[str, Any]
MOST_PLAYBOOKS, MOST_REASONS, MOST_NAMED = 8, 4, 3
NAMED = frozenset({"blocked", "sent_back", "warming_up"})  # reasons whose details stand in the line
NOT_LOST = frozenset({"in_position", "armed", "cooldown", "invalidated", "warming_up", "not_eligible"})
NOT_REFUSED = frozenset({"unfilled", "invalidated", "retired"})  # an order that stood, and was taken back
NEVER = {
    "false": "no setup of it was ever true: loosen rules.*.setup",
    "history": "bars before the run warm it up and are not traded: let it run on",
    "not_in_force": "no setup of its plans was true while one of them was in force",
    "unknown": "its setup could be computed at no bar: give it more bars",
    "volume_is_unknown": "its setup reads volume, and volume is unknown everywhere",
    "volume_is_zero": "its setup reads volume, and volume is 0 everywhere",
}
WORDS = {
    "armed": "a thesis armed already",
    "blocked": "blocked",
    "cooldown": "in cooldown",
    "in_position": "in a position",
    "invalidated": "invalidated",
    "invalidation_true": "invalidation true too",
    "judge_refused": "judge refused",
    "no_policy": "no policy in force",
    "not_eligible": "not eligible",
    "other_plan": "another plan in force",
    "plan_setup_not_true": "setup of its plan not true",
    "sent_back": "sent back",
    "warming_up": "warming up",
}
AFTER = {
    "activation_triggered": "activated",
    "thesis_expired": "expired",
    "order_accepted": "ordered",
    "entry_filled": "filled",
}


def account_lines(document: Part) -> list[str]:
    """What became of the signals: a line for each playbook, what followed, a warning if most were lost."""
    parts = sorted(document["signals"]["playbooks"], key=_rank)
    lines = [_line(part) for part in parts[:MOST_PLAYBOOKS]]
    if len(parts) > MOST_PLAYBOOKS:
        lines.append(f"and {count_noun(len(parts) - MOST_PLAYBOOKS, 'more playbook')}, see --json")
    if any(part["met"] for part in parts):
        lines.append(_after(document))
    counts = {part["playbook"]: (part["met"], count_lost(part)) for part in parts}
    met, lost = (sum(found) for found in zip(*counts.values(), strict=True)) if counts else (0, 0)
    refused = sum(n for why, n in document["signals"]["orders_refused"].items() if why not in NOT_REFUSED)
    thin = [f"{name} {met:,} of {met + lost:,}" for name, (met, lost) in counts.items() if met < lost]
    could = "under half of the signals that could have traded"
    if thin:
        more = [f"{len(thin) - MOST_NAMED} more"] if len(thin) > MOST_NAMED else []
        lines.append(f"{could} met a plan: {', '.join([*thin[:MOST_NAMED], *more])}")
    elif met - refused < lost + refused:
        lines.append(f"{could} met a plan whose order stood: {max(met - refused, 0):,} of {met + lost:,}")
    return lines


def count_lost(part: Part) -> int:
    """Signals that could have traded and met no plan.

    Not those in a position, its cooldown or an armed thesis, nor where the playbook's own eligibility or the
    warm-up rules them out.
    """
    return sum(count for reason, count in part["not_met"].items() if reason not in NOT_LOST)


def _rank(part: Part) -> tuple[bool, bool, int, str]:
    warming = part["not_met"].get("warming_up", 0)
    return not part["never_true"], 2 * warming <= part["entry_rule_true"], -count_lost(part), part["playbook"]


def _line(part: Part) -> str:
    true, met, name = part["entry_rule_true"], part["met"], part["playbook"]
    if not true:
        return f"{name}: entry rule true 0 times: {NEVER[part['never_true']]}"
    line = f"{name}: entry rule true {count_noun(true, 'time')}: {met:,} met a plan"
    if true > met:
        line += f", {true - met:,} did not: {', '.join(_reasons(part))}"
    if part["rules_alone_trades"] is None:
        return f"{line}; rules of its strategist's own, counted while a plan was in force"
    return f"{line}; its rules alone, with reflection off: {count_noun(part['rules_alone_trades'], 'trade')}"


def _reasons(part: Part) -> Iterator[str]:
    """Reasons with counts: those that lost signals first, then the others; the rest in one."""
    ordered = sorted(part["not_met"].items(), key=lambda item: (item[0] in NOT_LOST, -item[1], item[0]))
    rest = ordered[MOST_REASONS:] if len(ordered) > MOST_REASONS + 1 else []
    for reason, count in ordered[: len(ordered) - len(rest)]:
        is_told = reason in NAMED or len(ordered) == 1
        details = part["because"].get(reason, {}) if is_told else {}
        named = [f"{name.replace('_', ' ')} {n:,}" for name, n in details.items() if name != "no_regime"]
        more = [f"{len(named) - MOST_NAMED} more"] if len(named) > MOST_NAMED else []
        yield f"{WORDS[reason]} {count:,}" + (
            f" ({', '.join([*named[:MOST_NAMED], *more])})" if named else ""
        )
    if rest:
        yield f"for {len(rest)} other reasons {sum(count for _, count in rest):,}"


def _after(document: Part) -> str:
    """How the theses that were armed went on, over all playbooks."""
    events, refused = document["tick_validation"]["events"], document["signals"]["orders_refused"]
    shown = [f"{word} {events[kind]:,}" for kind, word in AFTER.items() if kind in events]
    if refused:
        ordered = sorted(refused.items(), key=lambda item: (-item[1], item[0]))
        named = ", ".join(f"{reason} {count:,}" for reason, count in ordered)
        shown.append(f"orders refused {sum(refused.values()):,} ({named})")
    armed = count_noun(events.get("thesis_armed", 0), "signal")
    return f"of {armed} that met a plan: {', '.join(shown) or 'all wait'}"
