"""What is written is read back as the same playbooks; a folder is replaced whole, and no foreign one."""

import json
import os
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ConfigError
from services.playbooks.loader import load_playbooks, parse_playbook
from services.playbooks.measures import alter, with_parameter
from services.playbooks.writing import MANIFEST, playbook_toml, write_playbooks
from worker.studies.scenarios import PLANTED

BOOKS = load_playbooks(None)
ALL = (*BOOKS, *load_playbooks(PLANTED))


def written(folder, active=BOOKS, candidates=(), **manifest):
    return write_playbooks(folder, active, candidates, manifest)


def content(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.*")}


@pytest.mark.parametrize("book", ALL, ids=lambda item: item.id)
def test_playbook_written_is_read_back_as_the_same(book):
    lesson = alter(book, version=7, known_at=123, risk_fraction=0.00125)
    side = lesson.eligibility["long"]
    lesson = alter(
        lesson, eligibility={**lesson.eligibility, "long": alter(side, banned=("up/low", "down/mid"))}
    )
    for item in (book, lesson):
        read = parse_playbook(playbook_toml(item).encode(), Path("book.toml"))
        assert read == alter(item, known_at=None)


@given(
    st.text(min_size=1, max_size=40), st.text(alphabet=string.printable + "\x7f\u2028\u202e\x00", min_size=1)
)
def test_playbook_of_any_text_is_read_back_as_the_same(title, description):
    try:
        book = alter(BOOKS[0], title=title, description=description)
    except ValueError:
        return
    assert parse_playbook(playbook_toml(book).encode(), Path("book.toml")) == book


def test_folder_written_is_what_runtime_playbooks_reads_and_holds_no_candidate(tmp_path):
    tried = alter(with_parameter(ALL[-1], "side", -1.0), version=2)
    folder = tmp_path / "books"
    names = written(folder, ALL, [tried], note="x")
    assert set(names) == set(content(folder))
    assert load_playbooks(folder) == tuple(sorted(ALL, key=lambda definition: definition.id))
    assert load_playbooks(folder / "candidates") == (tried,)
    assert json.loads((folder / MANIFEST).read_text())["note"] == "x"


def test_folder_written_before_is_replaced_whole(tmp_path):
    folder = tmp_path / "books"
    folder.mkdir()
    written(folder, ALL, [alter(ALL[-1], version=2)])
    written(folder, BOOKS[:2])
    assert sorted(content(folder)) == sorted([f"{book.id}.toml" for book in BOOKS[:2]] + [MANIFEST])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["books"]


@pytest.mark.parametrize("name", ["notes.txt", "mine.toml", "candidates/mine.toml"])
@pytest.mark.parametrize("before", [True, False])
def test_folder_with_something_of_somebody_else_is_refused_and_left_alone(tmp_path, name, before):
    folder = tmp_path / "books"
    folder.mkdir()
    if before:
        written(folder)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("mine")
    found = content(folder)
    with pytest.raises(ConfigError, match="holds other files: name an empty folder"):
        written(folder, BOOKS[:2])
    assert content(folder) == found


@pytest.mark.parametrize(
    "manifest", ["[]", "{", '{"made_by": "x", "files": []}', '{"files": ["lifecycle.json"]}']
)
def test_folder_with_a_manifest_of_somebody_else_is_refused(tmp_path, manifest):
    (tmp_path / MANIFEST).write_text(manifest)
    with pytest.raises(ConfigError, match="holds other files"):
        written(tmp_path)


def test_folder_is_left_as_it_was_when_writing_breaks_off(tmp_path, monkeypatch):
    folder = tmp_path / "books"
    written(folder)
    found, replace = content(folder), os.replace

    def broken(source, target):
        if os.path.basename(source) == "new":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("services.playbooks.writing.os.replace", broken)
    with pytest.raises(ConfigError, match=r"cannot be written \(No space left on device\)"):
        written(folder, BOOKS[:2])
    assert content(folder) == found
    assert [path.name for path in tmp_path.iterdir()] == ["books"]


def test_place_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="is a file"):
        written(tmp_path / "file")
    with pytest.raises(ConfigError, match="there is no folder"):
        written(tmp_path / "missing" / "books")


@pytest.mark.parametrize("state", ["empty", "written", "not there yet"])
def test_folder_that_is_a_link_is_followed_and_stays_a_link(tmp_path, state):
    real, link = tmp_path / "elsewhere" / "real", tmp_path / "link"
    real.parent.mkdir()
    link.symlink_to(real)
    if state != "not there yet":
        real.mkdir()
    if state == "written":
        write_playbooks(real, BOOKS[1:], [], {})
    write_playbooks(link, BOOKS[:1], [], {"reason": "new"})
    assert link.is_symlink()
    assert json.loads((real / MANIFEST).read_text())["reason"] == "new"
    assert [book.id for book in load_playbooks(real)] == [BOOKS[0].id]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link"]
    assert [path.name for path in real.parent.iterdir()] == ["real"]


@pytest.mark.parametrize("target", ["nowhere/real", "link"])
def test_folder_that_is_a_link_to_no_place_is_refused_and_stays_a_link(tmp_path, target):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / target)
    with pytest.raises(ConfigError, match="link"):
        write_playbooks(link, BOOKS[:1], [], {})
    assert [path.name for path in tmp_path.iterdir()] == ["link"]
    assert link.is_symlink()
