"""What the words of a part of a question say: which trades, how many, what was before, whether they order."""

from collections.abc import Sequence
from typing import Literal

from agents.planning.question_forms import (
    ANTECEDENT,
    ASKS,
    DENIED,
    EARLIER,
    EARLIER_KINDS,
    FILLERS,
    FINITE,
    IMPERATIVES,
    LIMITS,
    LOST_TRADES,
    NO_CHANGE,
    OF_ORDER_NOUNS,
    ONLY_WHICH,
    OPENER,
    PART,
    PLACE_OF_EARLIER,
    POINTS,
    WANTED_MANY,
    WON_TRADES,
)
from agents.planning.question_kinds import PLACES, known_word, tokens
from agents.planning.question_names import QuestionNames
from agents.planning.question_words import IT, LOST, NUMBERS, ORDERS, WON
from services.evidence.tool_arguments import MOST_ITEMS


def scored_words(left: Sequence[str], earlier: frozenset[str]) -> tuple[list[str], list[str]]:
    """Words as they are scored, and as they are spelled right: with and without what stands for names."""
    spelled = [word if word in PLACES else known_word(word) or word for word in tokens(" ".join(left))]
    text = " ".join(spelled)
    if earlier - {"it"}:
        text = EARLIER.sub(lambda found: PLACE_OF_EARLIER[EARLIER_KINDS.get(found[1], found[1])], text)
    numbers = (
        "NUMBER" if word.isdecimal() or (word in NUMBERS and word != "one") else word for word in text.split()
    )
    said = _of_its_own_names(list(numbers))
    filler = next((place for place, word in enumerate(said) if word not in FILLERS), 0)
    return said[filler:], [f"<{word.casefold()}>" if word in PLACES else word for word in spelled]


def _of_its_own_names(words: list[str]) -> list[str]:
    """Words with the name that `it` means where the one name stands before it."""
    names = [word for word in words if word in ("SYMBOL", "BOOK")]
    place = words.index(names[0]) if names else len(words)
    if len(set(names)) != 1:
        return words
    return [names[0] if at > place and word in IT else word for at, word in enumerate(words)]


def outcome_of(text: str) -> Literal["won", "lost"] | None:
    """How the trades that are meant ended; None where both, neither or no such ones are."""
    if DENIED.search(text):
        return None
    words = set(text.split())
    won = bool(words & WON) or WON_TRADES.search(text) is not None
    lost = bool(words & LOST) or LOST_TRADES.search(text) is not None
    return None if won == lost else "won" if won else "lost"


def limit_of(text: str) -> int | None:
    """How many are wanted, within what a tool gives."""
    for word in (word for form in LIMITS for word in form.findall(text)):
        number = int(word) if word.isdecimal() else NUMBERS.get(word) if word != "one" else None
        if number and 1 <= number <= MOST_ITEMS:
            return number
    return None


def has_far_limit(text: str) -> bool:
    """Whether more items are wanted than a tool gives, or none."""
    numbers = [
        int(word) for form in (LIMITS[0], WANTED_MANY) for word in form.findall(text) if word.isdecimal()
    ]
    return any(not 1 <= number <= MOST_ITEMS for number in numbers)


def without_denial(text: str) -> str:
    """A text without a greeting and without the words that nothing is to be changed."""
    rest = OPENER.sub("", NO_CHANGE.sub(" ", text))
    return rest if rest.strip(" .,;:!?-") else text


def is_order(words: Sequence[str]) -> bool:
    """Whether it tells somebody to do something that no question is."""
    rest = list(words)
    while rest and rest[0] in ("please", "now", "then", "and", "just", "also", "system", "assistant"):
        rest.pop(0)
    return bool(rest) and (
        (rest[0] in ORDERS and OF_ORDER_NOUNS.isdisjoint(rest[1:2]))
        or rest[:2] in (["you", "must"], ["you", "should"], ["do", "not"])
    )


def earlier_things(text: str, names: QuestionNames) -> frozenset[str]:
    """Kinds of things that an earlier turn is to name."""
    found = {EARLIER_KINDS.get(kind, kind) for kind in EARLIER.findall(text)}
    said = " ".join(word.casefold() for word in names.left)
    is_open = IT & set(said.split()) and ANTECEDENT.search(said) is None
    return frozenset(found | ({"it"} if is_open else set()))


def pieces_of(text: str) -> list[str]:
    """Pieces that ask one after another; a name that is only announced stays with what is asked of it."""
    found: list[str] = []
    for piece in PART.split(text):
        announced = bool(found) and not (
            ASKS.search(found[-1]) or FINITE.search(found[-1]) or _begins(found[-1])
        )
        if announced and POINTS & set(tokens(piece)):
            found[-1] = f"{found[-1]}, {piece}"
        elif found and ONLY_WHICH.match(found[-1]):
            found[-1] = f"{found[-1]} and {piece}"
        elif piece.strip(" ?.!,;"):
            found.append(piece)
    return found


def _begins(text: str) -> bool:
    """Whether it begins with what is to be done."""
    return next((word for word in tokens(text) if word not in FILLERS), "") in IMPERATIVES
