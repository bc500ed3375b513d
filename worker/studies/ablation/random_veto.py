"""A veto by a coin, as often as the fast reflection's own: what a tier has to beat to be worth reading plans.

It stands around the plan provider of a run with reflection switched off and never looks at a plan: all it
knows is the hash of the snapshot, its seed and how many rounds were used. What follows a veto is what
follows one of the reflection: a bounded resubmission, then a stand-down. Only the ablation builds it, and no
setting does. Its rates and its seed stand in the journal of the run, so that the run can be replayed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from schemas.errors import DataError, InvariantViolation
from schemas.invocation import ReflectionInvocationMeta
from schemas.reflection import InvariantContext, PolicyAmendmentRequest, PolicyLevelReflectionResult
from schemas.snapshot import PolicySnapshot
from services.ports import Plan, PlanEnd, PlanProvider, PlanRound, Revision, RevisionBudget
from worker.session import Session

KIND = "run_random_veto"
REASON = "random veto"


@dataclass(frozen=True)
class VetoRate:
    """Share of proposals of one round that are sent back, and of those that are blocked."""

    revise: float
    block: float


@dataclass(frozen=True)
class Veto:
    """A coin: rates by round (the last one holds for later rounds) and the seed of its throws."""

    rates: tuple[VetoRate, ...]
    seed: int

    def end(self, snapshot_hash: str, used: int) -> PlanEnd:
        """PASSED, BLOCKED, or STAND_DOWN for a proposal that is sent back."""
        digest = sha256(f"{self.seed}|{snapshot_hash}|{used}".encode()).digest()
        throw = int.from_bytes(digest[:8], "big") / 2.0**64
        rate = self.rates[min(used, len(self.rates) - 1)]
        if throw < rate.block:
            return PlanEnd.BLOCKED
        return PlanEnd.STAND_DOWN if throw < rate.block + rate.revise else PlanEnd.PASSED

    def payload(self) -> dict[str, Any]:
        """What the journal keeps."""
        return {"seed": self.seed, "rates": [vars(rate) for rate in self.rates]}

    @classmethod
    def of(cls, payload: dict[str, Any]) -> "Veto":
        """The veto of a journal row.

        Raises:
            DataError: the row is not one.
        """
        try:
            rates = tuple(VetoRate(float(rate["revise"]), float(rate["block"])) for rate in payload["rates"])
            return cls(rates, int(payload["seed"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"a row {KIND!r} holds no veto ({error!r}): the journal was changed") from error


class RandomVeto:
    """A plan provider that refuses plans of another one by a coin.

    Args:
        inner: where plans come from; it reflects on nothing.
        veto: the coin.
    """

    def __init__(self, inner: PlanProvider, veto: Veto) -> None:
        self._inner = inner
        self._veto = veto

    async def provide(
        self,
        snapshot: PolicySnapshot,
        invariants: InvariantContext,
        budget: RevisionBudget,
        revision: Revision | None = None,
    ) -> Plan:
        """Answers until the coin lets one pass, blocks one, or the rounds are used."""
        rounds: list[PlanRound] = []
        while True:
            plan = await self._inner.provide(snapshot, invariants, budget, revision)
            rounds += plan.rounds
            if plan.end is not PlanEnd.PASSED:
                return Plan(plan.end, tuple(rounds), plan.reason)
            end = self._veto.end(snapshot.content_hash, budget.used)
            if end is PlanEnd.PASSED:
                return Plan(end, tuple(rounds), plan.reason)
            # Without its invocation record a round can never be frozen, whatever is said of it later.
            rounds[-1] = PlanRound(plan.last.answer)
            if end is PlanEnd.BLOCKED or not budget.take():
                return Plan(end, tuple(rounds), REASON)
            if plan.last.answer.proposal is None:
                raise InvariantViolation("a plan passed without a proposal")
            revision = Revision(plan.last.answer.proposal, (), REASON, budget.used)

    def reflect_amendment(
        self, request: PolicyAmendmentRequest
    ) -> PolicyLevelReflectionResult | ReflectionInvocationMeta:
        """That of the other one: the coin is about plans."""
        return self._inner.reflect_amendment(request)


def vetoed(veto: Veto) -> Callable[[Session], None]:
    """What puts the coin into a session that has begun; see `run_backtest`."""

    def prepare(session: Session) -> None:
        if session.settings.reflection.mode != "off":
            raise InvariantViolation(
                "a random veto stands in for the reflection: reflection.mode must be 'off'"
            )
        first = int(session.bars.times[0])
        session.journal.append(KIND, ts_event=first, known_at=first, payload=veto.payload())
        session.policy_loop.provider = RandomVeto(session.policy_loop.provider, veto)

    return prepare
