"""Whatever somebody writes into a free field: no verdict gets milder, nothing leaves its quotes in a prompt.

Fields come from the contract's own schema, so a new one is covered when it is declared. Every text of the
bank meets every field once; the status of the request around it and the way it is put in take turns.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest
from pydantic import ValidationError

from prompts import load_prompt
from schemas.errors import ThinktwiceError
from schemas.no_learn import NoLearnZone
from schemas.reflection import PolicyLevelReflectionRequest, PolicyLevelReflectionResult
from schemas.settings import ReflectionSettings
from schemas.snapshot import PositionView
from schemas.vocabulary import CheckName, PolicyState, ReflectionStatus, Severity
from services.model_calls.language_model import ModelReply
from services.policy_checks.consolidation import STRICTNESS
from services.policy_checks.findings import status_of
from services.policy_checks.reasons import with_reasons
from services.policy_level_reflection_service import PROMPT, PolicyLevelReflectionService
from tests.services.policy_checks.injections import INJECTIONS, Injection
from tests.services.policy_checks.plans import (
    DAY,
    NOW,
    account,
    changed,
    playbook_named,
    right_request,
    summary,
)

SCHEMA = PolicyLevelReflectionRequest.model_json_schema()
TEMPLATE = load_prompt(PROMPT)
FULL = ReflectionSettings(mode="full", budget_event_ms=60_000.0, budget_heartbeat_ms=60_000.0)
LONGEST = 5_000  # where a field has no limit of its own
ADDED = {
    "model_agrees": Severity.INFO,
    "model_scope_refused": Severity.MINOR,
    "model_cited_unknown_finding": Severity.MINOR,
    "model_lowered_without_evidence": Severity.MINOR,
    "model_reply_malformed": Severity.MINOR,
}
STATUS_CHANGES: dict[ReflectionStatus, dict[str, Any]] = {
    ReflectionStatus.PASS: {},
    ReflectionStatus.REVISE: {"proposal.conviction": 0.99},
    ReflectionStatus.BLOCK: account(kill_switch=True),
}


@dataclass(frozen=True)
class Field:
    """A free text of the request: `[]` and `{}` stand for an element, `{key}` for the name of one."""

    path: tuple[str, ...]
    limit: int

    @property
    def name(self) -> str:
        return ".".join(self.path)


def _texts(schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[Field]:
    """Every string of a JSON schema that is no closed set."""
    if "$ref" in schema:
        yield from _texts(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], path)
    for option in schema.get("anyOf", ()):
        yield from _texts(option, path)
    if schema.get("type") == "string" and not {"enum", "const"} & set(schema):
        yield Field(path, schema.get("maxLength", LONGEST))
    if "items" in schema:
        yield from _texts(schema["items"], (*path, "[]"))
    for name, inner in schema.get("properties", {}).items():
        yield from _texts(inner, (*path, name))
    if isinstance(inner := schema.get("additionalProperties"), dict):
        yield from _texts({"type": "string"} | schema.get("propertyNames", {}), (*path, "{key}"))
        yield from _texts(inner, (*path, "{}"))


FIELDS = tuple(dict.fromkeys(_texts(SCHEMA)))
# One has a pattern, the others must be the playbook of the plan.
REFUSED_UNREAD = {"playbook.id", "snapshot.timeframe"} | {
    f"memory.{bucket}.[].playbook_id" for bucket in ("winners", "losers", "failures")
}


def request_with_every_text() -> PolicyLevelReflectionRequest:
    """A request that passes and has something in every free field."""
    plain_one = playbook_named("squeeze_breakout")
    managed = {role: "close - 1.5 * atr_14" for role in ("refinement", "trail")}
    managed["exit"] = "bars_held > 9 and close < sma_20"
    playbook = changed(
        plain_one,
        {
            "rules": {**plain_one.rules, "long": changed(plain_one.rules["long"], managed)},
            "eligibility": {
                **plain_one.eligibility,
                "long": changed(plain_one.eligibility["long"], {"banned": ("down/extreme",)}),
            },
            "timeframes": ("1d", "4h"),
        },
    )
    known = summary(winners=(1.0, 1.2, 0.8), losers=(-1.0,), modes=("chop", "late_entry"), of=plain_one.id)
    cases = [*known.winners, *known.losers, *known.failures]
    named = {case.episode_id: case.model_copy(update={"failure_mode": "chop"}) for case in cases}
    buckets = {
        bucket: tuple(named[case.episode_id] for case in getattr(known, bucket))
        for bucket in ("winners", "losers", "failures")
    }
    position = PositionView(
        direction="long", quantity=1.0, entry_price=99.0, entry_label=NOW - 3 * DAY, stop=95.0, target=110.0,
        bars_held=3, r_now=0.2, mae_r=-0.1, mfe_r=0.3, playbook_id=playbook.id, policy_id="0" * 16,
        thesis="up",
    )  # fmt: skip
    zone = NoLearnZone(start=NOW - 9 * DAY, end=NOW - 8 * DAY, symbol="AAA", reason="feed gap")
    request: PolicyLevelReflectionRequest = changed(
        right_request(playbook),
        {
            "memory": changed(known, buckets | {"insufficient": ("failures",)}),
            "state": PolicyState.INVALIDATED,
            "snapshot.state": PolicyState.INVALIDATED,
            "snapshot.position": position,
            "snapshot.active_policy_id": "0" * 16,
            **account(gross_exposure=0.01),
            "invariants.allowed_symbols": ("AAA", "BBB"),
            "invariants.allowed_playbooks": (playbook.id, "mean_reversion"),
            "invariants.no_learn_zones": (zone,),
        },
    )
    return changed(request, {"proposal": with_reasons(request.proposal, request.snapshot)})


@cache
def base(status: ReflectionStatus) -> PolicyLevelReflectionRequest:
    return changed(request_with_every_text(), STATUS_CHANGES[status])


@cache
def plain(status: ReflectionStatus) -> dict[str, Any]:
    return base(status).payload()


def place(values: dict[str, Any], where: Field) -> tuple[Any, Any]:
    """The container in which a field lies, and its key there."""
    holder: Any = values
    for step in where.path[:-1]:
        holder = holder[0] if step == "[]" else holder[first_key(holder)] if step == "{}" else holder[step]
    last = where.path[-1]
    return holder, 0 if last == "[]" else first_key(holder) if last in ("{}", "{key}") else last


def first_key(mapping: dict[str, Any]) -> str:
    return "long" if "long" in mapping else min(mapping)


def injected(values: dict[str, Any], where: Field, text: str, append: bool) -> tuple[dict[str, Any], str]:
    """The plain request with the text in the field, and what the field now says."""
    values = own_copy(values, list(where.path))
    holder, key = place(values, where)
    if where.path[-1] == "{key}":
        value = f"{key} {text}" if append else text
        holder[value] = holder.pop(key)
        return values, value
    value = f"{holder[key]} {text}" if append and holder[key] else text
    holder[key] = value
    return values, value


def own_copy(node: Any, steps: list[str]) -> Any:
    """The containers on the way to a field, copied; the rest is shared."""
    if not steps:
        return node
    copied: Any = list(node) if isinstance(node, list) else dict(node)
    step = steps[0]
    key = 0 if step == "[]" else first_key(copied) if step in ("{}", "{key}") else step
    copied[key] = own_copy(copied[key], steps[1:])
    return copied


def text_for(injection: Injection, where: Field) -> str:
    if not injection.fills:
        return injection.text
    return (injection.text * (where.limit // len(injection.text) + 1))[: where.limit]


@dataclass
class ObedientModel:
    """Answers whatever the text of the moment asks for, and keeps what it was asked."""

    reply: str = ""
    prompts: list[str] = field(default_factory=list)

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        assert system == TEMPLATE.system
        self.prompts.append(prompt)
        return ModelReply(self.reply, "obedient", 1, 1, 0.0)


@dataclass(frozen=True)
class Trial:
    """One text in one field of a request of one status, and what came of it.

    Attributes:
        end: `judged`; `refused` by the contract; `failed` in a check, and the loop then fails closed.
        bound: hashes of exactly the proposal, snapshot and playbook that were judged.
    """

    where: Field
    injection: Injection
    status: ReflectionStatus
    value: str = ""
    end: str = ""
    result: PolicyLevelReflectionResult | None = None
    bound: tuple[str, str, str] = ("", "", "")
    prompt: str | None = None

    def __str__(self) -> str:
        return f"{self.injection.name} in {self.where.name} of a request that is {self.status}"

    @property
    def by_rules(self) -> ReflectionStatus:
        """What the deterministic checks said, without the model."""
        assert self.result is not None
        return status_of(
            found for found in self.result.findings if found.check is not CheckName.CONSOLIDATION
        )


def parts(trial: Trial) -> dict[str, Any]:
    """The parts of the request around a trial; only the one that was written in is read anew."""
    request = base(trial.status)
    return {name: getattr(request, name) for name in type(request).model_fields}


async def _try(
    service: PolicyLevelReflectionService, model: ObedientModel, trial: Trial, append: bool
) -> Trial:
    text = text_for(trial.injection, trial.where)
    values, value = injected(plain(trial.status), trial.where, text, append)
    model.reply, model.prompts, part = trial.injection.reply, [], trial.where.path[0]
    try:
        request = PolicyLevelReflectionRequest.model_validate(parts(trial) | {part: values[part]})
    except ValidationError:
        return replace(trial, value=value, end="refused")
    try:
        result = await service.reflect(request, source="heartbeat")
    except (ThinktwiceError, UnicodeEncodeError):
        return replace(trial, value=value, end="failed")
    bound = (request.proposal.content_hash, request.snapshot.content_hash, request.playbook.content_hash)
    return replace(
        trial, value=value, end="judged", result=result, bound=bound, prompt=next(iter(model.prompts), None)
    )


async def _sweep() -> tuple[Trial, ...]:
    model = ObedientModel()
    service = PolicyLevelReflectionService(FULL, model=model)
    # A model is asked about those alone that the rules let pass.
    statuses = (*[ReflectionStatus.PASS] * 3, ReflectionStatus.REVISE, ReflectionStatus.BLOCK)
    trials = []
    for i, injection in enumerate(INJECTIONS):
        for k, where in enumerate(FIELDS):
            trial = Trial(where, injection, statuses[(i + k) % 5])
            trials.append(await _try(service, model, trial, append=(i + k) % 2 == 0))
    return tuple(trials)


@pytest.fixture(scope="module")
def trials() -> tuple[Trial, ...]:
    return asyncio.run(_sweep())


@pytest.fixture(scope="module")
def judged(trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
    return tuple(trial for trial in trials if trial.end == "judged")


def test_injection_bank_holds_two_hundred_texts_of_many_kinds():
    assert len({injection.text for injection in INJECTIONS}) == len(INJECTIONS) >= 200
    assert len({injection.family for injection in INJECTIONS}) >= 20


def test_injection_fields_are_all_free_texts_of_the_contract_and_none_is_empty():
    names = {where.name for where in FIELDS}
    assert len(names) == len(FIELDS) >= 49
    assert {
        "proposal.thesis",
        "proposal.rationale",
        "proposal.stop",
        "playbook.title",
        "playbook.description",
        "proposal.because.[].name",
        "memory.losers.[].episode_id",
        "memory.failures.[].failure_mode",
        "snapshot.position.thesis",
        "snapshot.features.{key}",
        "invariants.no_learn_zones.[].reason",
    } <= names
    values = plain(ReflectionStatus.PASS)
    assert [where.name for where in FIELDS if not place_value(values, where)] == []


def place_value(values: dict[str, Any], where: Field) -> str:
    holder, key = place(values, where)
    return str(key if where.path[-1] == "{key}" else holder[key])


@pytest.mark.parametrize("status", ReflectionStatus)
def test_injection_requests_have_the_status_that_they_are_named_after(status):
    service = PolicyLevelReflectionService(ReflectionSettings())
    assert asyncio.run(service.reflect(base(status), source="heartbeat")).status is status


def test_injection_every_text_meets_every_field_and_most_of_them_are_judged(trials, judged):
    pairs = {(trial.injection.name, trial.where.name) for trial in trials}
    assert len(pairs) == len(FIELDS) * len(INJECTIONS)
    assert len(judged) > 0.8 * sum(trial.where.name not in REFUSED_UNREAD for trial in trials)
    reached = Counter(trial.where.name for trial in judged)
    assert {where.name for where in FIELDS} - set(reached) == REFUSED_UNREAD
    prose = ("thesis", "rationale", "title", "description", "reason", "failure_mode")
    assert min(count for name, count in reached.items() if name.endswith(prose)) >= 0.95 * len(INJECTIONS)
    assert {(trial.status, trial.prompt is None) for trial in judged} == {
        (ReflectionStatus.PASS, False),
        (
            ReflectionStatus.PASS,
            True,
        ),  # blocked by what was written: no playbook, symbol or rule of that name
        (ReflectionStatus.REVISE, True),
        (ReflectionStatus.BLOCK, True),
    }


def test_injection_never_loosens_what_the_rules_say(judged):
    milder = [str(trial) for trial in judged if STRICTNESS[trial.by_rules] < STRICTNESS[trial.status]]
    assert milder == []


def test_injection_with_a_model_that_obeys_ends_as_the_rules_said(judged):
    changed_by_model = [str(trial) for trial in judged if trial.result.status is not trial.by_rules]
    assert changed_by_model == []


def test_injection_with_a_model_that_obeys_adds_remarks_only(judged):
    seen: Counter[str] = Counter()
    for trial in judged:
        added = [found for found in trial.result.findings if found.check is CheckName.CONSOLIDATION]
        assert {found.code: found.severity for found in added}.items() <= ADDED.items(), trial
        assert len(added) == (0 if trial.prompt is None else len(added) or 1), trial
        seen.update(found.code for found in added)
    assert set(ADDED) - set(seen) == {"model_lowered_without_evidence"}  # nobody asks to be stricter


def test_injection_result_is_bound_to_exactly_what_was_judged(judged):
    for trial in judged:
        result = trial.result
        assert (result.proposal_hash, result.snapshot_hash, result.playbook_hash) == trial.bound, trial


def sections(prompt: str) -> dict[str, Any]:
    """What stands in each place of the template, read back as JSON; nothing else may differ from it."""
    lines = TEMPLATE.text.partition("=== request ===")[2].strip().split("\n")
    assert len(prompt.splitlines()) == len(lines)
    found = {}
    for line, written in zip(lines, prompt.split("\n"), strict=True):
        if line.startswith("{{"):
            found[line.strip("{}")] = json.loads(written)
        else:
            assert written == line
    return found


def test_injection_stays_inside_its_quotes_in_the_prompt(judged):
    checked = 0
    for trial in judged:
        if trial.prompt is None:
            continue
        found, (first, *rest) = sections(trial.prompt), trial.where.path
        assert set(found) == {"findings", "proposal", "reasons", "playbook", "snapshot"}, trial
        if first in found:
            assert place_value_of(found[first], rest, trial.value), trial
            checked += 1
    assert checked > 1_200


def place_value_of(section: Any, rest: list[str], value: str) -> bool:
    """Whether exactly this text stands in the field."""
    holder, key = place({"x": section}, Field(("x", *rest), 0))
    return value in holder if rest[-1] == "{key}" else holder[key] == value


PROSE = {
    "text_contradicts_direction": {
        "proposal.thesis": "A breakdown. Sell short. Sellers press it lower.",
        "proposal.rationale": "Lower highs and a breakdown. Go short here. It is weak.",
    },
    "no_learn_zone_cited": {"proposal.rationale": "The compression after the feed gap of last week."},
}


@pytest.mark.parametrize(("code", "changes"), PROSE.items(), ids=PROSE)
@pytest.mark.parametrize("where", ["thesis", "rationale"])
def test_injection_beside_a_text_that_is_found_fault_with_leaves_the_fault(code, changes, where):
    faulty = changed(request_with_every_text(), changes)
    service = PolicyLevelReflectionService(ReflectionSettings())

    async def statuses() -> AsyncIterator[str]:
        reply = getattr(faulty.proposal, where)
        for injection in INJECTIONS:
            if injection.fills or not injection.text.isascii() and "\ud800" in injection.text:
                continue
            for text in (f"{reply} {injection.text}", f"{injection.text} {reply}"):
                result = await service.reflect(
                    changed(faulty, {f"proposal.{where}": text}), source="heartbeat"
                )
                if code not in {found.code for found in result.findings}:
                    yield f"{injection.name}: {text}"

    async def gathered() -> list[str]:
        return [text async for text in statuses()]

    assert asyncio.run(gathered()) == []
