"""What the checks stop: each fault of a bank planted into plans that pass, and what came of every one.

What broke a contract without meaning to is counted as broken and never as stopped. Nothing is stored.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from schemas.reflection import PolicyLevelReflectionRequest
from schemas.settings import Settings
from schemas.vocabulary import CheckName, ReflectionStatus
from services.policy_checks.bases import REFUSING
from services.statistics.shares import share_interval
from worker.studies.faults.bank import BankFault, Place
from worker.studies.faults.planting import CheckedPlan, Ending, Outcome, plant
from worker.studies.faults.right_plans import rules_alone
from worker.studies.plan_check.plan_check import OpenReader, PlanCheck, check_plan, open_reader

if TYPE_CHECKING:
    from worker.models import Models

MOST_PLANS = 40
SHOWN_TEXTS = 3


@dataclass(frozen=True)
class FaultRow:
    """One kind of fault over all plans, with the texts that passed."""

    fault: BankFault
    outcomes: list[Outcome] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Its figures; `planted` counts what was stopped, passed or broke."""
        planted = self._select("stopped", "passed", "broken")
        return {
            "name": self.fault.name,
            "group": self.fault.group,
            "severity": self.fault.severity.value,
            "expected": list(self.fault.expected),
            "planted": len(planted),
            "does_not_apply": len(self.outcomes) - len(planted),
            "broken": len(self._select("broken")),
            "passed": len(self._select("passed")),
            **_share("stopped", self._select("stopped"), len(planted)),
            "why_broken": _codes(self._select("broken")),
            "why_not": _codes(self._select("misfit")),
            "refusals": _first(outcome.words for outcome in planted if outcome.words),
            "passed_texts": _first(self.texts),
        }

    def _select(self, *endings: Ending) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.ending in endings]


async def study_faults(
    plans: Sequence[CheckedPlan],
    bank: Sequence[BankFault],
    settings: Settings,
    environment: Mapping[str, str],
    *,
    reader: bool = False,
    least: float | None = None,
    most: int = MOST_PLANS,
    models: "Models | None" = None,
) -> dict[str, Any]:
    """The document: `most` plans evenly spread, as they are and with each fault of the bank in them.

    Args:
        plans: in the order of their bars.
        bank: faults.
        settings: thresholds, and the model of the second reader.
        environment: holds its key.
        reader: whether it is asked where rules let a plan pass.
        least: share of each kind that has to be stopped, unless a second reader alone is expected to.
        most: plans that are taken.
        models: asked in place of the configured ones.

    Raises:
        ConfigError: there is no model to ask.
    """
    count = min(most, len(plans))
    taken = [plans[place * len(plans) // count] for place in range(count)]
    rules, rows = rules_alone(settings), [FaultRow(fault) for fault in bank]
    full = rules.model_copy(update={"reflection": rules.reflection.model_copy(update={"mode": "full"})})
    right: list[Outcome] = []
    async with open_reader(full, environment, models) if reader else nullcontext() as second:
        for plan in taken:
            right.append(await _ask(plan.request, rules, second))
            if right[-1].ending == "passed":
                for row in rows:
                    await _try(row, plan, rules, second)
        model = None if second is None else second.models.account.document()
    kinds = [row.document() for row in rows]
    refused = [outcome for outcome in right if outcome.ending != "passed"]
    return {
        "plans": len(plans),
        "right": {"plans": count, **_share("refused", refused, count)},
        "kinds": kinds,
        "reader": reader,
        "model": model,
        "least": least,
        "below_least": [] if least is None else [kind["name"] for kind in kinds if _is_below(kind, least)],
    }


async def _try(row: FaultRow, plan: CheckedPlan, rules: Settings, second: OpenReader | None) -> None:
    planted, texts = plant(row.fault, plan)
    outcome = planted if isinstance(planted, Outcome) else await _ask(planted, rules, second)
    row.outcomes.append(outcome)
    if outcome.ending == "passed":
        row.texts.extend(texts)


async def _ask(request: PolicyLevelReflectionRequest, rules: Settings, second: OpenReader | None) -> Outcome:
    """What rules say, and where they let it pass, the second reader."""
    outcome = _read(await check_plan(request, rules, {}))
    return _read(await second.reflect(request)) if second and outcome.ending == "passed" else outcome


def _read(done: PlanCheck) -> Outcome:
    if done.result is None:
        return Outcome("broken", codes=(type(done.error).__name__,))
    if done.result.status is ReflectionStatus.PASS:
        return Outcome("passed")
    found = [finding for finding in done.result.findings if finding.severity in REFUSING]
    checks = {finding.check for finding in found}
    place: Place = "reader" if checks == {CheckName.CONSOLIDATION} else "rule"
    if CheckName.INVARIANT in checks:
        place = "context"
    return Outcome("stopped", place, tuple(dict.fromkeys(finding.code for finding in found)))


def _is_below(kind: Mapping[str, Any], least: float) -> bool:
    return bool(kind["planted"] and kind["expected"] != ["reader"] and kind["rate"] < least)


def _share(name: str, hits: Sequence[Outcome], trials: int) -> dict[str, Any]:
    return {
        name: len(hits),
        "rate": len(hits) / trials if trials else None,
        "interval": share_interval(len(hits), trials),
        "by_place": _count(outcome.place for outcome in hits if outcome.place),
        "codes": _codes(hits),
    }


def _codes(outcomes: Iterable[Outcome]) -> dict[str, int]:
    return _count(code for outcome in outcomes for code in outcome.codes)


def _count(names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs, the most frequent first."""
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))


def _first(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))[:SHOWN_TEXTS]
