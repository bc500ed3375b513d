"""Revisions of the tables, oldest first: forward only, each in one transaction on either dialect.

A revision is a file in `versions/` and a name in `REVISIONS`. A new store is made from `tables.py` at once
and marked with the newest name; a test holds that the files make the same tables on both dialects.
"""

REVISIONS = ("0001",)
HEAD = REVISIONS[-1]
