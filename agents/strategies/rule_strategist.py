"""The `rules` strategist: a real one that needs no model.

It ranks the playbooks that the regime allows and whose own plan can pass now: by the mean R that their trades
leave once those of all playbooks are pooled and the share of its plans that met their setup, then by fewest
episodes, then by id; those whose invalidation is true at this close come last. What may be as good as the
best by its band is preferred in a declared share of evaluations (`Exploration`). It proposes the first. On a
revision it applies what would satisfy the findings if that only tightens, else it offers the next playbook. A
pure function of the seed, the snapshot and the revision.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from math import log, sqrt

from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reflection import Finding
from schemas.regime import UNKNOWN
from schemas.snapshot import PolicySnapshot, PositionView
from schemas.strategist_answer import RefusedBase, StrategistAnswer
from schemas.vocabulary import Direction, OverrideReason, PlanKind, Severity
from services.playbooks.expectations import expectation_in
from services.playbooks.rendering import render_rules
from services.policy_checks.plan_levels import is_true
from services.policy_checks.reasons import with_reasons
from services.policy_loop.clamps import rules_conviction
from services.ports import BaseCheck, PlaybookReader, Revision

TIGHTENING = {"conviction": 4, "horizon_bars": 0, "activation_window_bars": 0}
BREAK_EVEN_AT_R = 1.0
DIGITS = 9  # of a worth: a logarithm has its last ones from the machine, and they decide nothing
DOUBT = 0.3  # of 1R at risk, where nothing but the number of its plans speaks for one
TYPICAL_R = 1.645  # half a 90 % band of one trade, in R, at a deviation of 1R
NO_TURN = 1.0


@dataclass(frozen=True)
class Exploration:
    """Turns of what is unproven, drawn from seed, symbol, bar and version: no state, no clock.

    A playbook whose mean may lie as high as that of the best is not worse, it is unknown. Ranked by its mean
    alone it would never be tried again, and nobody would learn of it.

    Attributes:
        share: of its evaluations in which something unproven is preferred.
        seed: of the run.
    """

    share: float = 0.0
    seed: int = 0

    def turn(self, snapshot: PolicySnapshot, version: str) -> float:
        """A number below `share` where it is the turn of a version and side, else `NO_TURN`; least first."""
        if self.share == 0.0:
            return NO_TURN
        text = f"{self.seed}|{snapshot.symbol}|{snapshot.ts_event}|{version}"
        drawn = int.from_bytes(sha256(text.encode()).digest()[:6], "big") / 2.0**48
        return drawn if drawn < self.share else NO_TURN


def upper_r(mean_r: float, weight: float) -> float:
    """End of the 90 % band of a mean that weighs as much as `weight` trades."""
    return mean_r + TYPICAL_R / sqrt(max(1.0, weight))


@dataclass(frozen=True)
class Candidate:
    """One playbook and direction that the regime allows, with its rank.

    `arm_rate` is the share of its plans that met their setup, from one of two before the first; 1 where the
    setup is true at this close. `doubt` is larger the fewer plans show it, so that none is tried once alone:
    the bound of Auer, Cesa-Bianchi and Fischer, "Finite-time analysis of the multiarmed bandit" (2002).
    """

    playbook: PlaybookDefinition
    direction: Direction
    expectancy_r: float
    hit_rate: float
    episodes: int
    arm_rate: float
    doubt: float = 0.0
    upper_r: float = 0.0

    @property
    def worth_r(self) -> float:
        """What a plan can be expected to give back of 1R at risk; one that never meets its setup: nothing."""
        return round((1.0 + self.expectancy_r) * self.arm_rate + DOUBT * self.doubt, DIGITS)


@dataclass(frozen=True)
class OwnBase:
    """The own plan of a playbook; `is_over`: its invalidation is true at this close.

    `codes` say why it cannot pass now; none of one that can. Only a plan that is handed out has its reasons.
    """

    candidate: Candidate
    proposal: PolicyProposal
    is_over: bool = False
    codes: tuple[str, ...] = ()
    turn: float = NO_TURN

    @property
    def playbook(self) -> PlaybookDefinition:
        """Whose plan it is."""
        return self.candidate.playbook

    @property
    def direction(self) -> Direction:
        """Of the plan."""
        return self.candidate.direction

    @property
    def rank(self) -> tuple[bool, float, float, int, str, str]:
        """Less is better."""
        one = self.candidate
        return self.is_over, self.turn, -one.worth_r, one.episodes, one.playbook.id, one.direction


class RuleStrategist:
    """Strategist of the rules tier.

    Args:
        playbooks: read-only registry.
        allowed_directions: directions the envelope allows.
        allowed_playbooks: playbooks the envelope allows; empty means all.
        check: what a base has to pass before it is offered; None: every base is.
        exploration: whose turn it is among those that may be as good as the best.
    """

    def __init__(
        self,
        playbooks: PlaybookReader,
        allowed_directions: tuple[str, ...] = ("long", "short"),
        allowed_playbooks: tuple[str, ...] = (),
        check: BaseCheck | None = None,
        exploration: Exploration | None = None,
    ) -> None:
        self._playbooks = playbooks
        self._directions = allowed_directions
        self._allowed = allowed_playbooks
        self._check = check
        self._exploration = exploration or Exploration()

    async def answer(self, snapshot: PolicySnapshot, revision: Revision | None) -> StrategistAnswer:
        """A proposal, a held or tightened position, or an abstention with its reason."""
        if snapshot.position is not None:
            return hold_or_tighten(snapshot, snapshot.position)
        if revision is not None and (better := tighten(revision.proposal, revision.findings)) is not None:
            return StrategistAnswer.trust(
                kind=PlanKind.PROPOSE, reason=f"tightened: {revision.reason}", proposal=better
            )
        refused = None if revision is None else revision.proposal
        return _answer_of(self._bases(snapshot), snapshot, refused)

    def rank(self, snapshot: PolicySnapshot) -> list[OwnBase]:
        """Eligible playbooks and directions whose own plan can pass now, best first, with its reasons."""
        passing = (base for base in self._bases(snapshot) if not base.codes)
        return [replace(base, proposal=with_reasons(base.proposal, snapshot)) for base in passing]

    def _bases(self, snapshot: PolicySnapshot) -> list[OwnBase]:
        """As `rank`, with those that cannot pass now, and without reasons."""
        found = (
            self._base(candidate(playbook, direction, snapshot), snapshot)
            for playbook, direction in self._playbooks.eligible(snapshot.labels, snapshot.timeframe)
            if direction in self._directions and (not self._allowed or playbook.id in self._allowed)
        )
        return self._with_turns(sorted(found, key=lambda base: base.rank), snapshot)

    def _with_turns(self, ranked: list[OwnBase], snapshot: PolicySnapshot) -> list[OwnBase]:
        """The bases, those first whose turn it is: they can pass now, and may earn as much as the best."""
        best = next((base for base in ranked if not base.codes), None)
        if best is None:
            return ranked
        for place, base in enumerate(ranked):
            if not base.codes and base.candidate.upper_r >= best.candidate.expectancy_r:
                version = f"{base.playbook.content_hash}|{base.direction}"
                if (turn := self._exploration.turn(snapshot, version)) < NO_TURN:
                    ranked[place] = replace(base, turn=turn)
        return sorted(ranked, key=lambda base: base.rank)

    def _base(self, one: Candidate, snapshot: PolicySnapshot) -> OwnBase:
        """The base of a playbook, tightened where that is all it needs."""
        proposal = _plan_of(one, snapshot)
        if self._check is None:
            return OwnBase(one, proposal)
        found = self._check.findings(proposal, snapshot)
        if found and (tightened := tighten(proposal, found)) is not None:
            proposal, found = tightened, self._check.findings(tightened, snapshot)
        codes = tuple(finding.code for finding in found if not _tightens(finding)) or tuple(
            finding.code for finding in found
        )
        return OwnBase(one, proposal, self._check.is_over(proposal, snapshot), codes)


def _answer_of(
    bases: list[OwnBase], snapshot: PolicySnapshot, refused: PolicyProposal | None
) -> StrategistAnswer:
    """The first base that can pass, or the first after the refused one; with those passed over for it."""
    ranked, place = [base for base in bases if not base.codes], 0
    if refused is not None:
        tried = (refused.playbook_id, refused.direction)
        places = [k for k, base in enumerate(ranked) if (base.playbook.id, base.direction) == tried]
        place = places[0] + 1 if places else len(ranked)
    chosen = ranked[place] if place < len(ranked) else None
    over = tuple(
        RefusedBase.trust(proposal=with_reasons(base.proposal, snapshot), codes=base.codes)
        for base in bases
        if base.codes and refused is None and (chosen is None or base.rank < chosen.rank)
    )
    if chosen is None:
        where = UNKNOWN if snapshot.labels is None else snapshot.labels.key
        reason = f"{'no other eligible playbook' if ranked else _why_none(bases)} ({where})"
        return StrategistAnswer.trust(kind=PlanKind.ABSTAIN, reason=reason, passed_over=over)
    plan = chosen.candidate
    measured = f"expectancy {plan.expectancy_r:.3f}R over {plan.episodes} episodes"
    turn = "its turn to be tried, " if chosen.turn < NO_TURN else ""
    reason = f"{turn}rank {place + 1} of {len(ranked)}: {measured}"
    proposal = with_reasons(chosen.proposal, snapshot)
    return StrategistAnswer.trust(kind=PlanKind.PROPOSE, reason=reason, proposal=proposal, passed_over=over)


def _why_none(bases: list[OwnBase]) -> str:
    if not bases:
        return "no playbook is eligible in this regime"
    codes = sorted({code for base in bases for code in base.codes})
    return f"no eligible playbook can pass now: {', '.join(codes)}"


def candidate(playbook: PlaybookDefinition, direction: Direction, snapshot: PolicySnapshot) -> Candidate:
    """A playbook and direction with what is known of it at the snapshot."""
    known = expectation_in(snapshot, playbook)
    counts = {(item.playbook_id, item.direction): item for item in snapshot.setups}
    tried = counts.get((playbook.id, direction))
    rate = 0.5 if tried is None else (tried.armed + 1) / (tried.plans + 2)
    if is_true(render_rules(playbook, direction).setup, snapshot):
        rate = 1.0
    total, plans = sum(item.plans for item in snapshot.setups), 0 if tried is None else tried.plans
    doubt = sqrt(log(total + 1) / (plans + 1))
    mean = known.expectancy_r if known.shrunken_r is None else known.shrunken_r
    upper = upper_r(mean, known.n + known.prior.weight_trades)
    return Candidate(playbook, direction, mean, known.hit_rate, known.n, rate, doubt, upper)


def proposal_of(one: Candidate, snapshot: PolicySnapshot) -> PolicyProposal:
    """The playbook's own rules as one hypothesis for this regime, and the reasons that they give."""
    return with_reasons(_plan_of(one, snapshot), snapshot)


def _plan_of(one: Candidate, snapshot: PolicySnapshot) -> PolicyProposal:
    conviction = rules_conviction(one.hit_rate, snapshot.regime)
    return _own_plan(one.playbook, one.direction).model_copy(update={"conviction": conviction})


@lru_cache(maxsize=1_024)
def _own_plan(playbook: PlaybookDefinition, direction: Direction) -> PolicyProposal:
    return PolicyProposal(
        playbook_id=playbook.id,
        direction=direction,
        thesis=f"{playbook.title}, {direction}.",
        activation_window_bars=playbook.activation_window_bars,
        horizon_bars=playbook.horizon_bars,
        conviction=0.0,
        argues_for=direction,
        **render_rules(playbook, direction).payload(),
        **playbook.terms(),
    )


def tighten(proposal: PolicyProposal, findings: tuple[Finding, ...]) -> PolicyProposal | None:
    """The proposal with every major finding's remedy applied; None when one of them is no mere tightening."""
    updates: dict[str, float | int] = {}
    for finding in findings:
        if finding.severity not in (Severity.MAJOR, Severity.BLOCKER):
            continue
        remedy = finding.remedy
        if remedy is None or isinstance(remedy.value, str) or not _tightens(finding):
            return None
        digits = TIGHTENING[remedy.field]
        value = int(remedy.value) if digits == 0 else _floor(float(remedy.value), digits)
        updates[remedy.field] = min(value, updates.get(remedy.field, value))
    if not updates or any(value >= getattr(proposal, name) for name, value in updates.items()):
        return None
    return PolicyProposal(**{**proposal.payload(), **updates})


def _tightens(finding: Finding) -> bool:
    """Whether its remedy only lowers what may be lowered."""
    remedy = finding.remedy
    return remedy is not None and remedy.op == "at_most" and remedy.field in TIGHTENING


def _floor(value: float, digits: int) -> float:
    rounded = round(value, digits)
    return rounded if rounded <= value else round(rounded - 10.0**-digits, digits)


def hold_or_tighten(snapshot: PolicySnapshot, position: PositionView) -> StrategistAnswer:
    """Keep the position, or tighten its stop.

    Move the stop to break-even once it is 1R ahead, and halfway to the close on a shock.
    """
    sign = 1.0 if position.direction == "long" else -1.0
    level = None
    if str(OverrideReason.VOLATILITY_SHOCK) in snapshot.events:
        level = position.stop + 0.5 * (snapshot.close - position.stop)
        reason = "volatility shock: stop halfway to the close"
    elif position.r_now >= BREAK_EVEN_AT_R:
        level = position.entry_price
        reason = "1R ahead: stop to the entry price"
    if level is not None and (level - position.stop) * sign > 0 and (snapshot.close - level) * sign > 0:
        return StrategistAnswer.trust(kind=PlanKind.TIGHTEN, reason=reason, tighter_stop=level)
    return StrategistAnswer.trust(kind=PlanKind.HOLD, reason="the position's own exits are in charge")
