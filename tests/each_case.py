"""A table whose rows one test walks: a case costs what it does, not a test of its own."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


def check_each(
    names: str | tuple[str, ...],
    cases: Iterable[Any],
    ids: Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with each case of a table; as `pytest.mark.parametrize`, but as one test.

    Every case is run, and each that fails is named. For tables of many short cases that need no fixture of
    their own.
    """
    wanted = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    table = [_read_case(case, len(wanted)) for case in cases]
    known = list(ids) if ids is not None and not callable(ids) else [None] * len(table)
    assert table, "a table without a case checks nothing"

    def over_all(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(*args: Any, **given: Any) -> None:
            failed = []
            for (values, name), title in zip(table, known, strict=True):
                try:
                    test(*args, **given, **dict(zip(wanted, values, strict=True)))
                except Exception as error:  # noqa: BLE001 - told with its case once all were run
                    error.add_note(f"case: {title or name or values!r}")
                    failed.append(error)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(table)} cases", failed)

        left = inspect.signature(test)
        kept = [parameter for name, parameter in left.parameters.items() if name not in wanted]
        run.__signature__ = left.replace(parameters=kept)  # type: ignore[attr-defined]  # pytest reads it
        return run

    return over_all


def _read_case(case: Any, size: int) -> tuple[tuple[Any, ...], str | None]:
    """The values of a case, and the name of one that has its own."""
    title = getattr(case, "id", None) if hasattr(case, "marks") else None
    values = case.values if hasattr(case, "marks") else case if size > 1 else (case,)
    return tuple(values), title
