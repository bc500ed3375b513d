"""The steps of the Dockerfile are understood in full; `make image-check` runs them, which takes minutes."""

import os
from pathlib import Path

import pytest

from schemas.errors import ConfigError
from tools.dockerfile import copy_context, steps
from tools.docs_pages import ROOT
from tools.image_steps import Image, lay_out_secrets, try_it

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


class Shown(Image):
    """Makes files and folders; of programs it notes the user who would start them."""

    def run(self, words, extra=None):
        self.shown.append((self.user, " ".join(words)))
        return ""

    def _from(self, text):
        self.shown = []


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    target = tmp_path_factory.mktemp("build") / "context"
    copy_context(ROOT, target)
    return target


def image_of(text, folder, context):
    image = Shown(folder, context)
    for step in steps(text):
        image.take(step)
    return image


def test_every_step_of_the_image_is_understood_and_done_by_the_right_user(context, tmp_path):
    image = image_of(DOCKERFILE, tmp_path, context)
    installed, compiled = image.shown[:-1], image.shown[-1]
    assert [user for user, _ in installed] == ["root"] * 3
    assert compiled[0] == "thinktwice"
    assert "compile_engine()" in compiled[1]
    folder = Path(image.environment["THINKTWICE_CACHE_DIR"])
    assert folder == tmp_path / "var/cache/thinktwice"
    assert folder.stat().st_uid == (10001 if os.geteuid() == 0 else os.geteuid())
    assert (tmp_path / "source/worker/runs/warm_up.py").is_file()
    assert (image.workdir, image.entrypoint, image.command) == (
        "/home/thinktwice",
        ("thinktwice",),
        ("--help",),
    )


def test_build_gets_what_dockerignore_names_and_nothing_else(context):
    kept = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert {path.name for path in context.iterdir()} == {name[1:] for name in kept if name.startswith("!")}
    assert not list(context.rglob("__pycache__"))


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("FROM python:3.11\nCOPY gone ./\n", "Dockerfile:2: COPY gone ./: .*No such file"),
        ("FROM python:3.11\n\nRUN pip \\\n  list | tail\n", "Dockerfile:3: RUN pip list | tail: .*shell"),
        ("FROM python:3.11\nUSER nobody_made\n", "Dockerfile:2: .*no step made the user 'nobody_made'"),
        ("FROM python:3.11\nHEALTHCHECK NONE\n", "Dockerfile:2: 'HEALTHCHECK' is none of FROM"),
    ],
)
def test_broken_step_of_the_image_is_named_with_its_line(text, quoted, context, tmp_path):
    with pytest.raises(ConfigError, match=quoted.replace("|", r"\|")):
        image_of(text, tmp_path, context)


def test_program_that_fails_in_a_step_ends_the_build_with_what_it_said(context, tmp_path):
    image = Image(tmp_path, context, {"PATH": os.defpath})
    [step] = steps("RUN ls /nowhere_at_all\n")
    with pytest.raises(ConfigError, match="Dockerfile:1: RUN ls .*ended with 2:\n.*nowhere_at_all"):
        image.take(step)


@pytest.mark.parametrize(("compiled", "changes"), [(0, False), (3, False), (0, True)])
def test_image_whose_first_run_compiles_is_refused(compiled, changes, context, tmp_path):
    cached = tmp_path / "a.nbi"
    cached.touch()

    class Started(Shown):
        def run(self, words, extra=None):
            if "--help" in words:
                return "Usage: thinktwice"
            if "doctor" in words:
                return '{"checks": []}'
            if changes:
                (tmp_path / "b.nbc").touch()
            return f"a summary\ncompiled {compiled}\n"

    image = Started(tmp_path, context, entrypoint=("thinktwice",), command=("--help",))
    if compiled or changes:
        with pytest.raises(ConfigError, match=f"the first run compiles: compiled {compiled}"):
            try_it(image, {})
    else:
        try_it(image, {})


def test_password_of_the_page_reaches_the_image_with_owner_and_mode_of_the_host(context, tmp_path):
    image = Image(tmp_path / "image", context)
    inside = Path(lay_out_secrets(image, tmp_path / "host")["THINKTWICE_DB_PASSWORD_FILE"])
    assert inside == tmp_path / "image/run/secrets/db_password"
    assert inside.stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "host/secrets").stat().st_mode & 0o777 == 0o700
    assert len(inside.read_text().strip()) == 48
