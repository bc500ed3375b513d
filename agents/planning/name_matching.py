"""Which known name is nearest to words that a person wrote? Vectors of character n-grams, compared by angle.

Nothing is learned and nothing is fetched: a vector counts the letters, pairs and triples of a name, so that
swapped, doubled and missing letters turn it a little. The same words give the same answer.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

SIZES = (1, 2, 3)
EDGE = "^"
APART = 0.06


class NameVectors:
    """Vectors of known names.

    Args:
        names: as they are spelled; the case is not looked at.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        counts = [Counter(_grams(name)) for name in self.names]
        self._grams = {gram: place for place, gram in enumerate(sorted(set().union(*counts)))}
        self._matrix = np.zeros((len(self.names), len(self._grams)))
        for row, found in enumerate(counts):
            for gram, count in found.items():
                self._matrix[row, self._grams[gram]] = count
            self._matrix[row] /= np.sqrt(sum(count * count for count in found.values()))

    def nearest(self, words: str) -> list[tuple[float, str]]:
        """Every name with the cosine of the angle to the words, in [0, 1], the nearest first."""
        found = Counter(_grams(words))
        vector = np.zeros(len(self._grams))
        for gram, count in found.items():
            if gram in self._grams:
                vector[self._grams[gram]] = count
        length = np.sqrt(sum(count * count for count in found.values()))
        cosines = np.round(self._matrix @ vector / length, 9) if found else np.zeros(len(self.names))
        return sorted(zip(map(float, cosines), self.names, strict=True), key=lambda pair: (-pair[0], pair[1]))

    def match(self, words: str, close: float) -> tuple[str, ...]:
        """The name that the words mean; several where they are as near, none where all are far."""
        ranked = self.nearest(words)
        if not ranked or ranked[0][0] < close:
            return ()
        return tuple(name for cosine, name in ranked if cosine >= max(ranked[0][0] - APART, close))


@lru_cache(maxsize=16)
def vectors_of(names: tuple[str, ...]) -> NameVectors:
    """Their vectors, counted once for the parts of a question and for the questions of a run."""
    return NameVectors(names)


def _grams(words: str) -> Iterator[str]:
    """Its n-grams, with an edge at both ends of pairs and triples."""
    plain = " ".join(words.casefold().replace("_", " ").replace("-", " ").split())
    for size in SIZES:
        text = plain if size == 1 else f"{EDGE}{plain}{EDGE}"
        yield from (text[start : start + size] for start in range(len(text) - size + 1))
