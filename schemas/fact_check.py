"""The place of a fact: a row of a run's journal."""

from schemas.contract import Contract


class FactRow(Contract):
    """A journal row that a fact stands in; `seq` is None for a report that is not stored yet."""

    seq: int | None
    kind: str
