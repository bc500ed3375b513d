"""A second revision as CONTRIBUTING says that one is made, so that stores of the first are behind."""

import shutil
from pathlib import Path

import pytest

from services.store import migrate, migrations, store

SECOND = '''"""Notes on runs."""

from alembic import op
from sqlalchemy import Column, Text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table of notes."""
    op.create_table("notes", Column("run_id", Text, primary_key=True), Column("note", Text))
'''


def add_revision(folder: Path, monkeypatch: pytest.MonkeyPatch, *, text: str = SECOND) -> None:
    """Have the program know a second revision, whose file is `text`."""
    copied = folder / "migrations"
    shutil.copytree(Path(migrations.__file__).parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    (copied / "versions" / "v0002_notes.py").write_text(text, "utf-8")
    monkeypatch.setattr(migrate, "SCRIPTS", str(copied))
    monkeypatch.setattr(migrate, "REVISIONS", ("0001", "0002"))
    for module in (migrate, store):
        monkeypatch.setattr(module, "HEAD", "0002")
