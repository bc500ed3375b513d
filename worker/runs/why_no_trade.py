"""Why a run did not trade: its account of signals, what it counted, and the keys that would change it.

A pure function of a run as it stands; nothing here changes or repeats it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schemas.vocabulary import CheckName, InvocationOutcome, PlanKind
from worker.runs.no_trade_remedies import ENDS, READ_CODE, REMEDIES, WISHES
from worker.runs.signal_lines import NEVER

if TYPE_CHECKING:
    from services.policy_loop.counters import PolicyCounters

Cause = tuple[str, int, str]
MOST_NAMED = 3
BY_DETAIL = ("blocked", "no_policy", "sent_back")  # their details are the reasons
OWN_CHOICE, STOOD_DOWN = "not_eligible", "stood_down"
GOES_ON = ("armed", "cooldown", "in_position", "invalidated", "warming_up")  # nothing has to change for them


@dataclass(frozen=True)
class RunCounts:
    """What a run counted."""

    run_id: str  # as it stands in commands
    traded: bool  # whether any position was opened
    bars: Mapping[str, int]  # own bars of each symbol
    needed_bars: int  # own bars that a symbol needs before its first plan
    signals: Mapping[str, Any]  # the part of the run's document
    policy: "PolicyCounters"  # counters of the policy loop
    events: Mapping[str, int]  # tick events by kind
    entries_blocked: int  # rows at which a live feed or the operator blocked entries
    # whether plans are a caller's; `signals` has the playbooks that these name
    has_own_strategist: bool = False


def why_no_trade(facts: RunCounts) -> list[dict[str, Any]]:
    """Reasons with counts and remedies, what stopped most first; empty for a run that opened a position."""
    if facts.traded:
        return []
    short, never = list(_short_of_bars(facts)), list(_never(facts))
    is_warm = any(bars >= facts.needed_bars for bars in facts.bars.values())
    ended = sorted([*_lost_signals(facts), *_after(facts)], key=lambda one: (one[0] == OWN_CHOICE, -one[1]))
    causes = [*_guards(facts), *ended]
    if facts.has_own_strategist:
        causes += _refused_plans(facts, {reason for reason, *_ in ended})
    if all(part["never_true"] for part in facts.signals["playbooks"]):
        causes = [*never, *causes]
    else:
        causes += never
    if not facts.policy.evaluations:
        causes += _without_regime(facts)
    if not is_warm:
        causes = short
    elif not causes:
        causes = [("run_ended", facts.policy.outcomes["frozen"], REMEDIES["run_ended"]), *short]
    else:
        causes += short
    return [{"reason": reason, "count": count, "remedy": remedy} for reason, count, remedy in causes]


def _short_of_bars(facts: RunCounts) -> Iterator[Cause]:
    absent = [symbol for symbol, bars in facts.bars.items() if bars == 0]
    if absent:
        remedy = f"{_few(absent)}: no bar in the window: check --symbols, --from and --to"
        yield "no_bars", len(absent), remedy
    cold = {symbol: bars for symbol, bars in facts.bars.items() if 0 < bars < facts.needed_bars}
    if cold:
        most = max(cold.values())
        yield (
            "warming_up",
            sum(cold.values()),
            f"{_few(cold)}: at most {most:,} bars, and a symbol needs {facts.needed_bars:,} of its own "
            f"before its first plan: give {facts.needed_bars - most:,} more (a longer file, an "
            f"earlier --from)",
        )


def _never(facts: RunCounts) -> Iterator[Cause]:
    found: dict[str, list[str]] = {}
    for part in facts.signals["playbooks"]:
        if part["never_true"] is not None:
            found.setdefault(part["never_true"], []).append(part["playbook"])
    for why, names in found.items():
        yield f"setup_{why}", 0, f"playbook {_few(names)}: {NEVER[why]}"


def _guards(facts: RunCounts) -> Iterator[Cause]:
    counts = {
        "error": facts.policy.reflections[InvocationOutcome.ERROR],
        "entries_blocked": facts.entries_blocked,
        "envelope_breach": facts.events.get("envelope_breach", 0),
    }
    for kind, count in counts.items():
        if count:
            yield kind, count, f"`thinktwice journal {facts.run_id} --kind {kind}` says what and why"


def _without_regime(facts: RunCounts) -> Iterator[Cause]:
    cold = sum(part["not_met"].get("warming_up", 0) for part in facts.signals["playbooks"])
    if cold:
        yield "features_unknown", cold, REMEDIES["features_unknown"]


def _lost_signals(facts: RunCounts) -> Iterator[Cause]:
    """Signals that met no plan, by what would have to change; what a playbook itself rules out comes last.

    Where a symbol stood down, no plan passed: that is laid to what sent plans back most often.
    """
    usual = facts.policy.sent_back_for.most_common(1)
    counts, details, names = Counter[str](), dict[str, Counter[str]](), dict[str, list[str]]()
    for part in facts.signals["playbooks"]:
        for reason, total in part["not_met"].items():
            because = part["because"].get(reason, {})
            if reason in GOES_ON:
                continue
            for cause, count in because.items() if reason in BY_DETAIL else ((reason, total),):
                if cause == STOOD_DOWN and usual:
                    cause = usual[0][0]
                counts[cause] += count
                names.setdefault(cause, []).append(part["playbook"])
                if reason not in BY_DETAIL:
                    details.setdefault(cause, Counter()).update(because)
    for cause, count in sorted(counts.items(), key=lambda item: (item[0] == OWN_CHOICE, -item[1], item[0])):
        seen = ", ".join(f"{name} {n:,}" for name, n in details.get(cause, Counter()).most_common(MOST_NAMED))
        remedy = f"playbook {_few(set(names[cause]))}: {REMEDIES.get(cause, READ_CODE)}"
        yield cause, count, f"{remedy} ({seen})" if seen else _with_example(cause, remedy, facts)


def _refused_plans(facts: RunCounts, known: set[str]) -> Iterator[Cause]:
    """Plans of a caller's own strategist that were sent back, and its answers without one."""
    for code, count in facts.policy.sent_back_for.most_common():
        if code not in known:
            remedy = f"plans of the strategist: {REMEDIES.get(code, READ_CODE)}"
            yield code, count, _with_example(code, remedy, facts)
    if (count := facts.policy.answers[PlanKind.ABSTAIN]) and "abstained" not in known:
        yield "abstained", count, REMEDIES["abstained"]


def _with_example(code: str, remedy: str, facts: RunCounts) -> str:
    """The remedy with the first finding of its code that sent a plan back."""
    finding = facts.policy.examples.get(code)
    if finding is None:
        return remedy
    if finding.check is CheckName.OWN:
        return f"a critic of your own found it (once: {finding.message})"
    wish = finding.remedy
    value = f"{wish.value:.6g}" if wish and isinstance(wish.value, float) else wish and str(wish.value)
    would = f"; {wish.field} {WISHES[wish.op]} {value} would settle it" if wish else ""
    return f"{remedy} (once: {finding.message}{would})"


def _after(facts: RunCounts) -> Iterator[Cause]:
    events, refused = facts.events, facts.signals["orders_refused"]
    if not events.get("activation_triggered"):
        yield from ((kind, events[kind], REMEDIES[kind]) for kind in ENDS if events.get(kind))
    for code, count in refused.items():
        yield f"order_{code}", count, REMEDIES[f"order_{code}"]


def _few(names: Any) -> str:
    listed = sorted(names)
    more = len(listed) - MOST_NAMED
    return ", ".join(listed[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
