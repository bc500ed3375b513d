"""Where do stop, target and invalidation lie, read on the snapshot?

The snapshot's features are one bar: a rule that needs bars before it is unknown here, and an unknown
level is never guessed. The invalidation is tried on two imagined price paths, one against the plan and
one with it, with every indicator held still: so its level is found whatever its form. Read once per
reflection, used by the coherence and expectation checks.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, isnan, nan
from operator import attrgetter
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from schemas.errors import RuleError
from schemas.playbook import DirectionRules
from schemas.proposal import PolicyProposal
from schemas.reflection import PolicyLevelReflectionRequest
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import Direction
from services.playbooks.rendering import IN_POSITION, KIND_OF_ROLE, list_changes, render_rules
from trading_core.rules.bounds import possible_of, ratio
from trading_core.rules.evaluate import evaluate_for_symbol, program_of
from trading_core.rules.grammar import Rule, parse
from trading_core.rules.tree import COMPARISONS, Expression, canonical_text, refuse_position

TEXTS = attrgetter(*KIND_OF_ROLE)  # of a plan, None where it has no rule of the role
PRICES = ("open", "high", "low", "close")
LOGIC = ("and", "or", "not", "prev")
STEPS = 64  # points on each stretch of an imagined path
THERE, ON = np.linspace(0.0, 1.0, STEPS + 1)[1:], np.linspace(0.0, 1.0, STEPS)
LOWEST, HIGHEST = 0.001, 3.0  # ends of the imagined paths, in closes
FARTHEST = 1_000.0  # no level is imagined farther than this, in closes


@dataclass(frozen=True)
class PlanLevels:
    """Prices of a plan on its snapshot; None where a rule is broken or unknown.

    Attributes:
        close: close of the decision bar.
        entry: where the plan enters: the close of a market entry, else its entry rule.
        stop, target: of the proposal.
        playbook_entry, playbook_stop: what the playbook's own rules give, the unit of its expectations.
        waits: the setup is not true at this close, so the plan can act at a later one alone, and its levels
            are those of that close.
        differs: rules and terms of the plan that are not those of its playbook.
        reach: reward over risk of a plan that waits, where it is the same at every close; else None.
        broken: reason by role for rules that do not parse or are of the wrong kind.
    """

    close: float
    entry: float | None
    stop: float | None
    target: float | None
    playbook_entry: float | None
    playbook_stop: float | None
    waits: bool
    differs: frozenset[str]
    reach: float | None
    broken: dict[str, str]

    def lie_ahead(self, *names: str) -> bool:
        """Whether these are the playbook's own and of a later close, so that this one says nothing of them.

        What a strategist changed is measured against the playbook at this close too.
        """
        return self.waits and self.differs.isdisjoint(names)

    @property
    def risk(self) -> float | None:
        """Distance from entry to stop; None if unknown or zero."""
        return _distance(self.entry, self.stop)

    @property
    def reward(self) -> float | None:
        """Distance from entry to target; None if unknown or zero."""
        return _distance(self.entry, self.target)

    @property
    def playbook_risk(self) -> float | None:
        """Distance from the playbook's own entry to its own stop; None if unknown or zero."""
        return _distance(self.playbook_entry, self.playbook_stop)


def can_arm(setup: str, invalidation: str) -> bool:
    """Whether a setup can be true at a close at which the invalidation is not."""
    return possible_of(f"({setup}) and not ({invalidation})").true


def symbolic_reach(rules: DirectionRules | PolicyProposal) -> float | None:
    """Reward over risk where it is the same at every close; None where it is not.

    Raises:
        RuleError: a text is no rule.
    """
    entry = "close" if rules.entry is None else rules.entry
    reward, risk = f"({rules.target}) - ({entry})", f"({entry}) - ({rules.stop})"
    return _ratio(reward, risk)


@lru_cache(maxsize=1_024)
def _ratio(above: str, below: str) -> float | None:
    return ratio(parse(above).tree, parse(below).tree)


def always_misplaced(
    rules: DirectionRules | PolicyProposal,
    direction: Direction,
    entry_kind: str,
    broken: Collection[str] = (),
) -> Iterator[tuple[str, str, str]]:
    """(code, role, words) of each level that lies wrong in every market; `broken` roles are not read.

    Raises:
        RuleError: a text is no rule.
    """
    long, entry = direction == "long", "close" if rules.entry is None else f"({rules.entry})"
    wanted = [("stop", long, entry), ("target", not long, entry), ("trail", long, "close")]
    if rules.entry is not None:
        wanted.insert(0, ("entry", (entry_kind == "limit") == long, "close"))
    for role, below, of in wanted:
        if (text := getattr(rules, role)) is None or role in broken:
            continue
        side, where = ("<", "below") if below else (">", "above")
        equal = "=" if (role, entry_kind) == ("entry", "limit") else ""  # it is filled at the close
        if not possible_of(f"({text}) {side}{equal} {of}").true:
            yield f"{role}_on_wrong_side", role, f"{text!r} never lies {where} the {_name(role, rules)}"
        elif not possible_of(f"({text}) > 0").true:
            yield "level_not_a_price", role, f"{text!r} is never above zero"


def _name(role: str, rules: DirectionRules | PolicyProposal) -> str:
    return "close" if role in ("entry", "trail") or rules.entry is None else f"entry {rules.entry!r}"


@dataclass(frozen=True)
class InvalidationReach:
    """Whether the invalidation fires at places of the imagined paths.

    Attributes:
        now: at the close of the decision bar; None if unknown.
        before_stop, beyond_stop: on the way to the stop, and from the stop on.
        with_plan: while price moves in the plan's direction.
        price_alone: the rule is one comparison that reads a price, so that nothing but price can fire it.
    """

    now: bool | None
    before_stop: bool
    beyond_stop: bool
    with_plan: bool
    price_alone: bool


def read_levels(request: PolicyLevelReflectionRequest) -> PlanLevels:
    """Entry, stop and target of the proposal, and the playbook's own, as prices on the snapshot.

    Levels lie on the grid of the market, as those of the order will. A refinement to a better limit is not
    read: whether it is offered is known only at the activation.
    """
    proposal, snapshot, tick = request.proposal, request.snapshot, request.invariants.tick_size
    broken = _broken(TEXTS(proposal))
    own_rules = render_rules(request.playbook, proposal.direction)

    unreadable = {getattr(proposal, role) for role in broken}

    def price(text: str | None) -> float | None:
        if text is None:
            return snapshot.close
        return None if text in unreadable else price_of(text, snapshot, tick)

    texts = {proposal.entry, proposal.stop, proposal.target, own_rules.entry, own_rules.stop}
    prices = {text: price(text) for text in texts}  # a plan mostly has its playbook's
    waits = "setup" not in broken and _waits(proposal.setup, snapshot)
    readable = broken.keys().isdisjoint(("entry", "stop", "target"))
    return PlanLevels(
        close=snapshot.close,
        entry=prices[proposal.entry],
        stop=prices[proposal.stop],
        target=prices[proposal.target],
        playbook_entry=prices[own_rules.entry],
        playbook_stop=prices[own_rules.stop],
        waits=waits,
        differs=list_changes(proposal, request.playbook),
        reach=symbolic_reach(proposal) if waits and readable else None,
        broken=broken,
    )


def describe_levels(proposal: PolicyProposal, snapshot: PolicySnapshot) -> dict[str, Any]:
    """What a plan comes to at the close, for somebody who reads: levels, reward to risk, and its setup.

    `unmet` has the parts of a setup that are false; `off_by` is how far the left side of a comparison lies
    above the right one, as a fraction of that.

    Raises:
        RuleError: a text is no rule.
    """
    entry = snapshot.close if proposal.entry is None else price_of(proposal.entry, snapshot, 0.0)
    stop, target = (price_of(text, snapshot, 0.0) for text in (proposal.stop, proposal.target))
    risk, reward = _distance(entry, stop), _distance(entry, target)
    return {
        "entry_price": entry,
        "stop": stop,
        "target": target,
        "reward_to_risk": None if risk is None or reward is None else reward / risk,
        "setup_is_true": is_true(proposal.setup, snapshot),
        "unmet": [*_unmet(parse(proposal.setup).tree, snapshot)],
    }


def _unmet(tree: Expression, snapshot: PolicySnapshot) -> Iterator[dict[str, Any]]:
    if tree.op == "and":
        for part in tree.args:
            yield from _unmet(part, snapshot)
        return
    text = canonical_text(tree)
    if is_true(text, snapshot) is not False:
        return
    found: dict[str, Any] = {"condition": text}
    if tree.op in COMPARISONS:
        left, right = (price_of(canonical_text(side), snapshot, 0.0) for side in tree.args)
        if left is not None and right:
            found["off_by"] = (left - right) / abs(right)
    yield found


def _waits(setup: str, snapshot: PolicySnapshot) -> bool:
    """Whether a setup is not true at the close; one that reads bars before it acts after them alone."""
    return parse(setup).tree.shift > 0 or is_true(setup, snapshot) is False


def is_true(text: str, snapshot: PolicySnapshot) -> bool | None:
    """Whether a condition is true at the close; None where it is unknown there, or needs bars before.

    Raises:
        RuleError: the text is no rule.
    """
    value = _at_close(text, snapshot)
    return None if isnan(value) else value == 1.0


def price_of(text: str, snapshot: PolicySnapshot, tick: float) -> float | None:
    """Value of a price expression on the snapshot, on the grid of the market; None if unknown.

    Raises:
        RuleError: the text is no rule.
    """
    return on_grid(_at_close(text, snapshot), tick)


def _at_close(text: str, snapshot: PolicySnapshot) -> float:
    close, features = snapshot.close, snapshot.features
    names = program_of(text).inputs
    return _value(text, tuple([close if name == "close" else features.get(name) for name in names]))


@lru_cache(maxsize=4_096)  # the plans of one close ask for the same rules again and again
def _value(text: str, values: tuple[float | None, ...]) -> float:
    return program_of(text).at_one_bar([nan if value is None else value for value in values])[0]


def read_invalidation(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> InvalidationReach | None:
    """Where the invalidation fires; None if there is none, its rule is broken, or a level is unknown."""
    text = request.proposal.invalidation
    if text is None or "invalidation" in levels.broken:
        return None
    if levels.entry is None or levels.stop is None or levels.target is None:
        return None
    rule = parse(text)
    long = request.proposal.direction == "long"
    lead = rule.tree.shift + 1
    adverse = _path(levels.close, levels.entry, levels.stop, LOWEST if long else HIGHEST, lead)
    favourable = _path(levels.close, levels.entry, levels.target, HIGHEST if long else LOWEST, lead)
    # One walk over both: the bars that lead in are as many as the rule looks back, so the first is forgotten.
    columns = _columns(rule, request.snapshot, np.concatenate((adverse, favourable)))
    fires = cast(npt.NDArray[np.int8], evaluate_for_symbol(rule, columns))
    against, along = fires[: len(adverse)], fires[len(adverse) :]
    at_stop = lead + STEPS - 1
    return InvalidationReach(
        now=None if against[lead - 1] < 0 else bool(against[lead - 1]),
        before_stop=bool((against[lead:at_stop] == 1).any()),
        beyond_stop=bool((against[at_stop:] == 1).any()),
        with_plan=bool((along[lead:] == 1).any()),
        price_alone=rule.tree.op not in LOGIC and not rule.features.isdisjoint(PRICES),
    )


def _path(close: float, entry: float, level: float, end: float, lead: int) -> npt.NDArray[np.float64]:
    """Closes that stand still for `lead` bars, go from the entry to the level in `STEPS`, then on.

    They end at `end` closes.
    """
    start, middle = (min(max(price, -FARTHEST * close), FARTHEST * close) for price in (entry, level))
    path = np.empty(lead + 2 * STEPS)
    path[:lead] = close
    path[lead:-STEPS] = start + (middle - start) * THERE
    path[lead + STEPS - 1] = middle  # exactly: a rule may ask for the level itself
    path[-STEPS:] = middle + (end * close - middle) * ON
    return path


@lru_cache(maxsize=4_096)
def _broken(texts: tuple[str | None, ...]) -> dict[str, str]:
    found = ((role, _why_broken(role, text)) for role, text in zip(KIND_OF_ROLE, texts, strict=True))
    return {role: reason for role, reason in found if reason is not None}


def _why_broken(role: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        rule = parse(text)
        if role not in IN_POSITION:
            refuse_position(rule.position)
    except RuleError as error:
        return str(error)
    wanted = KIND_OF_ROLE[role]
    return None if rule.kind == wanted else f"{role} must be a {wanted}, but {text!r} is a {rule.kind}"


def _columns(
    rule: Rule, snapshot: PolicySnapshot, path: npt.NDArray[np.float64]
) -> dict[str, npt.NDArray[np.float64] | float]:
    """Columns along a path of closes: prices move with it, indicators stand still, None is unknown."""
    columns: dict[str, npt.NDArray[np.float64] | float] = {
        "close": path
    }  # a rule of constants has its length
    for name in rule.features:
        value = snapshot.close if name == "close" else snapshot.features.get(name)
        known = nan if value is None else value
        columns[name] = path + (known - snapshot.close) if name in PRICES else known
    return columns


def _distance(entry: float | None, level: float | None) -> float | None:
    return None if entry is None or level is None or level == entry else abs(entry - level)


def on_grid(level: float, tick: float) -> float | None:
    """The nearest level on the grid; the level itself without one (0), None if it is no number.

    What is reflected on, judged and frozen has to be the level that is put in force, so a level is rounded
    before any of them sees it.
    """
    if tick != 0.0:
        from trading_core.kernel.execution import on_tick  # compiled: loaded only where there is a grid

        level = float(on_tick(level, tick))
    return level if isfinite(level) else None
