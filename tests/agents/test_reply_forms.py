"""A model writes its reply in order: what it decides has to come after the words that say why."""

import dataclasses
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter

from agents.reply_forms import FORMS_ON_DEMAND, SEAT_FORMS
from prompts import load_prompt
from services.deliberation.forms import CORRECTION, OUTLINE, REASONS
from services.model_calls.reply_format import DecisionField, ReplyFormat
from tests.each_case import check_each

FORMS = {form.name: form for form in (*SEAT_FORMS.values(), *FORMS_ON_DEMAND.values())}
# Lists of topics, claims and reasons: nothing but what the text is made of.
WITHOUT_DECISION = {OUTLINE, CORRECTION, REASONS, SEAT_FORMS["slow"].name}
ANSWER = ("Answer with one JSON object", "How you answer")


def models_of(kind: Any) -> Iterator[type[BaseModel]]:
    """Every model within the contract of a reply."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
        for field in kind.model_fields.values():
            yield from models_of(field.annotation)
        return
    for inner in get_args(kind):
        yield from models_of(inner)


def decisions_of(model: type[BaseModel]) -> Iterator[tuple[str, DecisionField]]:
    """The fields of a model that decide, with what has to stand before each."""
    for name, field in model.model_fields.items():
        yield from ((name, mark) for mark in field.metadata if isinstance(mark, DecisionField))


def misplaced(form: ReplyFormat) -> list[str]:
    """Decisions that stand before a reason of theirs, in a model or in the schema that is sent."""
    found, sent = [], list(form.schema["properties"])
    for model in models_of(form.contract):
        fields = list(model.model_fields)
        for name, mark in decisions_of(model):
            for reason in mark.after:
                found += [name] * (fields.index(reason) > fields.index(name))
                if {name, reason} <= set(sent):
                    found += [name] * (sent.index(reason) > sent.index(name))
    return found


@check_each("form", FORMS.values(), ids=FORMS)
def test_decision_of_every_reply_stands_behind_its_reasons_in_the_schema(form):
    assert misplaced(form) == []
    decides = any(True for model in models_of(form.contract) for _ in decisions_of(model))
    assert decides is (form.name not in WITHOUT_DECISION)


@check_each("form", FORMS.values(), ids=FORMS)
def test_decision_of_every_reply_stands_behind_its_reasons_in_the_prompt(form):
    system = load_prompt(form.name).system
    shown = next(system[system.index(words) :] for words in ANSWER if words in system)
    for model in models_of(form.contract):
        for name, mark in decisions_of(model):
            for reason in mark.after:
                reason_at = max(shown.find(f'"{reason}"'), shown.find(f"<{reason}>"))
                assert -1 < reason_at < shown.find(f'"{name}"'), (model.__name__, reason, name)


def test_decision_before_its_reason_is_found_in_a_schema():
    class Hasty(BaseModel):
        verdict: str
        why: str

    Hasty.model_fields["verdict"].metadata.append(DecisionField(("why",)))
    form = dataclasses.replace(SEAT_FORMS["fast"], contract=Hasty)
    assert TypeAdapter(form.contract).validate_python({"verdict": "pass", "why": ""})
    assert misplaced(form) == ["verdict", "verdict"]
