"""The characters with which a pattern may begin, and that no mention begins with another one."""

import re
from pathlib import Path

import pytest

from services.deliberation import mentions
from services.deliberation.first_letters import ANY, first_letters
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


def test_every_match_of_the_lexicon_begins_with_a_letter_that_was_foretold():
    text = "\n".join(file.read_text("utf-8") for file in SENTENCES).lower()
    for kind, pattern, _ in ENTRIES:
        begins = {match[0][0] for match in re.finditer(pattern.lower(), text, re.M) if match[0].strip()}
        assert begins <= first_letters(pattern.lower()), kind


def test_entries_of_a_character_find_the_same_one_by_one_and_as_one_pattern(monkeypatch):
    lines = "\n".join(file.read_text("utf-8") for file in SENTENCES).lower().splitlines()[:1500]

    def found(joined_from):
        monkeypatch.setattr(mentions, "JOINED_FROM", joined_from)
        scanner = mentions.Scanner(ENTRIES)
        return [(*match.span(), match.lastgroup) for line in lines for match in scanner.scan(line)]

    one_by_one = found(1_000_000)
    assert len(one_by_one) > 3_000
    assert found(1) == one_by_one


def test_no_pattern_is_joined_once_the_first_words_were_read(monkeypatch):
    monkeypatch.setattr(mentions, "JOINED_UNTIL", 10)
    scanner = mentions.Scanner(ENTRIES)
    for _ in range(3 * mentions.JOINED_FROM):
        list(scanner.scan("earned"))
    assert scanner._joined == {}
    joining = mentions.Scanner(ENTRIES)
    monkeypatch.undo()
    for _ in range(3 * mentions.JOINED_FROM):
        list(joining.scan("earned"))
    assert len(joining._joined) == 1
