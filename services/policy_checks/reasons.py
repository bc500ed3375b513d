"""What the reasons of a plan come to: which names there are, whether each holds, and the words of all.

A reason holds when code finds it true and on the plan's side: a rule that is true at this close, a feature of
a rule of the plan that is not false, a regime in which the playbook may trade. What is before the decision
bar is not in a snapshot, so a rule that looks back may be unknown; it is then neither true nor false.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from schemas.background import DecisionBackground, RecentBar
from schemas.errors import RuleError
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reasons import PlanReason, ReasonKind
from schemas.snapshot import PolicySnapshot
from services.model_calls.quoting import count_noun
from services.model_calls.wording import PLAIN, Wording
from services.playbooks.rendering import KIND_OF_ROLE
from services.policy_checks.plan_levels import is_true
from trading_core.rules.grammar import parse

ReasonNames = Mapping[ReasonKind, tuple[str, ...]]
ARGUING = ("setup", "activation")  # rules that are true where there is something to trade
AGAINST = ("invalidation", "exit")
JUDGED: tuple[ReasonKind, ...] = ("rule", "feature")  # of which code can say that they are not so
REGIME = ("trend", "volatility", "structure")
ALL = "all"
MOST_FEATURES = 3  # of the reasons that code gives
TRUTHS = {True: "is true", False: "is not true", None: "cannot be known"}


def reason_names(
    snapshot: PolicySnapshot,
    background: DecisionBackground | None = None,
    proposal: PolicyProposal | None = None,
) -> dict[ReasonKind, tuple[str, ...]]:
    """The names that a reason of each kind may have: of snapshot, background and the plan's rules."""
    bars = () if background is None else background.recent_bars
    learnt = [] if background is None else [lesson.playbook_id for lesson in background.lessons]
    learnt += [] if background is None else [lesson.playbook_id for lesson in background.findings]
    return {
        "feature": tuple(name for name, value in snapshot.features.items() if value is not None),
        "case_rate": (ALL, *(known.playbook_id for known in snapshot.expectations)),
        "recent_bar": tuple(str(bar.bars_ago) for bar in bars),
        "regime": () if snapshot.regime is None else REGIME,
        "lesson": tuple(dict.fromkeys(learnt)),
        "rule": () if proposal is None else tuple(role for role in ARGUING if getattr(proposal, role)),
    }


def unknown_reasons(because: Iterable[PlanReason], names: ReasonNames) -> list[PlanReason]:
    """Reasons whose name there is not."""
    return [reason for reason in because if reason.name not in names[reason.kind]]


def truth_at_close(text: str, snapshot: PolicySnapshot) -> bool | None:
    """Whether a condition is true at the close of the decision bar; None where unknown, or no rule."""
    try:
        rule = parse(text)
    except RuleError:
        return None
    return is_true(text, snapshot) if rule.kind == "boolean" else None


def holds(
    reason: PlanReason, proposal: PolicyProposal, playbook: PlaybookDefinition, snapshot: PolicySnapshot
) -> bool | None:
    """Whether a reason is true and on the plan's side; None where there is no rule by which to say so."""
    if reason.kind == "rule":
        return reason.name in ARGUING and _truth_of(reason.name, proposal, snapshot) is True
    if reason.kind == "feature":
        return any(_truth_of(role, proposal, snapshot) is not False for role in _users(reason.name, proposal))
    if reason.kind == "regime" and snapshot.regime is not None:
        eligible = playbook.eligibility.get(proposal.direction)
        return True if eligible is not None and eligible.allows(snapshot.regime.labels) else None
    return None


def reasons_of_rules(proposal: PolicyProposal, snapshot: PolicySnapshot) -> tuple[PlanReason, ...]:
    """The reasons that a plan has by its own rules: those that are true, features that they use, the regime.

    Where no condition is true yet, the features are those of its levels.
    """
    true = [
        role for role in ARGUING if getattr(proposal, role) and _truth_of(role, proposal, snapshot) is True
    ]
    used = true or [role for role, kind in KIND_OF_ROLE.items() if kind == "number"]
    read = sorted({name for role in used for name in _features(getattr(proposal, role))})
    features = [name for name in read if snapshot.features.get(name) is not None][:MOST_FEATURES]
    found: tuple[tuple[ReasonKind, Sequence[str]], ...] = (
        ("rule", true), ("feature", features), ("regime", () if snapshot.regime is None else REGIME),
    )  # fmt: skip
    return tuple(PlanReason.trust(kind=kind, name=name) for kind, given in found for name in given)


def with_reasons(
    proposal: PolicyProposal,
    snapshot: PolicySnapshot,
    because: tuple[PlanReason, ...] = (),
    background: DecisionBackground | None = None,
) -> PolicyProposal:
    """The plan with these reasons, or those of its own rules, and its rationale in their words."""
    given = because or proposal.because or reasons_of_rules(proposal, snapshot)
    text = rationale_of(given, proposal, snapshot, background)
    return proposal.model_copy(update={"because": given, "rationale": text})


def rationale_of(
    because: Iterable[PlanReason],
    proposal: PolicyProposal,
    snapshot: PolicySnapshot,
    background: DecisionBackground | None = None,
    wording: Wording = PLAIN,
) -> str:
    """Why a plan is proposed, in words; values are those of the snapshot, as `wording` tells them."""
    text = "; ".join(describe_reasons(because, snapshot, background, proposal, wording))
    return f"{proposal.direction.capitalize()} by {proposal.playbook_id}: {text}."


def describe_reasons(
    because: Iterable[PlanReason],
    snapshot: PolicySnapshot,
    background: DecisionBackground | None = None,
    proposal: PolicyProposal | None = None,
    wording: Wording = PLAIN,
) -> list[str]:
    """A clause for each reason whose name there is, in order."""
    names = reason_names(snapshot, background, proposal)
    clauses = []
    for reason in because:
        name = reason.name
        if name not in names[reason.kind]:
            continue
        if reason.kind == "rule":
            text = getattr(proposal, name)
            clauses.append(f"its {name}, {text}, {TRUTHS[truth_at_close(text, snapshot)]} at this close")
        elif reason.kind == "feature":
            (shown,) = wording.word_value({"features": {name: snapshot.features[name]}})["features"].values()
            clauses.append(f"{name} is {_number(shown)}")
        elif reason.kind == "regime":
            labels = None if snapshot.regime is None else snapshot.regime.labels
            clauses.append(f"the {name} is {getattr(labels, name)}")
        elif reason.kind == "case_rate":
            clauses.append(_case_rate(name, snapshot))
        elif background is not None and reason.kind == "recent_bar":
            clauses += [_recent_bar(bar) for bar in background.recent_bars if str(bar.bars_ago) == name]
        elif background is not None:
            clauses += _lessons(name, background)
    return clauses


def _case_rate(name: str, snapshot: PolicySnapshot) -> str:
    rates = snapshot.base_rates
    if name == ALL:
        return f"of {rates.population} resolved trades {rates.winners} won and {rates.losers} lost"
    known = {seen.playbook_id: seen for seen in snapshot.expectations}[name]
    return (
        f"{name} is expected to win {known.hit_rate:.0%} of its trades and to make "
        f"{known.expectancy_r:+.2f}R with each, by its design and {known.n} resolved trades"
    )


def _recent_bar(bar: RecentBar) -> str:
    parts = [
        words.format(value)
        for words, value in (
            ("a close {:+.2%} from the one before", bar.close_return),
            ("above {:.0%} of its last ones", bar.close_return_rank),
            ("a range of {:.2%} of the close", bar.range_share),
            ("above {:.0%} of its last ones", bar.range_share_rank),
            ("a volume above {:.0%} of its last ones", bar.volume_rank),
        )
        if value is not None
    ]
    when = f"{count_noun(bar.bars_ago, 'bar')} ago" if bar.bars_ago else "at the decision bar"
    return f"{when} there was {', '.join(parts) or 'nothing that is known'}"


def _lessons(name: str, background: DecisionBackground) -> list[str]:
    versions = [
        f"version {lesson.version} of {name} is in force by a lesson"
        for lesson in background.lessons
        if lesson.playbook_id == name
    ]
    return versions + [
        f"the last report finds {name} {str(found.grade).replace('_', ' ')} in "
        f"{found.regime or 'all regimes'} over {found.n} trades"
        + ("" if found.mean_r is None else f", at {found.mean_r:+.2f}R each")
        for found in background.findings
        if found.playbook_id == name
    ]


def _number(value: Any) -> str:
    return "unknown" if value is None else f"{value:.6g}"


def _truth_of(role: str, proposal: PolicyProposal, snapshot: PolicySnapshot) -> bool | None:
    text: str | None = getattr(proposal, role)
    return None if text is None else truth_at_close(text, snapshot)


def _users(feature: str, proposal: PolicyProposal) -> list[str]:
    """Roles of the rules that use a feature and argue for the plan, or place its orders."""
    return [
        role for role in KIND_OF_ROLE if role not in AGAINST and feature in _features(getattr(proposal, role))
    ]


def _features(text: str | None) -> frozenset[str]:
    try:
        return frozenset() if text is None else parse(text).features
    except RuleError:
        return frozenset()
