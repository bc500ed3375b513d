"""The command line of `tests.worker.cli`, for tests of what surrounds a command."""

from tests.worker.cli.conftest import shell

__all__ = ["shell"]
