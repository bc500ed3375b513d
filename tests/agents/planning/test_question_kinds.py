"""The weights of the kinds of questions: fitted to the examples, kept, and read back as they were."""

import os

import numpy as np
import pytest

from agents.planning import question_kinds

ASKED = ["why", "did", "BOOK", "lose", "in", "DATE"]


@pytest.fixture(scope="module")
def fitted():
    return question_kinds.fit_examples()


@pytest.fixture
def folder(monkeypatch, tmp_path, fitted):
    """Where weights are kept; no model is read yet, and fitting costs nothing."""
    monkeypatch.setenv("THINKTWICE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(question_kinds, "fit_examples", lambda: fitted)
    question_kinds._model.cache_clear()
    yield tmp_path / "cache" / "question-kinds"
    question_kinds._model.cache_clear()


def refuse():
    raise AssertionError("weights that are kept are fitted again")


def demand_same(found, fitted):
    assert np.array_equal(found.weights, fitted.weights)
    assert np.array_equal(found.rarity, fitted.rarity)
    assert (list(found.places), found.words) == (list(fitted.places), fitted.words)


def test_kept_weights_are_those_that_were_fitted(folder, fitted, monkeypatch):
    scores = question_kinds.kind_scores(ASKED)
    assert max(scores, key=scores.__getitem__) == "overview"
    assert len(list(folder.iterdir())) == 1
    question_kinds._model.cache_clear()
    monkeypatch.setattr(question_kinds, "fit_examples", refuse)
    demand_same(question_kinds._model(), fitted)
    assert question_kinds.kind_scores(ASKED) == scores


@pytest.mark.parametrize("damage", [lambda whole: whole[:-900], lambda whole: b"", lambda whole: b"x" * 4096])
def test_damaged_weights_are_fitted_and_kept_again(folder, fitted, damage):
    question_kinds._model()
    (kept,) = folder.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    question_kinds._model.cache_clear()
    demand_same(question_kinds._model(), fitted)
    assert len(kept.read_bytes()) == len(whole)


@pytest.mark.parametrize(
    ("part", "shift", "bit"),
    [
        (b"\x93NUMPY", 8, 1),  # the length of a head: other weights are read
        (b"\x93NUMPY", 8, 6),  # the same: a head without an end
        (b"\x93NUMPY", 21, 4),  # no type of numbers
        (b"PK\x01\x02", 6, 6),  # a version of the format that nobody reads
        (b"PK\x01\x02", 8, 0),  # a part that claims to be encrypted
    ],
)
def test_one_changed_bit_of_a_head_is_noticed(folder, fitted, part, shift, bit):
    question_kinds._model()
    (kept,) = folder.iterdir()
    whole = bytearray(kept.read_bytes())
    whole[whole.index(part) + shift] ^= 1 << bit
    kept.write_bytes(whole)
    question_kinds._model.cache_clear()
    demand_same(question_kinds._model(), fitted)


def test_one_changed_weight_is_noticed(folder, fitted):
    question_kinds._model()
    (kept,) = folder.iterdir()
    whole = bytearray(kept.read_bytes())
    at = whole.index(fitted.weights[7].tobytes())
    whole[at] ^= 1
    kept.write_bytes(whole)
    question_kinds._model.cache_clear()
    demand_same(question_kinds._model(), fitted)


def test_folder_that_cannot_be_written_leaves_the_weights_in_the_process(folder, fitted):
    folder.parent.write_text("a file")
    demand_same(question_kinds._model(), fitted)
    assert folder.parent.read_text() == "a file"


@pytest.mark.parametrize("name", ["question_kinds.py", "question_kinds.txt", "question_classes.toml"])
def test_weights_of_other_sources_are_not_read(folder, fitted, monkeypatch, tmp_path, name):
    question_kinds._model()
    (source,) = (path for path in question_kinds.SOURCES if path.name == name)
    other = tmp_path / name
    other.write_bytes(source.read_bytes() + b"\n")
    changed = tuple(other if path == source else path for path in question_kinds.SOURCES)
    monkeypatch.setattr(question_kinds, "SOURCES", changed)
    question_kinds._model.cache_clear()
    question_kinds._model()
    assert len(list(folder.iterdir())) == 2


def test_weights_are_kept_in_one_step(folder, fitted, monkeypatch):
    def fail(source, target):
        seen.append((source.read_bytes(), target.exists()))
        raise OSError("no room is left")

    seen: list[tuple[bytes, bool]] = []
    monkeypatch.setattr(os, "replace", fail)
    demand_same(question_kinds._model(), fitted)
    ((written, was_there),) = seen
    assert (len(written) > 10_000, was_there, list(folder.iterdir())) == (True, False, [])
