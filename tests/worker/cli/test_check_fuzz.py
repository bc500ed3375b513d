"""Whatever is handed to `thinktwice check`: a verdict or a refusal, and never an error of the checks."""

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.worker.cli.checking import edited, run, unedited

WORDS = st.sampled_from(
    ["", " ", "close", "long", "short", "IDLE", "2024-03-15", "close > close", "1e9", "prev(close, 3)"]
)
NUMBERS = (
    st.sampled_from([0, 1, -1, 0.5, 2**63 - 1, -(2**63) + 1, 5e-324, 9e18, -0.0, 10**40])
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=20) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | WORDS, inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in [(*way, key), *places(item, (*way, key))]]


def at(value: Any, way: Iterable[Any]) -> Any:
    for step in way:
        value = value[step]
    return value


def alike(value: Any, texts: list[str]) -> st.SearchStrategy[Any]:
    """Other values of the same kind, so that the door lets many through to the checks."""
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int):
        return st.sampled_from([0, 1, 2, 100, value + 1, value * 2, 2**62]) | st.integers()
    if isinstance(value, float):
        return st.sampled_from([value * 1.1, value * 0.5, -value, value * 1e-3, value * 1e12]) | NUMBERS
    if isinstance(value, list):
        return st.sampled_from([value[:1], value[1:], [*value, *value], value[::-1]])
    if isinstance(value, dict):
        return st.sampled_from([{key: value[key]} for key in value] + [value])
    return st.text(max_size=40) | WORDS | st.sampled_from(texts) if isinstance(value, str) else VALUES


@st.composite
def mutated(draw: st.DrawFn) -> str:
    request = edited()
    texts = [value for value in map(partial(at, request), places(request)) if isinstance(value, str)]
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(places(request)))
        inner = at(request, way)
        deed = draw(st.sampled_from([*["alike"] * 6, "replace", "drop", "add"]))
        if deed == "drop":
            del inner[last]
        elif deed == "add" and isinstance(inner, dict):
            inner[draw(st.text(max_size=8))] = draw(VALUES)
        else:
            inner[last] = draw(alike(inner[last], texts) if deed == "alike" else VALUES)
    return json.dumps(request)


def judged(stdin: str | bytes) -> None:
    """Some verdict or a refusal in one line, and never an error of the checks."""
    result = run("check", "-", "--json", stdin=stdin)
    assert result.exit_code in (0, 2, 3, 4), result.output
    assert "Traceback" not in result.output
    if result.exit_code == 2:
        assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    else:
        assert json.loads(result.stdout)["error"] is None


@given(text=mutated())
def test_check_any_mutated_request_gets_a_verdict_or_a_refusal(text):
    judged(text)


@given(start=st.integers(0, 3_000), length=st.integers(0, 50), junk=st.binary(max_size=20), cut=st.booleans())
def test_check_any_damaged_text_gets_a_verdict_or_a_refusal(start, length, junk, cut):
    data = json.dumps(unedited()).encode()
    judged(data[:start] + junk + (b"" if cut else data[start + length :]))


@given(data=st.binary(max_size=200))
def test_check_any_bytes_are_refused(data):
    assert run("check", "-", stdin=data).exit_code == 2
