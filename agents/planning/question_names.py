"""Which symbols and playbooks of a run do words name, and which words name something that the run has not?"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.planning.name_matching import NameVectors, vectors_of
from agents.planning.question_words import PLAIN, is_plain, topic_word
from services.text.claim_words import words as words_of

PLAYBOOK_CLOSE, SYMBOL_CLOSE = 0.64, 0.62
NAME_BEFORE = words_of(
    "of for on in about how's did does is has was with at and or vs versus than by fill report run"
)
MOST_WORDS = 3
LONGEST_SYMBOL = 6
DIGITS = re.compile(r"\d+")


@dataclass
class QuestionNames:
    """Names among words.

    Attributes:
        unsure: playbooks that may be meant, of which the words do not say which.
        unknown: words that stand where a name stands, or look like one, and are none.
        strange: all words that nothing is known of.
        left: words that are no part of a name.
        is_guessed: whether a name is written otherwise than the run has it.
    """

    symbols: tuple[str, ...] = ()
    playbooks: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    is_guessed: bool = False

    @classmethod
    def of(cls, words: Sequence[str], context: Mapping[str, Any]) -> "QuestionNames":
        """Playbooks first, as their names are longer, then symbols, then what is unknown."""
        found, left = cls(), list(words)
        found._take_playbooks(left, tuple(context.get("playbooks", ())))
        found._take_symbols(left, tuple(context.get("symbols", ())))
        found.left = tuple(word for word in left if word)
        found.strange = tuple(dict.fromkeys(word for word in found.left if _is_strange(word)))
        found.unknown = tuple(dict.fromkeys(_unknown(left)))
        return found

    def _take_playbooks(self, words: list[str], known: tuple[str, ...]) -> None:
        if not known:
            return
        vectors = vectors_of(known)
        windows = [
            (ranked, start, size)
            for size in range(1, MOST_WORDS + 1)
            for start in range(len(words) - size + 1)
            if (ranked := _playbooks(vectors, words[start : start + size]))
        ]
        for (cosine, names), start, size in sorted(windows, key=lambda one: (-one[0][0], one[2], one[1])):
            if "" in words[start : start + size]:
                continue  # a nearer name was made of one of these words
            words[start : start + size] = [""] * size
            self.is_guessed |= cosine < 1
            if len(names) == 1:
                self.playbooks = tuple(dict.fromkeys((*self.playbooks, names[0])))
            elif not set(names) & set(self.playbooks):
                self.unsure += names

    def _take_symbols(self, words: list[str], known: tuple[str, ...]) -> None:
        whole = {symbol.casefold(): symbol for symbol in known}
        bases = [symbol.partition("/")[0].casefold() for symbol in known]
        whole |= {base: symbol for base, symbol in zip(bases, known, strict=True) if bases.count(base) == 1}
        vectors = vectors_of(known) if known else None
        for place, word in enumerate(words):
            bare = _bare(word)
            symbol = whole.get(bare)
            if symbol is not None and not _is_strange(word) and not word.removesuffix("'s").isupper():
                continue  # a word of the language that is a symbol, too
            if symbol is None and vectors and len(bare) > 3 and _is_strange(word):
                near = vectors.match(bare, SYMBOL_CLOSE)
                symbol = near[0] if len(near) == 1 and _is_misspelling(bare, near[0]) else None
                self.is_guessed |= symbol is not None
            if symbol is not None:
                self.symbols = tuple(dict.fromkeys((*self.symbols, symbol)))
                words[place] = ""


def _is_misspelling(word: str, symbol: str) -> bool:
    """Whether it may be the symbol written wrong; other digits and another base of a pair name another."""
    base = symbol.partition("/")[0]
    is_near = "/" not in word or bool(vectors_of((base,)).match(word.partition("/")[0], SYMBOL_CLOSE))
    return is_near and DIGITS.findall(word) == DIGITS.findall(symbol)


def _bare(word: str) -> str:
    return word.casefold().removesuffix("'s").strip("'./-")


def _is_strange(word: str) -> bool:
    """Whether nothing is known of a word."""
    bare = _bare(word)
    return bool(bare) and not (
        is_plain(bare) or is_plain(word.casefold()) or topic_word(bare) or bare.replace(".", "").isdigit()
    )


def _playbooks(vectors: NameVectors, words: Sequence[str]) -> tuple[float, tuple[str, ...]] | None:
    """The playbooks that some words mean, with how near they are."""
    bare = [_bare(word) for word in words]
    if any(word in PLAIN or not word for word in bare) or (len(bare) == 1 and topic_word(bare[0]) == bare[0]):
        return None
    ranked = vectors.nearest(" ".join(bare))
    names = vectors.close_ones(ranked, PLAYBOOK_CLOSE)
    return (ranked[0][0], names) if names else None


def _unknown(words: Sequence[str]) -> Iterator[str]:
    shouted = sum(word.isupper() for word in words) > len(words) / 2
    for place, word in enumerate(words):
        if not _is_strange(word):
            continue
        before = words[place - 1].casefold() if place else ""
        is_symbol = word.isupper() and 2 <= len(word.partition("/")[0]) <= LONGEST_SYMBOL and not shouted
        if "_" in word or is_symbol or before in NAME_BEFORE:
            yield word
