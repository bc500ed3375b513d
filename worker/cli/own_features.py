"""Features of the operator's own: the Python file that defines them, given to a command by name.

No file is run unasked: a stored run keeps the hash of its features and never their path.
"""

from collections.abc import Sequence
from pathlib import Path
from runpy import run_path
from typing import Annotated, Any

from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from worker.cli.options import option

FeaturesOption = Annotated[
    Path | None, option(metavar="FILE.py", help="Python that is run for its own features, see tt.feature.")
]


def define_features(path: Path | None) -> None:
    """Run a file of the operator's for the features that it gives a name by `tt.feature`.

    Raises:
        ConfigError: it cannot be read or run.
    """
    if path is None:
        return
    if path.suffix != ".py" or not path.is_file():
        raise ConfigError(f"--features {str(path)!r}: give a Python file, .py, that calls tt.feature")
    try:
        run_path(str(path))
    except Exception as error:
        raise ConfigError(f"--features {str(path)!r}: {type(error).__name__}: {error}") from error


def keep_features(books: Sequence[PlaybookDefinition], timeframe: str) -> dict[str, Any]:
    """What the row of a run says of the own features that its playbooks read."""
    from services.policy_loop.snapshot_builder import feature_names
    from trading_core.features.registry import own_features_of
    from worker.runs.kept_run import keep_beside

    return keep_beside((), (), own_features_of(feature_names(books, timeframe)))
