"""A console over a copy of the store of the planted run, asked in this process or by a browser."""

from tests.worker.cli.conftest import planted, run_of_planted, shell  # noqa: F401
