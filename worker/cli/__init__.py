"""The `thinktwice` command. Importing it loads no engine, no data frame library and no model SDK."""

from worker.cli.app import app

__all__ = ["app"]
