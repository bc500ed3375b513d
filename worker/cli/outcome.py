"""What a command that makes a run leaves behind: the document of the run, and a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from schemas.settings import Settings
from worker.cli.printing import complain, print_document
from worker.runs.model_silence import is_silent, model_silence
from worker.runs.out_folder import OutFolder
from worker.runs.run_text import summary_parts


def checked_folder(settings: Settings) -> OutFolder | None:
    """The folder of `--out`, which can be written; None where none is named.

    Raises:
        ConfigError: it cannot be written.
    """
    if settings.runtime.out is None:
        return None
    folder = OutFolder(Path(settings.runtime.out))
    folder.check()
    return folder


def show_run(
    document: dict[str, Any],
    failures: Sequence[str] = (),
    notes: Sequence[str] = (),
    *,
    json: bool,
    full: bool = False,
) -> None:
    """Print the document of a run, and leave with exit 1 where it has errors or no model answered."""
    from worker.session import MODEL_LOST

    print_document(document, json, lambda shown: summary_parts(shown, failures, notes, full=full))
    early, run_id = document["ended_early"], document["run_id"]
    fails = bool(document["errors"])
    if early is not None:
        complain(early["message"])
        fails |= early["reason"] == MODEL_LOST
    if document["errors"]:
        complain(
            f"{document['errors']} errors in run {run_id}: see `thinktwice journal {run_id} --kind error`"
        )
    if not fails and (silence := model_silence(document)) is not None:
        complain(f"{silence}; the rules decided {'alone' if is_silent(document) else 'the others'}")
        fails = is_silent(document)
    if fails:
        raise typer.Exit(1)
