"""The characters with which a pattern may begin, and that no mention begins with others."""

import re
from pathlib import Path

import pytest

from services.deliberation import mentions
from services.deliberation.first_letters import ANY, WILD, beginnings, first_letters, may_begin
from services.deliberation.mentions import ENTRIES

SENTENCES = sorted(Path(__file__).parent.glob("*sentences*.txt"))


@pytest.mark.parametrize(
    ("pattern", "letters"),
    [
        ("abc", "a"),
        ("a?bc", "ab"),
        ("(?:un)?proven|shown", "ups"),
        (r"\bmore\b(?= than)", "m"),
        (r"(?<!the )most", "m"),
        ("[-+]?x", "-+x"),
        (r"\d+", "0123456789"),
        ("(?:a|b){0,3}c", "abc"),
        ("(?:a|b){1,3}c", "ab"),
        ("(?P<book>a|b)c", "ab"),
    ],
)
def test_first_letters_of_a_pattern(pattern, letters):
    assert first_letters(pattern) == frozenset(letters)


@pytest.mark.parametrize("pattern", [".x", r"\wx", "[^a]", "[a-z]", "a?", "(?=x)"])
def test_pattern_that_leaves_it_open_may_begin_with_anything(pattern):
    assert first_letters(pattern) == ANY


@pytest.mark.parametrize(
    ("pattern", "begins"),
    [
        ("abc", {"ab"}),
        ("a?bc", {"ab", "bc"}),
        ("ab?c", {"ab", "ac"}),
        ("(?:un)?do|be", {"un", "do", "be"}),
        (r"\bmore\b(?= than)", {"mo"}),
        ("a|b", {"a", "b"}),
        ("ab*?c", {"ab", "ac"}),
        ("(?:a|b){2}", {"a", "b", "aa", "ab", "ba", "bb"}),
        ("(?:ab){0,3}c", {"ab", "c"}),
        ("[-+]?x", {"-x", "+x", "x"}),
        (r"a\w", {"a" + WILD}),
        (".b", {WILD + "b"}),
    ],
)
def test_two_characters_with_which_a_pattern_begins(pattern, begins):
    assert beginnings(pattern) == begins


@pytest.mark.parametrize("text", ["ab", "xb", "c", "cd"])
def test_text_that_begins_as_a_pattern_may(text):
    assert may_begin(beginnings("ab|.b|c"), text)


@pytest.mark.parametrize("text", ["ac", "b", "a", ""])
def test_text_that_begins_as_no_match_of_a_pattern(text):
    assert not may_begin(beginnings("ab|.b|c"), text)


def test_every_match_of_the_lexicon_begins_as_was_foretold():
    text = "\n".join(file.read_text("utf-8") for file in SENTENCES).lower()
    for kind, pattern, _ in ENTRIES:
        found = beginnings(pattern.lower())
        begins = {match[0][:2] for match in re.finditer(pattern.lower(), text, re.M) if match[0].strip()}
        assert [letters for letters in begins if not may_begin(found, letters)] == [], kind


def test_scanner_finds_what_trying_every_entry_at_every_word_finds(monkeypatch):
    lines = "\n".join(file.read_text("utf-8") for file in SENTENCES).lower().splitlines()[:1500]

    def found():
        scanner = mentions.Scanner(ENTRIES)
        return [(*match.span(), match.lastgroup) for line in lines for match in scanner.scan(line)]

    by_beginnings = found()
    assert len(by_beginnings) > 3_000
    monkeypatch.setattr(mentions, "may_begin", lambda found, begins: True)
    assert found() == by_beginnings
