"""What the checks stop: each fault of a bank planted into plans that pass, and what came of every one.

What broke a contract without meaning to is counted as broken and never as stopped. Nothing is stored.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schemas.reflection import PolicyLevelReflectionRequest
from schemas.settings import Settings
from schemas.vocabulary import CheckName, ReflectionStatus
from services.policy_checks.bases import REFUSING
from worker.studies.faults.bank import BankFault, Place
from worker.studies.faults.planting import Ending, Outcome, plant
from worker.studies.faults.right_plans import Source, rules_alone
from worker.studies.plan_check.plan_check import reflect
from worker.studies.study_models import OpenModels, open_models

if TYPE_CHECKING:
    from worker.models import Models

SHOWN_TEXTS = 3
COUNTED: tuple[Ending, ...] = ("broken", "passed", "no_effect", "stopped")
Tried = list[tuple[Outcome, str]]


@dataclass(frozen=True)
class Asking:
    """Who is asked, and how much.

    Attributes:
        reader: whether the second reader is, where rules let a plan pass.
        strategist: whether the strategist is, for the plans.
        most: plans that are taken, evenly spread.
        models: asked in place of the configured ones.
    """

    reader: bool = False
    strategist: bool = False
    most: int = 40
    models: "Models | None" = None


async def study_faults(
    plans: Sequence[Source],
    bank: Sequence[BankFault],
    settings: Settings,
    environment: Mapping[str, str],
    asking: Asking,
    least: float | None = None,
) -> dict[str, Any]:
    """The document: plans of a run as they are, and with each fault of the bank in them.

    Args:
        plans: in the order of their bars.
        bank: faults.
        settings: thresholds, and the models.
        environment: holds their key.
        asking: who is asked.
        least: share of each kind that has to be stopped, unless a second reader alone is expected to.

    Raises:
        ConfigError: there is no model to ask.
    """
    count = min(asking.most, len(plans))
    request = rules_alone(
        settings,
        reflection={"mode": "full" if asking.reader else "deterministic"},
        policy_loop={"strategist": "model" if asking.strategist else "rules"},
    )
    right, uses_models = list[Outcome](), asking.reader or asking.strategist
    tried: dict[str, Tried] = {fault.name: [] for fault in bank}
    unheard = Counter[str | None]()
    models = open_models(request, environment, decides=True, given=asking.models)
    async with models if uses_models else nullcontext() as opened:
        for place in range(count):
            if (plan := await plans[place * len(plans) // count].ask(opened)) is None:
                continue
            right.append(await _ask(plan.request, request, opened, unheard))
            for fault in bank if right[-1].ending == "passed" else ():
                planted, text = plant(fault, plan)
                done = (
                    planted if isinstance(planted, Outcome) else await _ask(planted, request, opened, unheard)
                )
                tried[fault.name].append((done, text))
        model = None if opened is None else opened.account.document()
    kinds = [kind_document(fault, tried[fault.name]) for fault in bank]
    below = [] if least is None else [kind["name"] for kind in kinds if _is_below(kind, least)]
    refused = [outcome for outcome in right if outcome.ending != "passed"]
    return {
        "plans": len(plans),
        "asked": count,
        "right": {"plans": len(right), "refused": len(refused), **_share(refused, refused, len(right))},
        "kinds": kinds,
        "reader": asking.reader,
        "strategist": asking.strategist,
        "model": model,
        "least": least,
        "below_least": below,
        "unmeasured": _tell_unmeasured(kinds, len(right), len(refused), count, unheard),
    }


def _tell_unmeasured(
    kinds: Sequence[Mapping[str, Any]], right: int, refused: int, requested: int, unheard: Counter[str | None]
) -> str | None:
    """Why the figures say nothing of the checks that were asked for; None where they do."""
    if not any(kind["planted"] for kind in kinds):
        return f"no fault was planted: {right} plans for {requested} questions, {refused} of them refused"
    if unheard.total() and not unheard[None]:
        why = ", ".join(f"{reason} {times}" for reason, times in unheard.most_common())
        return f"the second reader gave no verdict on any of {unheard.total()} plans: {why}"
    return None


def kind_document(fault: BankFault, tried: Tried) -> dict[str, Any]:
    """Its figures; `planted` counts what was stopped, had no effect, passed or broke."""

    def of(*endings: Ending) -> list[Outcome]:
        return [outcome for outcome, _ in tried if outcome.ending in endings]

    ended = Counter(outcome.ending for outcome, _ in tried)
    planted, stopped = len(tried) - ended["misfit"], of("stopped")
    passed = dict.fromkeys(text for outcome, text in tried if outcome.ending == "passed")
    return {
        "name": fault.name,
        "severity": fault.severity.value,
        "expected": list(fault.expected),
        "planted": planted,
        "does_not_apply": ended["misfit"],
        **{name: ended[name] for name in COUNTED},
        **_share(stopped, of("stopped", "no_effect"), planted),
        "why_broken": _codes(of("broken")),
        "why_not": _codes(of("misfit")),
        "passed_texts": list(passed)[:SHOWN_TEXTS],
    }


async def _ask(
    request: PolicyLevelReflectionRequest,
    settings: Settings,
    opened: OpenModels | None,
    unheard: Counter[str | None],
) -> Outcome:
    """What rules say, and where they let it pass, the second reader; why it is not heard is counted."""
    done = await reflect(request, rules_alone(settings))
    if opened is not None and settings.reflection.mode == "full" and _passes(done.result):
        done = await reflect(
            request, settings, (), opened.at(request.snapshot.known_at, request.snapshot.symbol).fast
        )
        if done.result is not None and done.result.awaited_reader:
            unheard[done.result.meta.skip_reason] += 1
    if done.result is None:
        return Outcome("broken", (type(done.error).__name__,))
    if _passes(done.result):
        return Outcome("passed")
    found = [finding for finding in done.result.findings if finding.severity in REFUSING]
    checks = {finding.check for finding in found}
    place: Place = "reader" if checks == {CheckName.CONSOLIDATION} else "rule"
    if CheckName.INVARIANT in checks:
        place = "context"
    return Outcome("stopped", tuple(dict.fromkeys(finding.code for finding in found)), place)


def _passes(result: Any) -> bool:
    return result is not None and result.status is ReflectionStatus.PASS


def _is_below(kind: Mapping[str, Any], least: float) -> bool:
    return bool(kind["planted"] and kind["expected"] != ["reader"] and kind["rate"] < least)


def _share(stopped: Sequence[Outcome], hits: Sequence[Outcome], trials: int) -> dict[str, Any]:
    """A share with its interval of 95 %, Clopper and Pearson's, which takes trials as independent."""
    from scipy.stats import binomtest  # loaded where it is used: it takes half a second

    exact = binomtest(len(hits), trials).proportion_ci(0.95, method="exact") if trials else None
    return {
        "rate": len(hits) / trials if trials else None,
        "interval": None if exact is None else (float(exact.low), float(exact.high)),
        "by_place": _count(outcome.place for outcome in stopped if outcome.place),
        "codes": _codes(stopped),
    }


def _codes(outcomes: Iterable[Outcome]) -> dict[str, int]:
    return _count(code for outcome in outcomes for code in outcome.codes)


def _count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))
