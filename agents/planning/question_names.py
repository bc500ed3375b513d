"""Which symbols and playbooks of a run do words name, and which words name something that the run has not?

A playbook is named by its id, by its words, also misspelled, or by a part that no other playbook has; a
symbol by itself, misspelled, by the first half of a pair, or by what its company is called.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.planning.name_matching import NameVectors, vectors_of
from agents.planning.question_forms import COUNTED
from agents.planning.question_kinds import PLACES, known_word
from agents.planning.question_words import COMPANIES, PLAIN, is_plain, term_of
from services.text.claim_words import words as words_of

PLAYBOOK_CLOSE, SYMBOL_CLOSE, EXACT = 0.64, 0.62, 0.95
NAME_BEFORE = words_of("of for on in about how's did does has fill report run")
JOINING, ASKED_OF = words_of("and or vs versus than with"), words_of("is was are were")
BESIDE_A_PARAMETER = frozenset({"of book", "in book", "for book", "BOOK"})
OF_A_PLAYBOOK = words_of("playbook playbooks strategy strategies setup setups system trades one's")
OF_NAMES = words_of("of for")
COUNTING = words_of("last latest newest recent past previous first top than least most about over under to")
COUNTED_NOUN = re.compile(rf"(?:{COUNTED}|bars?|days?|weeks?|months?|years?|percent)", re.IGNORECASE)
FEWEST_DIGITS = 3  # of a number that is a symbol wherever it stands
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
        left: the words, with `SYMBOL` or `BOOK` in place of each name.
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
        found._take_companies(left, tuple(context.get("symbols", ())))
        found._take_symbols(left, tuple(context.get("symbols", ())))
        found.left = tuple(
            term_of(word) or word for word in _with_parameters([word for word in left if word])
        )
        found.strange = tuple(dict.fromkeys(word for word in found.left if _is_strange(word)))
        found.unknown = tuple(dict.fromkeys((*found.unknown, *_unknown(found.left))))
        return found

    def _take_playbooks(self, words: list[str], known: tuple[str, ...]) -> None:
        if not known:
            return
        vectors = vectors_of(known)
        windows = [
            (ranked, start, size)
            for size in range(1, MOST_WORDS + 1)
            for start in range(len(words) - size + 1)
            if (ranked := _playbooks(vectors, words[start : start + size], words[start + size :][:1]))
        ]
        for (cosine, names), start, size in sorted(
            windows, key=lambda window: (-window[0][0], window[2], window[1])
        ):
            if any(word in ("", "BOOK") for word in words[start : start + size]):
                continue  # a nearer name was made of one of these words
            words[start : start + size] = ["BOOK"] + [""] * (size - 1)
            self.is_guessed |= cosine < 1
            if len(names) == 1:
                self.playbooks = tuple(dict.fromkeys((*self.playbooks, names[0])))
            elif not set(names) & set(self.playbooks):
                self.unsure += names

    def _take_companies(self, words: list[str], known: tuple[str, ...]) -> None:
        bases = {symbol.partition("/")[0].upper(): symbol for symbol in reversed(known)}
        for size in range(MOST_WORDS, 0, -1):
            for start in range(len(words) - size + 1):
                named = " ".join(_bare(word) for word in words[start : start + size])
                symbols = [bases[company] for company in COMPANIES.get(named, ()) if company in bases]
                if symbols:
                    words[start : start + size] = ["SYMBOL"] + [""] * (size - 1)
                    self.symbols = tuple(dict.fromkeys((*self.symbols, symbols[0])))
                    self.is_guessed = True
                elif named in COMPANIES and all(_is_strange(word) for word in words[start : start + size]):
                    self.unknown = (*self.unknown, named)

    def _take_symbols(self, words: list[str], known: tuple[str, ...]) -> None:
        whole = {symbol.casefold(): symbol for symbol in known}
        bases = [symbol.partition("/")[0].casefold() for symbol in known]
        whole |= {base: symbol for base, symbol in zip(bases, known, strict=True) if bases.count(base) == 1}
        vectors, shouted = vectors_of(known) if known else None, _is_shouted(words)
        for place, word in enumerate(words):
            if word in PLACES:
                continue
            bare = _bare(word)
            symbol = whole.get(bare)
            if symbol is not None and not _is_strange(word) and not _is_named(words, place, shouted):
                continue  # a word of the language, or a number, that is a symbol, too
            if symbol is None and vectors and len(bare) > 3 and _is_strange(word):
                near = vectors.match(bare, SYMBOL_CLOSE)
                symbol = near[0] if len(near) == 1 and _is_misspelling(bare, near[0]) else None
                if (
                    symbol is not None
                    and word.isupper()
                    and not shouted
                    and _letters(word) != _letters(symbol)
                ):
                    self.unknown = (*self.unknown, word)  # another symbol as likely as a slip
                    continue
                self.is_guessed |= symbol is not None
            if symbol is not None:
                self.symbols = tuple(dict.fromkeys((*self.symbols, symbol)))
                words[place] = "SYMBOL"


def _with_parameters(words: Sequence[str]) -> Iterator[str]:
    """The words, with "parameter" for what a playbook may call one: `failure_atr` beside its name."""
    for place, word in enumerate(words):
        beside = {" ".join(words[place + 1 : place + 3]).casefold(), words[place - 1] if place else ""}
        is_one = "_" in word and not beside.isdisjoint(BESIDE_A_PARAMETER)
        yield "parameter" if is_one and all(known_word(part) for part in _parts(word)) else word


def _letters(name: str) -> str:
    """A name without its marks."""
    return re.sub(r"\W", "", name).casefold()


def _is_shouted(words: Sequence[str]) -> bool:
    """Whether most words are in capitals, so that these name nothing."""
    spoken = [word for word in words if word and word not in PLACES]
    return sum(word.isupper() for word in spoken) > len(spoken) / 2


def _is_named(words: Sequence[str], place: int, shouted: bool) -> bool:
    """Whether a word of the language, or a number, stands for the symbol that is written so."""
    word, before = words[place], words[place - 1].casefold() if place else ""
    if word.isdigit():
        return not _is_count(words, place) and (before in NAME_BEFORE or len(word) >= FEWEST_DIGITS)
    return before in NAME_BEFORE if shouted else word.removesuffix("'s").isupper()


def _is_count(words: Sequence[str], place: int) -> bool:
    """Whether a number says how many."""
    before, after = words[place - 1].casefold() if place else "", "".join(words[place + 1 : place + 2])
    return before in COUNTING or after in ("%", "x") or COUNTED_NOUN.fullmatch(after) is not None


def _is_misspelling(word: str, symbol: str) -> bool:
    """Whether it may be the symbol written wrong; other digits and another base of a pair name another."""
    base = symbol.partition("/")[0]
    is_near = "/" not in word or bool(vectors_of((base,)).match(word.partition("/")[0], SYMBOL_CLOSE))
    return is_near and DIGITS.findall(word) == DIGITS.findall(symbol)


def _bare(word: str) -> str:
    return word.casefold().removesuffix("'s").strip("'./-")


def _is_strange(word: str) -> bool:
    """Whether nothing is known of a word."""
    if word in PLACES:
        return False
    bare = _bare(word)
    return bool(bare) and not (
        is_plain(bare)
        or is_plain(word.casefold())
        or all(known_word(part) for part in bare.replace("/", "-").split("-") if part)
        or bare.replace(".", "").isdigit()
    )


def _playbooks(
    vectors: NameVectors, words: Sequence[str], following: Sequence[str]
) -> tuple[float, tuple[str, ...]] | None:
    """The playbooks that some words mean, with how near they are."""
    bare = [_bare(word) for word in words]
    if any(word in PLACES or bared in PLAIN or not bared for word, bared in zip(words, bare, strict=True)):
        return None
    is_named = bool(following) and following[0].casefold() in OF_A_PLAYBOOK
    if exact := tuple(name for name in vectors.names if name.casefold() == bare[0] and len(bare) == 1):
        return 1.0, exact
    if len(bare) == 1 and "_" not in bare[0]:
        parts = {part: [name for name in vectors.names if part in _parts(name)] for part in _forms(bare[0])}
        names = tuple(dict.fromkeys(name for some in parts.values() for name in some))
        if names and (is_named or known_word(bare[0]) != bare[0]):
            return 0.9, names
        if known_word(bare[0]) == bare[0]:
            return None
    ranked = vectors.nearest(" ".join(bare))
    if ranked[0][0] < EXACT and all(known_word(word) == word for word in bare):
        return None  # all words of the language
    names = vectors.close_ones(ranked, PLAYBOOK_CLOSE)
    return (ranked[0][0], names) if names else None


def _parts(name: str) -> list[str]:
    return name.casefold().replace("-", "_").split("_")


def _forms(word: str) -> tuple[str, ...]:
    """A word and what it is without an ending."""
    return tuple(dict.fromkeys((word, word.removesuffix("s"))))


def _unknown(words: Sequence[str]) -> Iterator[str]:
    """Strange words that look like a name, or stand where one stands and nothing else is named."""
    shouted = _is_shouted(words)
    is_named = bool({"SYMBOL", "BOOK", "ID"} & set(words))
    for place, word in enumerate(words):
        before = words[place - 1].casefold() if place else ""
        if word.isdigit() and len(word) >= FEWEST_DIGITS and before in OF_NAMES and not is_named:
            following = [next_word.casefold() for next_word in words[place + 1 : place + 2]]
            if all(next_word in NAME_BEFORE for next_word in following):
                yield word
        is_number = word.isdigit() and len(word) >= FEWEST_DIGITS and not _is_count(words, place)
        if not _is_strange(word) and not is_number:
            continue
        is_symbol = word.isupper() and 2 <= len(word.partition("/")[0]) <= LONGEST_SYMBOL and not shouted
        is_listed = before in JOINING and place > 1 and words[place - 2] in ("SYMBOL", "BOOK")
        is_subject = before in ASKED_OF and place == 1
        stands_so = before in NAME_BEFORE or is_subject
        if is_number:
            if is_listed and words[place - 2] == "SYMBOL":
                yield word
            continue
        is_meant = (stands_so or is_symbol) and not is_named
        if "_" in word or is_listed or is_meant or (is_symbol and stands_so):
            yield word
