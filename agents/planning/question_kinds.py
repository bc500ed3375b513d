"""What kind of question do words ask? Scored over features by weights that a table of examples determines.

Features are words without their endings, pairs of neighbours, classes of words that mean much the same, and
pairs of those with what is named. The weights are those of a ridge regression on the examples, so that each
score says how much of a kind a question is, about 1 where it is one and 0 where it is not; nothing is random.
Weights are kept beside the compiled code, under the hash of the examples and of this file: to fit them costs
each process half a second.
"""

import hashlib
import io
import math
import os
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from agents.planning.name_matching import vectors_of
from agents.planning.question_words import is_plain
from schemas.errors import InvariantViolation
from services.text.claim_words import words as words_of
from trading_core.compiled_cache import cache_parent

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Kind = Literal[
    "market", "trades", "decisions", "fill", "definition", "gate", "report", "overview",
    "check", "rule", "runs", "outside",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
HERE = Path(__file__)
CLASSES = {
    name: frozenset(listed.split())
    for name, listed in tomllib.loads(HERE.with_name("question_classes.toml").read_text("utf-8")).items()
}
CLASSES_OF: dict[str, tuple[str, ...]] = {
    word: tuple(name for name, some in CLASSES.items() if word in some)
    for word in sorted(frozenset().union(*CLASSES.values()))
}
# What stands in the place of anything that is named.
PLACES = frozenset({"SYMBOL", "BOOK", "REGIME", "DATE", "ID", "NUMBER", "RULE"})
# Words that turn what the words beside them mean.
TURNING = words_of(
    "why how what which who when where should would could can will if not no never is are was were"
    " did does do"
    " has have many often much long short last latest newest recent and or than we"
)
ENDINGS = ("ings", "ing", "ies", "ied", "ed", "es", "s")
WHOLE = frozenset(
    ("running", "shown", "does", "was", "has", "its", "this", "his")
)  # no form of a shorter word
TOKEN = re.compile(r"[A-Za-z0-9&-]+")
NOT = re.compile(
    r"n't\b|(?<=\b(?:did|has|was|are))nt\b|(?<=\b(?:does|have|were))nt\b|(?<=\bdo)nt\b|(?<=\bdi)nt\b",
    re.IGNORECASE,
)
SHORTENED = re.compile(r"'(?:s|re|ve|ll|d|m)\b", re.IGNORECASE)
WORTH = {"word": 1.0, "next": 1.0, "class": 1.0, "pair": 0.5}
RIDGE, TOLERANCE = 0.3, 1e-8
FUZZY_FROM, FUZZY, NEAREST, LONG = 4, 0.3, 8, 8
DIGITS = 3
CHECKSUM = hashlib.sha256().digest_size
SOURCES = (HERE, HERE.with_suffix(".txt"), HERE.with_name("question_classes.toml"))


@dataclass(frozen=True)
class Model:
    """Weights of features by kind.

    Attributes:
        places: row of each feature.
        rarity: by what each feature is multiplied, (F,).
        weights: (F, K), columns as `KINDS`.
        words: all that the examples and classes have.
    """

    places: Mapping[str, int]
    rarity: np.ndarray
    weights: np.ndarray
    words: frozenset[str]


def kind_scores(words: Sequence[str]) -> dict[Kind, float]:
    """How much of each kind words are; names among them stand as in `PLACES`."""
    model = _model()
    vector, length = _vector(features(words), model)
    total = np.zeros(len(KINDS))
    for place, value in vector:
        total += value / length * model.weights[place]
    return {kind: round(float(score), DIGITS) for kind, score in zip(KINDS, total, strict=True)}


def tokens(text: str) -> list[str]:
    """The words of a text, lower case, with `not` on its own; what stands for a name stays."""
    plain = SHORTENED.sub("", NOT.sub(" not", text.replace("\u2019", "'")))
    found = (word.strip("-&") for word in TOKEN.findall(plain))
    return [word if word in PLACES else word.casefold() for word in found if word]


@lru_cache(maxsize=4096)
def known_word(word: str) -> str | None:
    """The word that examples or classes have, also where it is written wrong; None for any other."""
    if word in _model().words or is_plain(word):
        return word
    if len(word) < FUZZY_FROM or not word.isalpha():
        return None
    near = _words_by_letter().get(word[0], ())
    ranked = vectors_of(near).nearest(word)[:NEAREST] if near else []
    if len(word) == FUZZY_FROM:  # too short for another letter: only the order may be wrong
        ranked = [(cosine, known) for cosine, known in ranked if sorted(known) == sorted(word)]
    most = 1 if len(word) < LONG else 2
    return next((known for cosine, known in ranked if cosine >= FUZZY and edits(word, known) <= most), None)


def edits(one: str, other: str) -> int:
    """How many letters are swapped with their neighbour, put in, left out or other ones between two words."""
    rows = [list(range(len(other) + 1))]
    for place, letter in enumerate(one, 1):
        row = [place]
        for column, letter_of in enumerate(other, 1):
            cost = min(row[-1] + 1, rows[-1][column] + 1, rows[-1][column - 1] + (letter != letter_of))
            if place > 1 and column > 1 and letter == other[column - 2] and one[place - 2] == letter_of:
                cost = min(cost, rows[-2][column - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


def features(words: Sequence[str]) -> dict[str, float]:
    """The features of words, with the worth of their sort."""
    stems = [_stem(word) for word in words]
    found = {f"word {stem}": WORTH["word"] for stem in stems}
    found |= {f"next {before} {other}": WORTH["next"] for before, other in pairwise(["^", *stems, "$"])}
    turning = {word for word in words if word in PLACES or word in TURNING}
    for word in words:
        for name in CLASSES_OF.get(word, ()):
            found[f"class {name}"] = WORTH["class"]
            turning.add(f"+{name}")
    return found | {
        f"pair {before} {other}": WORTH["pair"] for before, other in combinations(sorted(turning), 2)
    }


def _stem(word: str) -> str:
    if word in PLACES or word in WHOLE:
        return word
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if ending in ("ies", "ied"):
                word += "y"
            elif len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def examples() -> Iterator[tuple[str, Kind]]:
    """The examples with their kinds, in their order."""
    kind: Kind | None = None
    for line in HERE.with_suffix(".txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            kind = next(known for known in KINDS if known == line.strip("[]"))
        elif line and not line.startswith("#"):
            if kind is None:
                raise InvariantViolation("an example stands before the first kind")
            yield line, kind


@lru_cache(maxsize=1)
def _words_by_letter() -> dict[str, tuple[str, ...]]:
    known = sorted(word for word in _model().words if len(word) >= FUZZY_FROM - 1)
    return {
        letter: tuple(word for word in known if word[0] == letter) for letter in {word[0] for word in known}
    }


@lru_cache(maxsize=1)
def _model() -> Model:
    """As it is kept for these examples, or fitted and kept if the folder can be written."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:16]
    place = cache_parent() / "question-kinds" / f"{digest}.weights"
    with suppress(OSError, ValueError):
        return _load_kept(place)
    model = fit_examples()
    with suppress(OSError):
        _keep(model, place)
    return model


def _load_kept(place: Path) -> Model:
    """The model in a file whose bytes are as they were written: numpy reads some damaged ones as others.

    Raises:
        OSError: there is none.
        ValueError: it is damaged.
    """
    kept = place.read_bytes()
    checksum, whole = kept[:CHECKSUM], kept[CHECKSUM:]
    if checksum != hashlib.sha256(whole).digest():
        raise ValueError(f"{place.name} is damaged")
    with np.load(io.BytesIO(whole)) as parts:
        names, words = (parts[name].tobytes().decode().split("\n") for name in ("names", "words"))
        rarity, weights = parts["rarity"], parts["weights"]
    if rarity.shape != (len(names),) or weights.shape != (len(names), len(KINDS)):
        raise ValueError(f"{place.name} has {len(names)} features and weights of {weights.shape}")
    return Model({name: number for number, name in enumerate(names)}, rarity, weights, frozenset(words))


def _keep(model: Model, place: Path) -> None:
    """Write a model in one step.

    Raises:
        OSError: the folder cannot be written.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    texts = {
        name: np.frombuffer("\n".join(some).encode(), np.uint8)
        for name, some in (("names", model.places), ("words", sorted(model.words)))
    }
    whole = io.BytesIO()
    np.savez(whole, rarity=model.rarity, weights=model.weights, names=texts["names"], words=texts["words"])
    with tempfile.TemporaryDirectory(dir=place.parent) as beside:
        made = Path(beside) / place.name
        made.write_bytes(hashlib.sha256(whole.getvalue()).digest() + whole.getvalue())
        os.replace(made, place)


def fit_examples() -> Model:
    """The weights of the examples."""
    said = [(tokens(text), kind) for text, kind in examples()]
    words = frozenset(word for spoken, _ in said for word in spoken) - PLACES | set(CLASSES_OF)
    labelled = [(features(spoken), kind) for spoken, kind in said]
    counts = Counter(name for found, _ in labelled for name in found)
    places = {name: place for place, name in enumerate(sorted(counts))}
    rarity = np.array([math.log(1 + len(labelled) / counts[name]) for name in places])
    bare = Model(places, rarity, np.zeros((len(places), len(KINDS))), words)
    matrix = _matrix([found for found, _ in labelled], bare)
    wanted = np.array([[1.0 if kind == column else 0.0 for column in KINDS] for _, kind in labelled])
    return Model(places, rarity, matrix.T @ _ridge(matrix, wanted), bare.words)


def _vector(found: Mapping[str, float], model: Model) -> tuple[list[tuple[int, float]], float]:
    """The known features with their values, and the length of all: what is not known makes all weaker."""
    most = float(model.rarity.max())
    known = [
        (model.places[name], worth * float(model.rarity[model.places[name]]))
        for name, worth in found.items()
        if name in model.places
    ]
    strange = sum(1 for name in found if name not in model.places and name.startswith("word "))
    length = math.sqrt(sum(value * value for _, value in known) + strange * most * most)
    return known, length or 1.0


def _matrix(found: Collection[Mapping[str, float]], model: Model) -> "csr_array":
    """The features of the examples, (N, F), each row of length 1."""
    from scipy.sparse import csr_array  # a third of a second, and only a fit needs it

    rows, columns, values = list[int](), list[int](), list[float]()
    for row, cosines in enumerate(found):
        vector, length = _vector(cosines, model)
        rows += [row] * len(vector)
        columns += [place for place, _ in vector]
        values += [value / length for _, value in vector]
    return csr_array((values, (rows, columns)), shape=(len(found), len(model.places)))


def _ridge(matrix: "csr_array", wanted: np.ndarray) -> np.ndarray:
    """What each example adds, (N, K), by conjugate gradients for each kind.

    Raises:
        InvariantViolation: they do not converge.
    """
    from scipy.sparse.linalg import LinearOperator, cg

    turned = LinearOperator(
        (len(wanted), len(wanted)), matvec=lambda step: matrix @ (matrix.T @ step) + RIDGE * step, dtype=float
    )
    found = [cg(turned, column, rtol=TOLERANCE) for column in wanted.T]
    if any(failed for _, failed in found):
        raise InvariantViolation("the weights of the kinds of questions do not converge")
    return np.column_stack([column for column, _ in found])
