"""What is made once is made by the first who wants it, whole, and read by the others."""

import pytest

from tests import made_once
from tests.made_once import read_made


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(made_once, "FOLDERS", [tmp_path])
    return tmp_path


def test_second_reader_of_a_name_makes_nothing(folder):
    assert read_made("store", lambda: b"one") == b"one"
    assert read_made("store", lambda: pytest.fail("made twice")) == b"one"
    assert read_made("other", lambda: b"two") == b"two"


def test_what_a_process_failed_to_make_is_made_by_the_next(folder):
    (folder / "store.begun").write_bytes(b"ha")
    with pytest.raises(ZeroDivisionError):
        read_made("store", lambda: bytes(1 // 0))
    assert read_made("store", lambda: b"whole") == b"whole"
