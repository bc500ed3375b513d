"""Why a run did not trade, in the order in which a trade comes about: bars, plans, policies, orders.

A pure function of what the run counted; nothing here changes or repeats it. Every reason has a count and the
keys that would change it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schemas.playbook import PlaybookDefinition
from schemas.regime import RegimeLabels
from schemas.vocabulary import CheckName, EvaluationOutcome, InvocationOutcome, SkipReason
from services.playbooks.rendering import render_rules, rule_texts
from worker.runs.no_trade_remedies import MOST_NAMED, REFUSALS, features_unknown, of_finding

if TYPE_CHECKING:
    from services.policy_loop.counters import PolicyCounters

Cause = tuple[str, int, str]


@dataclass(frozen=True)
class RunFacts:
    """What a run counted.

    Attributes:
        run_id: as it stands in commands.
        traded: whether any position was opened.
        timeframe: of the bars.
        bars: own bars of each symbol.
        needed_bars: own bars that a symbol needs before its first plan.
        policy: counters of the policy loop.
        events: tick events by kind.
        refused: orders that the engine refused, by reason.
        entries_blocked: rows at which a live feed or the operator blocked entries.
        kill_switch: whether the settings or the operator have it on.
        directions: that the envelope allows.
        allowed: playbooks that the envelope allows; empty: all.
        playbooks: active definitions.
    """

    run_id: str
    traded: bool
    timeframe: str
    bars: Mapping[str, int]
    needed_bars: int
    policy: "PolicyCounters"
    events: Mapping[str, int]
    refused: Mapping[str, int]
    entries_blocked: int
    kill_switch: bool
    directions: tuple[str, ...]
    allowed: tuple[str, ...]
    playbooks: tuple[PlaybookDefinition, ...]


def why_no_trade(facts: RunFacts) -> list[dict[str, Any]]:
    """Reasons with counts and remedies; empty for a run that has opened a position."""
    if facts.traded:
        return []
    causes = [cause for stage in STAGES for cause in stage(facts)]
    short = list(_short_of_bars(facts))
    if not causes and _is_any_warm(facts):
        ended = "policies were still waiting when the bars ended: give the run more bars"
        causes = [("run_ended", facts.policy.outcomes[EvaluationOutcome.FROZEN], ended)]
    causes = [*causes, *short] if _is_any_warm(facts) else [*short, *causes]
    return [{"reason": reason, "count": count, "remedy": remedy} for reason, count, remedy in causes]


def _is_any_warm(facts: RunFacts) -> bool:
    return any(bars >= facts.needed_bars for bars in facts.bars.values())


def _short_of_bars(facts: RunFacts) -> Iterator[Cause]:
    absent = [symbol for symbol, bars in facts.bars.items() if bars == 0]
    if absent:
        yield (
            "no_bars",
            len(absent),
            f"{_few(absent)}: no bar in the window: check --symbols, --from and --to",
        )
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


def _rules(facts: RunFacts) -> Iterator[Cause]:
    longest = max(facts.bars.values(), default=0)
    for playbook in facts.playbooks:
        needed = _lookback(playbook) + 1
        if facts.needed_bars < needed and 0 < longest < needed:
            yield (
                "rules_warming_up",
                longest,
                f"playbook {playbook.id}: its rules read {needed:,} bars, the longest symbol has "
                f"{longest:,}: give more bars, or shorten the features of its rules",
            )


def _guards(facts: RunFacts) -> Iterator[Cause]:
    errors = facts.policy.reflections[InvocationOutcome.ERROR]
    if errors:
        yield "error", errors, f"`thinktwice journal {facts.run_id} --kind error` says what failed"
    if facts.kill_switch:
        yield "kill_switch_on", 1, "set envelope.kill_switch = false, or let the operator release it"
    if facts.entries_blocked:
        seen = f"`thinktwice journal {facts.run_id} --kind entries_blocked` and `thinktwice status` say why"
        yield "entries_blocked", facts.entries_blocked, seen
    breaches = facts.events.get("envelope_breach", 0)
    if breaches:
        seen = f"`thinktwice journal {facts.run_id} --kind envelope_breach` names the limit of [envelope]"
        yield "envelope_breach", breaches, seen


def _evaluations(facts: RunFacts) -> Iterator[Cause]:
    if facts.policy.evaluations or not _is_any_warm(facts):
        return
    skips = {reason: count for reason, count in facts.policy.skips.items() if count}
    for reason, count in _by_count(skips):
        unknown = count - facts.policy.of_history
        if reason == SkipReason.WARMING_UP and not unknown:
            yield reason, count, "bars before the run warm it up and are not traded: let it run on"
            continue
        if reason == SkipReason.WARMING_UP and max(facts.bars.values()) >= 2 * facts.needed_bars:
            yield "features_unknown", unknown, features_unknown(facts.needed_bars)
            continue
        keys = "policy_loop.events" if reason == SkipReason.EVENT_DISABLED else "[policy_loop]"
        yield reason, count, f"no policy event was evaluated: {keys} in the settings"
    if not skips:
        yield "no_policy_event", 0, "nothing asked for a plan: policy_loop.heartbeat_s, or more bars"


def _abstentions(facts: RunFacts) -> Iterator[Cause]:
    abstained = facts.policy.outcomes[EvaluationOutcome.ABSTAINED]
    if not abstained:
        return
    enabled = [book for book in facts.playbooks if book.enabled]
    usable = [book for book in enabled if not facts.allowed or book.id in facts.allowed]
    if not usable:
        yield (
            "no_playbook",
            abstained,
            "enabled = true in a playbook, or envelope.allowed_playbooks in the settings",
        )
        return
    timed = [book for book in usable if not book.timeframes or facts.timeframe in book.timeframes]
    if not timed:
        names = _few([book.id for book in usable])
        yield (
            "timeframe_not_eligible",
            abstained,
            f"add {facts.timeframe!r} to timeframes of {names}, or leave it empty",
        )
        return
    uncovered = {
        seen: count
        for seen, count in facts.policy.abstained_in.items()
        if not _is_covered(seen, timed, facts)
    }
    if uncovered:
        regimes = ", ".join(f"{seen} {count:,}" for seen, count in _by_count(uncovered)[:MOST_NAMED])
        yield (
            "no_eligible_playbook",
            sum(uncovered.values()),
            f"trend/volatility/structure was {regimes}: add them to [eligibility.*] of a playbook"
            + ("" if len(facts.directions) > 1 else ", or widen envelope.allowed_directions"),
        )
    elif not any(facts.policy.reflections.values()) and not facts.policy.outcomes[EvaluationOutcome.FROZEN]:
        seen = f"`thinktwice journal {facts.run_id} --kind policy_proposal` has its reasons"
        yield "strategist_abstained", abstained, seen


def _findings(facts: RunFacts) -> Iterator[Cause]:
    books = {book.id: book for book in facts.playbooks}
    for code, count in _by_count(facts.policy.sent_back_for):
        examples = list(facts.policy.examples[code].values())
        known = [(books[met.playbook_id], met.direction) for met in examples if met.playbook_id in books]
        first = examples[0].finding
        if first.check is CheckName.OWN:
            yield code, count, f"a critic of your own found it (once: {first.message})"
        else:
            yield code, count, of_finding(code, known, first.message, first.remedy)


def _refused_bases(facts: RunFacts) -> Iterator[Cause]:
    books = [(book, next(iter(book.rules))) for book in facts.playbooks]
    for code, count in _by_count(facts.policy.passed_over):
        if code not in facts.policy.sent_back_for:
            yield code, count, of_finding(code, books, "the playbook's own plan was not offered for it", None)


def _judge(facts: RunFacts) -> Iterator[Cause]:
    policy = facts.policy
    unreflected = (
        policy.invocations[InvocationOutcome.DISABLED] - policy.amendments[InvocationOutcome.DISABLED]
    )
    passed = policy.reflections["pass"] + unreflected
    stale = policy.outcomes[EvaluationOutcome.STALE]
    if stale:
        yield "stale", stale, "answers came too late: policy_loop.max_answer_bars, or a faster strategist"
    refused = passed - policy.outcomes[EvaluationOutcome.FROZEN] - stale
    if passed and refused > 0:
        seen = f"`thinktwice journal {facts.run_id} --kind boundary_verdict` has its reasons"
        yield "judge_refused", refused, f"the judge approved none of these plans that had passed: {seen}"


def _policies(facts: RunFacts) -> Iterator[Cause]:
    frozen, events = facts.policy.outcomes[EvaluationOutcome.FROZEN], facts.events
    armed, activated = events.get("thesis_armed", 0), events.get("activation_triggered", 0)
    if frozen and not armed:
        yield (
            "setup_never_true",
            frozen,
            "no setup was true while its policy was in force: loosen rules.*.setup",
        )
    if not activated:
        yield from _before_activation(armed, events)


def _before_activation(armed: int, events: Mapping[str, int]) -> Iterator[Cause]:
    ends = (
        (
            "thesis_expired",
            "setups were true, their activation never was: rules.*.activation, or a longer "
            "activation_window_bars",
        ),
        ("invalidation_hit", "theses were proven wrong before activation: rules.*.invalidation"),
        ("policy_expired", "policies reached their horizon without an entry: a longer horizon_bars"),
    )
    found = [(kind, events[kind], remedy) for kind, remedy in ends if events.get(kind)]
    yield from found
    if armed and not found:
        yield "run_ended", armed, "theses were armed when the bars ended: give the run more bars"


def _orders(facts: RunFacts) -> Iterator[Cause]:
    accepted = facts.events.get("order_accepted", 0)
    if accepted and not any(facts.refused.values()):
        yield "run_ended", accepted, "an order was waiting for its fill when the bars ended: give more bars"
    for code, count in _by_count(facts.refused):
        yield f"order_{code}", count, REFUSALS.get(code, "see docs/explanation/engine-semantics.md")


STAGES = (_guards, _evaluations, _findings, _refused_bases, _judge, _policies, _orders, _rules, _abstentions)


def _is_covered(seen: str, playbooks: list[PlaybookDefinition], facts: RunFacts) -> bool:
    trend, volatility, structure = seen.split("/")
    labels = RegimeLabels.model_validate({"trend": trend, "volatility": volatility, "structure": structure})
    return any(
        eligible.allows(labels)
        for playbook in playbooks
        for direction, eligible in playbook.eligibility.items()
        if direction in facts.directions
    )


def _lookback(playbook: PlaybookDefinition) -> int:
    """Own bars before the first on which every rule of the playbook can be known."""
    from trading_core.rules import parse

    texts = (rule_texts(render_rules(playbook, direction)).values() for direction in playbook.rules)
    return max(parse(text).lookback for rules in texts for text in rules)


def _by_count(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(((name, n) for name, n in counts.items() if n), key=lambda item: (-item[1], item[0]))


def _few(names: Any) -> str:
    listed = sorted(names)
    more = len(listed) - MOST_NAMED
    return ", ".join(listed[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
