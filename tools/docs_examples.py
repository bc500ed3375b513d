"""Runs the examples of the documentation and writes what they print; no figure on a page is typed by hand.

A `console` block holds commands after `$ ` and what they printed. The blocks of one page run from top to
bottom in one empty folder, after its files (blocks with a `title`) have been written there. Options:

    skip="why"     not run
    long="why"     run by `make docs`, not by the tests
    exit="2"       the exit code it must have
    lines="8"      how many lines of output the page shows
    fill="KIND"    the hexadecimal word of the command becomes the id of the first such fill of the latest run

`make docs` runs it and rewrites the output; the tests run the same blocks on fewer bars.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import ConfigError
from tools.docs_pages import DOCS, README, ROOT, Fence, fences, pages
from tools.draw_page import draw_page

PICTURE = DOCS / "images" / "run-page.png"
PAGE_OF_RUN = "thinktwice page latest --html page.html"
_WAITING = re.compile(r"^\[\d+:\d\d\] .*\n", re.MULTILINE)
_HEX = re.compile(r"\b[0-9a-f]{8}\b")


@dataclass(frozen=True)
class Ran:
    """One command as written, with its exit code and everything it printed."""

    command: str
    code: int
    output: str


Run = Callable[[str, Path, Mapping[str, str]], Ran]


def commands(fence: Fence) -> list[str]:
    """The commands of a console block."""
    return [line.removeprefix("$ ") for line in fence.text.splitlines() if line.startswith("$ ")]


def consoles(page: Path) -> list[Fence]:
    """The console blocks of a page."""
    return [fence for fence in fences(page) if fence.language == "console"]


def write_files(page: Path, folder: Path) -> None:
    """Write the files that a page shows into a folder."""
    for fence in fences(page):
        if "title" in fence.options:
            path = folder / fence.options["title"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fence.text, "utf-8")


def run_block(fence: Fence, folder: Path, extra: Mapping[str, str], run: Run | None = None) -> list[Ran]:
    """Run the commands of a block.

    Args:
        fence: the block.
        folder: where they run.
        extra: environment variables.
        run: how one command is run; None starts a shell.

    Raises:
        ConfigError: a command ended with another exit code than the page says.
    """
    ran = []
    for command in commands(fence):
        if "fill" in fence.options:
            command = _HEX.sub(_first_fill(fence.options["fill"], folder, extra), command)
        done = (run or in_shell)(command, folder, extra)
        if done.code != int(fence.options.get("exit", "0")):
            raise ConfigError(f"{fence.page.name}: {command!r} ended with {done.code}:\n{done.output}")
        ran.append(done)
    return ran


def as_installed(command: str) -> str:
    """The command as it reads where everything is installed already."""
    return command.removeprefix("pip install uv && ").replace("uv run ", "")


def in_shell(command: str, folder: Path, extra: Mapping[str, str]) -> Ran:
    """Run one command with the environment that runs this; `uv run` and the installation of uv fall away."""
    done = subprocess.run(
        shell_words(command),
        cwd=folder,
        env=shell_environment(extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Ran(command, done.returncode, without_waiting(done.stdout))


def without_waiting(printed: str) -> str:
    """What a command printed, without what a slow machine says while a person waits."""
    return _WAITING.sub("", printed)


def shell_words(command: str) -> list[str]:
    """How a shell is started for a command as a page shows it."""
    return ["bash", "-c", f"set -o pipefail; {as_installed(command)}"]


def shell_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: that of the interpreter which runs this, and no setting of its own."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    own = {name: value for name, value in os.environ.items() if not name.startswith("THINKTWICE_")}
    return {**own, "PATH": path, "PYTHONPATH": str(ROOT), **extra}


def _first_fill(kind: str, folder: Path, extra: Mapping[str, str]) -> str:
    found = in_shell(f"thinktwice journal latest --kind {kind} --jsonl", folder, extra).output.splitlines()
    if not found:
        raise ConfigError(f"the latest run has no {kind}: choose another example")
    return str(json.loads(found[0])["payload"]["fill_id"])[:8]


def show_block(fence: Fence, ran: list[Ran]) -> str:
    """The text of a block after its commands ran."""
    limit = int(fence.options.get("lines", "1000"))
    parts = []
    for example in ran:
        lines = [line.rstrip() for line in example.output.rstrip().splitlines()]
        parts += [f"$ {example.command}", *lines[:limit], *(["..."] if len(lines) > limit else [])]
    return "\n".join(parts) + "\n"


def rewrite(page: Path, folder: Path, extra: Mapping[str, str]) -> None:
    """Run a page's examples in a folder and write their output into the page."""
    write_files(page, folder)
    replaced = []
    for fence in consoles(page):
        if "skip" not in fence.options:
            replaced.append((fence, show_block(fence, run_block(fence, folder, extra))))
    text = page.read_text("utf-8")
    for fence, new in reversed(replaced):
        text = text[: fence.start] + new + text[fence.end :]
    page.write_text(text, "utf-8")


def main(arguments: list[str]) -> int:
    """Rewrite the named pages, or all, and draw the picture of the README's run."""
    chosen = [Path(name).resolve() for name in arguments] or pages()
    for page in chosen:
        if all("skip" in fence.options for fence in consoles(page)):
            continue
        sys.stdout.write(f"{page.relative_to(ROOT)}\n")
        sys.stdout.flush()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rewrite(page, folder, {})
            if page == README:
                in_shell(PAGE_OF_RUN, folder, {})
                draw_page(folder / "page.html", PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
