"""Keeps the key of a model out of what its server says, where that becomes a message or is stored."""

import json
from collections.abc import Callable, Iterable

LEAST = 12  # characters; a shorter key, of a server that wants none, may be a word of any reply
MASK = "***"


class KeyMask:
    """Takes one key out of texts, as it is and as JSON escapes it."""

    def __init__(self, key: str) -> None:
        forms = (key, json.dumps(key)[1:-1], key.replace("/", "\\/"))
        self._key = key
        self._forms = tuple(dict.fromkeys(forms)) if len(key) >= LEAST else ()

    def __call__(self, text: str) -> str:
        """The text without the key."""
        for form in self._forms:
            text = text.replace(form, MASK)
        return text

    def of_reply(self, question: Iterable[str]) -> Callable[[str], str]:
        """How a reply to a question is stored: whole where the key is a word of the question, no secret."""
        return str if any(self._key in text for text in question) else self
