"""`init`: a folder to begin with, whole or not at all, and the commands that it prints."""

import json
import os
import re
import stat
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.playbooks.loader import load_playbooks
from tests.commands.started import on_path
from tools.docs_examples import in_shell
from worker.cli import app
from worker.settings import load_settings

FILES = [".gitignore", "bars/daily.csv", "first_look.ipynb", "playbooks/donchian.toml", "thinktwice.toml"]
DEFAULT = re.compile(r"^# (?=[a-z_]+ = )", re.MULTILINE)


def read_text(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["init", *words])
    return done.exit_code, done.stdout, done.stderr


def there(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("THINKTWICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_that_init_prints_work_as_printed(here):
    name = "my 'first' $HOME run"
    code, shown, _ = read_text(name)
    assert code == 0
    commands = [line.strip() for line in shown.partition("Next:\n")[2].splitlines()]
    assert commands[1:] == ["thinktwice backtest thinktwice.toml", "thinktwice page latest --html page.html"]
    done = in_shell(" && ".join(commands), here, on_path())
    assert done.code == 0, done.output
    assert re.search(r"trades +4\d +won", done.output)
    assert "page of run r0001: page.html" in done.output
    assert there(here / name) == sorted([*FILES, "page.html", "thinktwice.db"])


def test_init_says_in_json_what_it_made_and_what_is_next(here):
    code, shown, _ = read_text("--json", "--", "-new")
    assert code == 0
    found = json.loads(shown)
    assert (found["folder"], found["files"], found["next"][0]) == ("-new", FILES, "cd ./-new")


def test_defaults_that_the_settings_show_are_the_defaults(here):
    read_text("demo")
    text = (here / "demo" / "thinktwice.toml").read_text("utf-8")
    (here / "all.toml").write_text(DEFAULT.sub("", text), "utf-8")
    shown, default = (load_settings(here / name).settings for name in ("all.toml", "demo/thinktwice.toml"))
    assert len(DEFAULT.findall(text)) > 8
    assert shown.config_hash == default.config_hash == load_settings().settings.config_hash
    assert shown.runtime.db == default.runtime.db
    assert (default.runtime.data, default.runtime.playbooks) == ("bars/daily.csv", "playbooks")


def test_folder_that_is_there_and_empty_is_filled_and_stays_the_same_folder(here):
    (here / "demo").mkdir()
    before = (here / "demo").stat().st_ino
    assert read_text("demo")[0] == 0
    assert ((here / "demo").stat().st_ino, there(here / "demo")) == (before, FILES)
    assert [playbook.id for playbook in load_playbooks(here / "demo" / "playbooks")] == ["donchian"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("full", "'full' holds 'a.txt' already"),
        ("full/a.txt", "there already and no folder"),
        ("broken", "there already and no folder"),
        ("no/such", "there is no folder 'no'"),
        ("full/a.txt/x", "there is no folder 'full/a.txt'"),
        ("x" * 300, "File name too long"),
        ("a\nb", "cannot be seen"),
        ("\x1b[2J", "cannot be seen"),
        ("a\udcffb", "cannot be seen"),
        (" ", "is empty"),
        ("", "is empty"),
    ],
)  # fmt: skip
def test_place_that_cannot_be_used_is_named_and_nothing_is_made(here, name, says):
    (here / "full").mkdir()
    (here / "full" / "a.txt").write_text("mine")
    (here / "full" / "b.txt").write_text("mine")
    (here / "broken").symlink_to("nowhere")
    before = sorted(here.rglob("*"))
    code, shown, error = read_text(name)
    assert (code, shown, error.count("\n")) == (2, "", 1)
    assert says in error
    assert sorted(here.rglob("*")) == before


def test_folder_without_rights_is_one_line(here, monkeypatch):
    def refused(*given, **named):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkdtemp", refused)
    code, shown, error = read_text("demo")
    assert (code, shown, error.count("\n")) == (2, "", 1)
    assert "'demo' cannot be written (Permission denied): name another folder" in error


@pytest.mark.parametrize("exists", [True, False])
def test_disk_that_is_full_half_way_leaves_nothing(here, monkeypatch, exists):
    if exists:
        (here / "demo").mkdir()
    written, rename = [], Path.rename

    def full(path, target):
        written.append(target)
        if len(written) == 1 + 2 * exists:
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", full)
    code, _, error = read_text("demo")
    assert (code, "No space left" in error) == (2, True)
    assert [path.name for path in here.rglob("*")] == ["demo"] * exists


def test_files_may_be_changed_by_their_owner(here):
    read_text("demo")
    for path in (here / "demo").rglob("*"):
        assert path.stat().st_mode & stat.S_IWUSR
