"""Which planned calls can be made? Their tool is offered, their arguments fit it, and none was made before.

Our own tools read their arguments as a host does; another server's tool is held to the plain part of its
schema: required, unknown, types and closed sets. References and patterns are not followed, for a schema is
another's text: the server refuses what it does not take.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from schemas.canonical import canonical_json
from schemas.errors import ToolRefused, nearest
from schemas.evidence_plan import DroppedCall, EvidencePlan, PlannedCall
from schemas.settings.planner import OWN
from schemas.tool import ToolDefinition
from services.evidence.tools import LONGEST_SHOWN, TOOLS, quote_value, read_arguments
from services.model_calls.quoting import visible

MOST_CALLS = 12
MOST_DROPPED = 24
Offered = Mapping[str, Sequence[ToolDefinition]]
CallKey = tuple[str, str, str]
KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (Mapping,),
    "null": (type(None),),
}


def call_key(client: str, method: str, params: Mapping[str, Any]) -> CallKey:
    """What makes two calls the same one: of our own tools what is left out is as its default."""
    arguments: Any = dict(params)
    if client == OWN and method in TOOLS:
        with suppress(ToolRefused):  # what nobody takes is the same where it is written the same
            arguments = read_arguments(TOOLS[method], arguments).payload()
    return client, method, canonical_json(arguments)


def checked_plan(plan: EvidencePlan, tools: Offered, made: Iterable[CallKey]) -> EvidencePlan:
    """The plan with the calls that can be made; the others are dropped, with the reason.

    A plan has at most 12 calls; of what is dropped 24 are named, and the rest is counted.
    """
    known, kept, dropped = set(made), list[PlannedCall](), list[DroppedCall]()
    for call in plan.tools:
        try:
            key = _check(call, tools)
            if key in known:
                raise ToolRefused("the same call is planned or made already")
            if len(kept) == MOST_CALLS:
                raise ToolRefused(f"a plan has at most {MOST_CALLS} calls: ask in several questions")
        except ToolRefused as refused:
            dropped.append(_drop(call, str(refused)))
        else:
            known.add(key)
            kept.append(call)
    return plan.model_copy(update={"tools": tuple(kept), "dropped": (*plan.dropped, *_some(dropped))})


def _some(dropped: list[DroppedCall]) -> list[DroppedCall]:
    if len(dropped) <= MOST_DROPPED:
        return dropped
    last = dropped[MOST_DROPPED]
    more = f"{last.reason} (and {len(dropped) - MOST_DROPPED - 1:,} calls more)"
    return [*dropped[:MOST_DROPPED], last.model_copy(update={"reason": more})]


def _drop(call: PlannedCall, reason: str) -> DroppedCall:
    client, method = (visible(name)[:LONGEST_SHOWN] for name in (call.client, call.method))
    return DroppedCall(client=client, method=method, reason=visible(reason))


def _check(call: PlannedCall, tools: Offered) -> CallKey:
    """The key of a call that can be made.

    Raises:
        ToolRefused: its client or tool is unknown, or an argument does not fit.
    """
    if call.client not in tools:
        raise ToolRefused(f"no client {quote_value(call.client)}.{nearest(call.client, tools)}")
    offered = {tool.name: tool for tool in tools[call.client]}
    if call.method not in offered:
        raise ToolRefused(f"no tool {quote_value(call.method)}.{nearest(call.method, offered)}")
    try:
        key = call_key(call.client, call.method, call.params)
    except (TypeError, ValueError) as error:
        raise ToolRefused("its arguments are no JSON") from error
    if call.client == OWN and call.method in TOOLS:
        read_arguments(TOOLS[call.method], call.params)
    else:
        _demand_fit(offered[call.method].input_schema, call.params)
    return key


def _demand_fit(schema: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    """Refuse arguments that the schema's plain part rules out.

    Raises:
        ToolRefused: one is missing, unknown, of another type or none of its closed set.
    """
    fields, required = schema.get("properties"), schema.get("required")
    known: Mapping[str, Any] = fields if isinstance(fields, Mapping) else {}
    is_open = schema.get("additionalProperties", False) not in (False, None)
    for name in required if isinstance(required, list | tuple) else ():
        if name not in params:
            raise ToolRefused(f"it needs {quote_value(name)}: give it")
    for name, value in params.items():
        if name in known:
            _demand_value(name, value, known[name])
        elif not is_open:
            raise ToolRefused(f"it has no argument {quote_value(name)}.{nearest(name, map(str, known))}")


def _demand_value(name: str, value: Any, schema: Any) -> None:
    if not isinstance(schema, Mapping):
        return
    kind, choices = schema.get("type"), schema.get("enum")
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list | tuple) else []
    if kinds and not any(_is_kind(value, allowed) for allowed in kinds):
        raise ToolRefused(f"{quote_value(name)} is {quote_value(value)}: give {' or '.join(map(str, kinds))}")
    if isinstance(choices, list | tuple) and value not in choices:
        raise ToolRefused(
            f"{quote_value(name)} is {quote_value(value)}: give one of {quote_value(list(choices))}"
        )


def _is_kind(value: Any, kind: Any) -> bool:
    """Whether a value is of a type of JSON Schema; a type that is unknown here rules nothing out."""
    if isinstance(value, bool):
        return kind == "boolean" or kind not in KINDS
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return kind not in KINDS or isinstance(value, KINDS[kind])
