"""With which characters may a pattern begin? Read from it, so that a scanner tries only what may fit.

Read is what the lexicon is written in: literals, classes, groups, alternatives, lookarounds and repeats.
"""

import string
from dataclasses import dataclass
from functools import lru_cache

ANY = frozenset(string.printable)
WILD = "\0"  # a character that the pattern leaves open
READ = 2  # characters of a beginning
ESCAPED = {"d": frozenset(string.digits), "s": frozenset(string.whitespace)}
ANCHORS = frozenset("bBAZ")
LOOKAROUNDS = ("(?=", "(?!", "(?<=", "(?<!")
NOTHING = frozenset({""})
Found = frozenset[str]


@lru_cache(maxsize=1024)
def beginnings(pattern: str) -> Found:
    """The two characters with which a match of a pattern may begin, `WILD` where one may be any.

    One character, or none, is all that a match has then.
    """
    return _Reader(pattern).alternatives()


def first_letters(pattern: str) -> frozenset[str]:
    """The characters with which a match of a pattern may begin; all of them where it may be empty."""
    letters = {begins[:1] for begins in beginnings(pattern)}
    return ANY if letters & {"", WILD} else frozenset(letters)


def may_begin(found: Found, text: str) -> bool:
    """Whether one of some beginnings is that of a text of at most two characters."""
    first, second = text[:1], text[1:2]
    fitting = {"", first, WILD, first + second, WILD + second, first + WILD, WILD + WILD}
    return not found.isdisjoint(fitting)


def _join(first: Found, second: Found) -> Found:
    """Each beginning with each one behind it."""
    whole = frozenset(begins for begins in first if len(begins) == READ)
    return whole | {(begins + more)[:READ] for begins in first - whole for more in second}


@dataclass
class _Reader:
    """A place in a pattern."""

    pattern: str
    at: int = 0

    def alternatives(self) -> Found:
        """Up to the end of a group, or of the pattern."""
        found = self._sequence()
        while self._next() == "|":
            self.at += 1
            found |= self._sequence()
        return found

    def _next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _sequence(self) -> Found:
        found = NOTHING
        while self._next() not in ("", "|", ")"):
            found = _join(found, self._read_repeat(self._item()))
        return found

    def _item(self) -> Found:
        letter = self._next()
        if letter == "(":
            return self._group()
        if letter == "[":
            return self._class()
        self.at += 1
        if letter == "\\":
            return self._read_escape()
        if letter in "^$":
            return NOTHING
        return frozenset(WILD if letter == "." else letter)

    def _read_escape(self) -> Found:
        letter = self._next()
        self.at += 1
        if letter in ANCHORS:
            return NOTHING
        if letter in ESCAPED:
            return ESCAPED[letter]
        return frozenset(WILD if letter.isalpha() else letter)

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
        return NOTHING if looks else found

    def _class(self) -> Found:
        """A class in brackets; a range or an escape in it makes it any character."""
        start = self.at + 1
        self.at = self.pattern.index("]", start + 1) + 1
        inside = self.pattern[start : self.at - 1]
        plain = inside.strip("-")
        return frozenset(WILD if any(mark in plain for mark in "^\\-") else inside)

    def _read_repeat(self, found: Found) -> Found:
        """An item with the repeat behind it, which is taken."""
        mark = self._next()
        if not mark or mark not in "*?+{":
            return found
        least = mark
        if mark == "{":
            end = self.pattern.index("}", self.at)
            least = self.pattern[self.at + 1 : end].partition(",")[0]
            self.at = end
        self.at += 1
        if self._next() == "?":  # as little as fits
            self.at += 1
        once = found if mark == "?" else found | _join(found, found)
        return once | NOTHING if least in ("*", "?", "", "0") else once
