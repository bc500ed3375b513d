"""The fast reflection on one request, outside any run: what `thinktwice check` starts.

Service, thresholds, models, cassettes and budgets are those of a run with the same settings. There is no
store, no past bar for the rule linter, and no memory but the one that the request carries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from schemas.errors import CassetteMiss, ConfigError, ModelRefused
from schemas.reflection import PolicyLevelReflectionRequest, PolicyLevelReflectionResult
from schemas.settings import Settings
from schemas.vocabulary import CheckName, InvocationOutcome
from services.model_calls.language_model import LanguageModel
from services.model_calls.wording import Wordings
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.ports import Critic
from trading_core.rules import evaluate_for_symbol, parse

if TYPE_CHECKING:
    from worker.models import Models

NO_EVENT = "none"


@dataclass(frozen=True)
class PlanCheck:
    """How one check went: a result, or the error that ended it.

    Attributes:
        result: verdict and findings; None after an error.
        over_budget: whether it took longer than its budget.
        model: what calls of models cost, as in the JSON document of a run; None in mode `deterministic`.
        error: what a check raised.
    """

    result: PolicyLevelReflectionResult | None
    over_budget: bool = False
    model: dict[str, Any] | None = None
    error: Exception | None = None


async def check_plan(
    request: PolicyLevelReflectionRequest,
    settings: Settings,
    environment: Mapping[str, str],
    critics: Sequence[Critic] = (),
    models: "Models | None" = None,
) -> PlanCheck:
    """Reflect on a request under these settings; `models` are asked instead of the configured ones.

    Raises:
        ConfigError: mode `off`, or mode `full` without a model, a key, a price or a cassette.
        CassetteMiss: the cassette does not hold the model's reply.
    """
    if settings.reflection.mode == "off":
        raise ConfigError("reflection mode 'off' checks nothing: use --reflection deterministic, or full")
    if settings.reflection.mode == "deterministic":
        return await reflect(request, settings, critics)
    from worker.studies.study_models import open_models  # rules alone wait for none of it

    async with open_models(settings, environment, decides=True, given=models) as opened:
        question = opened.at(request.snapshot.known_at, request.snapshot.symbol)
        done = await reflect(request, settings, critics, question.fast)
        return replace(done, model=opened.account.document())


async def reflect(
    request: PolicyLevelReflectionRequest,
    settings: Settings,
    critics: Sequence[Critic] = (),
    model: LanguageModel | None = None,
) -> PlanCheck:
    """What the rules say, and the second reader where there is a `model`."""
    symbols, anonymise = (request.snapshot.symbol,), settings.llm.anonymise
    service = PolicyLevelReflectionService(
        settings.reflection,
        model=model,
        recorded=True,
        market_waits=True,
        wordings=Wordings.of_run(symbols, anonymise=anonymise),
        critics=critics,
    )
    # The budget is the one of the event that opened the boundary, as in a run.
    source = request.snapshot.events[0] if request.snapshot.events else NO_EVENT
    _load_engine()
    try:
        result = await service.reflect(request, source=source)
    except (CassetteMiss, ModelRefused):
        raise
    except Exception as error:  # noqa: BLE001 - the one boundary of a check: it fails closed and says so
        return PlanCheck(None, error=error)
    return PlanCheck(result, over_budget=result.meta.latency_ms > settings.reflection.budget_ms(source))


def _load_engine() -> None:
    """Load what a run has loaded before its first reflection, so that the latency is that of the checks."""
    evaluate_for_symbol(parse("close"), {"close": np.array([1.0])})


ERROR = "error"


def check_document(
    request: PolicyLevelReflectionRequest, settings: Settings, done: PlanCheck
) -> dict[str, Any]:
    """The JSON document of one check; the same keys whatever came of it."""
    result = done.result
    found = [] if result is None else [each.model_dump(mode="json") for each in result.findings]
    findings: dict[str, list[dict[str, Any]]] = {name.value: [] for name in CheckName}
    for finding in found:
        findings[finding.pop("check")].append(finding)
    outcome = InvocationOutcome.ERROR if result is None else result.meta.outcome
    return {
        "status": ERROR if result is None else result.status.value,
        "symbol": request.snapshot.symbol,
        "playbook_id": request.proposal.playbook_id,
        "direction": request.proposal.direction,
        "findings": findings,
        "requested_revisions": [] if result is None else list(result.requested_revisions),
        "deferred": [] if result is None else list(result.deferred),
        "checks_run": [] if result is None else [name.value for name in result.checks_run],
        "reflection": settings.reflection.mode,
        "tier": None if result is None else result.meta.tier,
        "outcome": outcome.value,
        "skip_reason": None if result is None else result.meta.skip_reason,
        "latency_ms": None if result is None else round(result.meta.latency_ms, 3),
        "over_budget": done.over_budget,
        "model": done.model,
        "snapshot_hash": request.snapshot.content_hash,
        "proposal_hash": request.proposal.content_hash,
        "playbook_hash": request.playbook.content_hash,
        "prompt_hash": None if result is None else result.prompt_hash,
        "error": None
        if done.error is None
        else {"type": type(done.error).__name__, "message": str(done.error)},
    }
