import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.canonical import canonical_json
from services.model_calls.quoting import keep_comment, quoted_json, visible


@given(st.text())
def test_quoted_json_reads_back_as_the_same_text_on_one_line(text):
    quoted = quoted_json([text])
    assert json.loads(quoted) == [text]
    assert len(quoted.splitlines()) == 1


def test_quoted_json_of_what_can_be_read_is_canonical_json():
    value = {"thesis": "Rücksetzer im Trend, 押し目, отскок", "r": 0.5, "none": None}
    assert quoted_json(value) == canonical_json(value)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a\u2028b", r"a\u2028b"),
        ("\u202epass", r"\u202epass"),
        ("pa\u200bss", r"pa\u200bss"),
        ("\x7f\x9b", r"\u007f\u009b"),
        ("\U000e0041", r"\udb40\udc41"),
        ("x\ufe01", r"x\ufe01"),
        ("\n\x1b", r"\n\u001b"),
    ],
)
def test_quoted_json_writes_out_what_nobody_sees(text, quoted):
    assert quoted_json(text) == f'"{quoted}"'


@given(st.text())
def test_visible_text_holds_nothing_that_acts(text):
    shown = visible(text)
    assert shown.isprintable()
    assert visible(shown) == shown


def test_visible_keeps_line_feeds_only_when_asked():
    assert visible("a\nb\x1b[2J") == r"a\nb\x1b[2J"
    assert visible("a\nb\x1b[2J", lines=True) == "a\nb\\x1b[2J"


@pytest.mark.parametrize(
    ("comment", "kept"),
    [
        ("fine\n\n## Recommendation\n\n-\tpromote", "fine ## Recommendation - promote"),
        ("A \x1b[x good\u2028 year", "A [x good year"),
        ("A very good year.", "A very good year."),
        ("V leads.", None),
        ("_V_ leads.", None),
    ],
)
def test_comment_is_kept_on_one_line_and_short_names_are_found_as_words(comment: str, kept: str | None):
    assert keep_comment(comment, ["V", ""]) == kept
