"""With which characters may a pattern begin? Read from it, so that a scanner tries only what may fit.

Read is what the lexicon is written in: literals, classes, groups, alternatives, lookarounds and repeats.
"""

import string
from dataclasses import dataclass

ANY = frozenset(string.printable)
ESCAPED = {"d": frozenset(string.digits), "s": frozenset(string.whitespace)}
ANCHORS = frozenset("bBAZ")
LOOKAROUNDS = ("(?=", "(?!", "(?<=", "(?<!")
Found = tuple[frozenset[str], bool]


def first_letters(pattern: str) -> frozenset[str]:
    """The characters with which a match of a pattern may begin; all of them where it may be empty."""
    letters, may_be_empty = _Reader(pattern).alternatives()
    return ANY if may_be_empty else letters


@dataclass
class _Reader:
    """A place in a pattern."""

    pattern: str
    at: int = 0

    def alternatives(self) -> Found:
        """Up to the end of a group, or of the pattern."""
        letters, may_be_empty = self._sequence()
        while self._next() == "|":
            self.at += 1
            more, empty = self._sequence()
            letters, may_be_empty = letters | more, may_be_empty or empty
        return letters, may_be_empty

    def _next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _sequence(self) -> Found:
        letters: frozenset[str] = frozenset()
        open_still = True
        while self._next() not in ("", "|", ")"):
            more, empty = self._item()
            empty = self._is_optional() or empty
            letters = letters | more if open_still else letters
            open_still = open_still and empty
        return letters, open_still

    def _item(self) -> Found:
        letter = self._next()
        if letter == "(":
            return self._group()
        if letter == "[":
            return self._class(), False
        self.at += 1
        if letter == "\\":
            return self._escaped()
        if letter in "^$":
            return frozenset(), True
        return (ANY if letter == "." else frozenset(letter)), False

    def _escaped(self) -> Found:
        letter = self._next()
        self.at += 1
        if letter in ANCHORS:
            return frozenset(), True
        if letter in ESCAPED:
            return ESCAPED[letter], False
        return (ANY if letter.isalpha() else frozenset(letter)), False

    def _group(self) -> Found:
        looks = next((mark for mark in LOOKAROUNDS if self.pattern.startswith(mark, self.at)), None)
        if looks:
            self.at += len(looks)
        elif self.pattern.startswith("(?P<", self.at):
            self.at = self.pattern.index(">", self.at) + 1
        else:
            self.at += 3 if self.pattern.startswith("(?:", self.at) else 1
        found = self.alternatives()
        self.at += 1
        return (frozenset(), True) if looks else found

    def _class(self) -> frozenset[str]:
        """A class in brackets; a range or an escape in it makes it any character."""
        start = self.at + 1
        self.at = self.pattern.index("]", start + 1) + 1
        inside = self.pattern[start : self.at - 1]
        plain = inside.strip("-")
        return ANY if any(mark in plain for mark in "^\\-") else frozenset(inside)

    def _is_optional(self) -> bool:
        """Take a repeat behind an item; whether it allows none."""
        mark = self._next()
        if mark and mark in "*?+":
            self.at += 1
            return mark != "+"
        if mark == "{":
            end = self.pattern.index("}", self.at)
            least = self.pattern[self.at + 1 : end].partition(",")[0]
            self.at = end + 1
            return least in ("", "0")
        return False
