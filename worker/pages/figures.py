"""How figures and times are shown: percent, R with a sign, a dash for undefined; rounded nowhere else."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.canonical import ns_to_datetime
from services.journal.lineage import TIME_FACTS
from services.model_calls.quoting import visible

DASH = "-"
COMMENT_MARK = "model's comment, not checked"
SHOWN_SYMBOLS = 3
MIDNIGHT = "T00:00:00+00:00"
LEAST_TIME = 10**17  # ns, in 1973: no count of a document is as large
WRITTEN_OUT = 1e15  # from here on a figure is shown in powers of ten: its digits are too many to count


def percent(fraction: float | None, digits: int = 1) -> str:
    """`12.3 %`."""
    return DASH if fraction is None else f"{_digits(100 * fraction, f'z,.{digits}f')} %"


def r_multiple(value: float | None) -> str:
    """`+0.12 R`."""
    return DASH if value is None else f"{_digits(value, '+z.2f')} R"


def number(value: float | None, digits: int = 2) -> str:
    """`1,234.50`; whole numbers without a fraction."""
    if value is None:
        return DASH
    return f"{value:,d}" if isinstance(value, int) else _digits(value, f"z,.{digits}f")


def _digits(value: float, written: str) -> str:
    return f"{value:{written}}" if abs(value) < WRITTEN_OUT else f"{value:{written[:-1].replace(',', '')}e}"


def milliseconds(value: float | None) -> str:
    """`0.42 ms`."""
    return DASH if value is None else f"{value:,.2f} ms"


def counts(by_name: dict[str, int]) -> str:
    """`heartbeat 12, regime_change 3`, most frequent first."""
    ordered = sorted(by_name.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ordered if count) or "none"


def shown_time(ns: int) -> str:
    """`2012-01-31 16:00:00Z`; the time of day is left out at midnight."""
    moment = ns_to_datetime(ns)
    return moment.strftime("%Y-%m-%d" if ns % 86_400_000_000_000 == 0 else "%Y-%m-%d %H:%M:%SZ")


def few_symbols(symbols: Sequence[str]) -> str:
    """The first symbols, and how many more there are."""
    rest = len(symbols) - SHOWN_SYMBOLS
    return " ".join(symbols[:SHOWN_SYMBOLS]) + (f" +{rest}" if rest > 0 else "")


def comment_text(comment: str) -> str:
    """A model's own words on one line, marked as what they are."""
    return f"{COMMENT_MARK}: {visible(comment)}"


def fact_text(name: str, value: Any) -> str:
    """A fact of a why-chain in words; times are told by the fact's name."""
    if name in TIME_FACTS and isinstance(value, int):
        return shown_time(value)
    if isinstance(value, dict):
        return ", ".join(
            f"{key} {fact_text(key, entry)}" for key, entry in value.items() if entry is not None
        )
    if isinstance(value, list):
        return "; ".join(fact_text("", item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def shown_cell(value: Any) -> str:
    """A value of a document as a reader writes it, on one line; a dash for nothing."""
    if value is None or value == "":
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown_cell, value)) or DASH
    if isinstance(value, Mapping):
        return ", ".join(f"{visible(str(name))} {shown_cell(item)}" for name, item in value.items()) or DASH
    if isinstance(value, int):
        return shown_time(value) if value >= LEAST_TIME else f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else visible(str(value).removesuffix(MIDNIGHT))


def plain_fields(document: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Every value of a document with its path, whatever the document is; what is empty is left out.

    Counts by name stand on one line, and of a list of rows there is how many there are.
    """
    for name, value in document.items():
        path = f"{before}{name}"
        if isinstance(value, Mapping):
            if value and all(type(item) is int and item < LEAST_TIME for item in value.values()):
                yield path, counts(dict(value))
            else:
                yield from plain_fields(value, f"{path}.")
        elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            yield path, f"{len(value):,} in all"
        elif value not in (None, "", [], ()):
            yield path, shown_cell(value)
