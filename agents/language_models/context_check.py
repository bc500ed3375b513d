"""Whether a server read the whole of a question, told by the tokens that it counted of it.

Ollama shortens what is longer than its context and says nothing. What is too long fills the context to the
token: a server that tells its context convicts itself with the first such question. Where it does not, of two
questions of different length that fill the same one the longer was cut; and of one model and seat no question
has half as many bytes again for each token as another. The first of all that is cut by less than half then
cannot be told from one that fits.
"""

from math import inf
from typing import Any

MOST_BYTES_OF_TOKEN = 6  # of a question: no tokenizer takes more of JSON and English at once
# Tokens in which contexts are set; a server that counted fewer did not count what it read.
CONTEXT_STEP, LONGER = 256, 1.05  # and times the bytes of a text that fits
SPARSER = 1.5  # times the bytes of a token, between prose and numbers of one seat


class ContextCheck:
    """What a server read of the questions of one seat."""

    def __init__(self) -> None:
        self._shortest: dict[int, int] = {}  # bytes of the shortest question that filled so many tokens
        self._densest = inf  # bytes of a token, at least

    def is_cut(self, read: int, size: int, context: int = 0) -> bool:
        """Whether a question of `size` bytes was cut, of which `read` tokens were counted.

        `context` is what the server says that it holds, in tokens; 0: it does not.
        """
        if read < CONTEXT_STEP:
            return False
        shortest = self._shortest[read] = min(size, self._shortest.get(read, size))
        is_full = read % CONTEXT_STEP == 0 and size >= LONGER * shortest
        is_sparse = size / read > min(MOST_BYTES_OF_TOKEN, SPARSER * self._densest)
        self._densest = min(self._densest, size / read)
        return is_full or is_sparse or 0 < context <= read


def loaded_context(document: Any, model: str) -> int:
    """Tokens that a loaded model holds, as Ollama's `/api/ps` lists it; 0 where it is not told."""
    models = document.get("models") if isinstance(document, dict) else None
    for each in models if isinstance(models, list) else ():
        if isinstance(each, dict) and each.get("model") in (model, f"{model}:latest"):
            shown = each.get("context_length")
            return shown if isinstance(shown, int) else 0
    return 0
