"""`--html FILE` and `--open` of commands that write one page."""

import tempfile
from pathlib import Path

from schemas.errors import ConfigError
from worker.cli.console import complain
from worker.pages.whole_file import replace_file


def demand_page_file(path: Path) -> None:
    """Make sure that a page can be written there, without leaving a trace.

    Raises:
        ConfigError: its folder is missing or cannot be written, or the path is a folder or no name.
    """
    if str(path) == "-":
        raise ConfigError("--html '-': a page is not printed: name a file, such as --html run.html")
    if path == Path():
        raise ConfigError("--html names no file: give one, such as --html run.html")
    if path.is_dir():
        raise ConfigError(f"--html {str(path)!r} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise ConfigError(f"--html {str(path)!r}: there is no folder {str(path.parent)!r}: make it first")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error


def write_page(path: Path, text: str) -> None:
    """Write a page whole or not at all.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        replace_file(path, text)
    except OSError as error:
        raise _unwritable(path, error) from error


def open_page(path: Path) -> None:
    """Show a page in a browser; say so where there is none."""
    import webbrowser

    address = path.absolute().as_uri()
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        complain(f"no browser could be opened here: open {address} in one")


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"--html {str(path)!r} cannot be written ({error.strerror}): name another file")
