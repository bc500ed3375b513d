"""`thinktwice init`: a folder to begin with: settings, a playbook, bars, a notebook, and what git leaves out.

Everything is written beside its place first and moved there at once: nobody finds half of it.
"""

import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any

from schemas.errors import ConfigError
from services.model_calls.quoting import visible
from worker.cli import options
from worker.cli.options import argument
from worker.cli.printing import print_document
from worker.pages.text_parts import Part

STARTER = Path(__file__).parent / "starter"
STARTER_FILES = ("thinktwice.toml", "playbooks/donchian.toml", "first_look.ipynb")
BARS = "bars/daily.csv"
SYMBOLS, FIRST, LAST = ("AAPL", "IBM", "MSFT"), "2003-01-01", "2005-12-31"
LEFT_OUT = ("*.db", "*.db-shm", "*.db-wal", "results/", "page.html", ".ipynb_checkpoints/", "__pycache__/")


def init(
    folder: Annotated[str, argument(metavar="DIR", help="Folder that is new or empty.")],
    json: options.Json = False,
) -> None:
    """Make a folder to begin with: settings, a playbook, bars and a notebook."""
    place = _place(folder)
    try:
        files = _make(place)
    except OSError as error:
        raise ConfigError(f"{folder!r} cannot be written ({error.strerror}): name another folder") from error
    typed = folder if not folder.startswith("-") else f"./{folder}"
    commands = [
        f"cd {shlex.quote(typed)}",
        "thinktwice backtest thinktwice.toml",
        "thinktwice page latest --html page.html",
    ]
    print_document({"folder": folder, "files": files, "next": commands}, json, _describe)


def _describe(made: dict[str, Any]) -> list[Part]:
    return [
        f"made {made['folder']} with {', '.join(made['files'])}",
        "Next:",
        *(f"  {command}" for command in made["next"]),
    ]


def _place(folder: str) -> Path:
    place = Path(folder)
    if not folder.strip() or visible(folder) != folder:
        raise ConfigError(f"{folder!r} is empty or holds characters that cannot be seen: name another folder")
    try:
        if place.is_dir():
            found = min((path.name for path in place.iterdir()), default=None)
            if found is not None:
                raise ConfigError(f"{folder!r} holds {found!r} already: name a folder that is new or empty")
        elif os.path.lexists(place):
            raise ConfigError(f"{folder!r} is there already and no folder: name another one")
        elif not place.absolute().parent.is_dir():
            raise ConfigError(f"{folder!r}: there is no folder {str(place.parent)!r} to put it in")
    except OSError as error:
        raise ConfigError(f"{folder!r} cannot be used ({error.strerror}): name another folder") from error
    return place


def _make(place: Path) -> list[str]:
    """Names of the files; a folder that is there keeps its identity, a shell may stand in it."""
    there = place.is_dir()
    home = place if there else place.absolute().parent
    with tempfile.TemporaryDirectory(dir=home, prefix=".thinktwice-") as work:
        made = Path(work) / "made"
        for name in STARTER_FILES:
            target = made / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(STARTER / name, target)
        (made / ".gitignore").write_text("\n".join(LEFT_OUT) + "\n", "utf-8")
        _write_bars(made / BARS)
        files = sorted(path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file())
        if there:
            _move_into(made, place)
        else:
            made.rename(place)
    return files


def _move_into(made: Path, place: Path) -> None:
    moved: list[Path] = []
    try:
        for path in sorted(made.iterdir()):
            moved.append(path.rename(place / path.name))
    except BaseException:  # also Ctrl-C: what was moved goes back, and away with the work folder
        for path in moved:
            path.rename(made / path.name)
        raise


def _write_bars(path: Path) -> None:
    from trading_core.live.growing_bars import Bar
    from worker.feeds.history.fetch_partial import write_bars
    from worker.feeds.sample_data import load_embedded_bars

    series = load_embedded_bars(SYMBOLS, FIRST, LAST)
    names = Bar._fields
    bars = {
        symbol: {
            int(series.times[t]): Bar(*(float(getattr(series, name)[t, s]) for name in names))
            for t in series.present[:, s].nonzero()[0]
        }
        for s, symbol in enumerate(series.symbols)
    }
    path.parent.mkdir()
    write_bars(path, bars)
