"""What a script hands over: bars, playbooks and settings in the forms that Python has for them."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ValidationError

from schemas.errors import ConfigError, DataError, ThinktwiceError
from schemas.playbook import DirectionRules, Expectation, Parameter, PlaybookDefinition
from schemas.settings import Settings
from services.playbooks.loader import check_definition, explain, load_playbooks
from services.policy_checks.static_checks import list_mistakes
from services.policy_loop.snapshot_builder import feature_names
from thinktwice.boundary import trims_errors
from trading_core.bars import BarSeries
from trading_core.features.registry import own_features_of
from worker.feeds.doubts import check_doubts
from worker.feeds.files.names import role_of
from worker.feeds.selected_bars import describe_off_phase, load_bars
from worker.settings import FIELDS, ResolvedSettings, load_settings

if TYPE_CHECKING:
    import pandas as pd

Playbooks = str | Path | PlaybookDefinition | Iterable[PlaybookDefinition] | None
UNNAMED = "BARS"  # of bars that name no symbol
Error = TypeVar("Error", bound=ThinktwiceError)
Rules = DirectionRules | Mapping[str, str]
# A value that follows an option has a digit or a capital in it; other words are the sentence.
OPTION = re.compile(
    r"--([a-z]+(?:-[a-z]+)*)(?: (?:'([^']*[%=][^']*)'|(?=[\w/]*[A-Z0-9])([\w/:.+-]*\w)|([.,])(?= |$)))?"
)
JOURNAL = re.compile(r"`thinktwice journal (?:in_memory|RUN) --kind (\w+)`")
# The arguments that stand for a setting, each by the name that a caller writes.
WRITTEN = {
    "data__label": "label",
    "data__resample": "resample",
    "data__symbols": "symbols",
    "data__timeframe": "timeframe",
    "gate__mode": "mode",
    "judge__replan": "judge",
    "llm__model": "model",
    "llm__structured_output": "model",
    "policy_loop__strategist": "strategist",
    "reflection__mode": "reflection",
    "runtime__data": "bars",
    "runtime__end": "end",
    "runtime__start": "start",
    "runtime__tz": "tz",
    "seed": "seed",
}
ARGUMENTS = {
    "from": "start",
    "to": "end",
    "data": "bars",
    "date-format": "runtime__date_format",
    "decimal": "runtime__decimal",
    "columns": "runtime__columns",
}
# What the trades of a bracket without an edge look like; resolved trades take over as they come in.


@dataclass(frozen=True)
class Inputs:
    """What a run starts from; whether its bars came as a DataFrame, and its playbooks as an argument."""

    settings: Settings
    bars: BarSeries
    playbooks: tuple[PlaybookDefinition, ...]
    of_frame: bool = False
    own_playbooks: bool = False

    def own_features(self) -> dict[str, str]:
        """Hash by name of the functions that rules of the playbooks read, as they are defined now."""
        return own_features_of(feature_names(self.playbooks, self.bars.timeframe))


@trims_errors
def settings(base: Settings | str | Path | None = None, **changes: Any) -> Settings:
    """Settings with some values changed, each by its section and name: `account__cash=50_000`.

    Args:
        base: what is changed: settings, a TOML file, or None for the defaults.
        changes: values by `SECTION__NAME`; sections within sections take two more underscores.

    Raises:
        ConfigError: a name that is no setting, with the nearest one, or a value that does not fit.
    """
    return settings_of(base, {}, changes)


def settings_of(
    base: Settings | str | Path | None, arguments: Mapping[str, Any], changes: Mapping[str, Any]
) -> Settings:
    """Settings with the values of arguments that have names of their own (None: not given), and changes.

    Raises:
        ConfigError: as `settings`; names the argument as it was written.
    """
    for name in changes:
        full = [key for key in FIELDS if key.endswith(f".{name}")]
        if full:
            written = full[0].replace(".", "__")
            raise ConfigError(f"argument {name}: write {WRITTEN.get(written, written)}")
        inside = [key for key in FIELDS if key.startswith(f"{name}.")]
        if inside:
            written = inside[0].replace(".", "__")
            raise ConfigError(f"argument {name} is a section: give its settings one by one, as {written}=")
    if base is not None and not isinstance(base, Settings | str | Path):
        raise ConfigError(f"settings {base!r}: give what tt.settings returns, or the path of a TOML file")
    file = Path(base) if isinstance(base, str | Path) else None
    given = ResolvedSettings(base, {}).rows() if isinstance(base, Settings) else ()
    flags = {key: (key, value) for key, value, _ in given}
    payload = {name: (WRITTEN[name], value) for name, value in arguments.items() if value is not None}
    payload |= {name: (name, value) for name, value in changes.items()}
    flags |= {name.replace("__", "."): value for name, value in payload.items()}
    return load_settings(file, environment={}, flags=flags, word="argument").settings


def symbols_of(given: Sequence[str] | None) -> list[str] | None:
    """Symbols as `data.symbols` has them; None: not given.

    Raises:
        ConfigError: they are no names, or none is there.
    """
    if given is None or isinstance(given, str):
        return None if given is None else [given]
    if not isinstance(given, Iterable) or not (names := list(given)):
        raise ConfigError(f"symbols {given!r}: name at least one, or leave it out to trade all")
    return names


def path_of(name: str, given: Any) -> Path | None:
    """A file or folder that an argument names, `~` as the home folder; None: not given.

    Raises:
        ConfigError: it is no path.
    """
    if given is None:
        return None
    if not isinstance(given, str | PathLike):
        raise ConfigError(f"{name} {given!r}: give the path of a file or folder")
    return Path(given).expanduser()


@trims_errors
def Playbook(
    id: str,
    *,
    long: Rules | None = None,
    short: Rules | None = None,
    parameters: Mapping[str, Parameter] | None = None,
    expectation: Expectation | Literal["measured"] | None = None,
    **fields: Any,
) -> PlaybookDefinition:
    """A playbook in Python: what a playbook file holds, with the same defaults.

    Args:
        id: lower-case letters, digits and underscores.
        long: `setup`, `stop`, `target` or `invalidation`, and what else a direction may have, as text.
        short: the same of the other direction.
        parameters: numbers that rules name in braces, each with its grid.
        expectation: what its trades are expected to look like; None: those of a bracket without an edge, held
            as long as the horizon lets them; `measured`: of its rules alone on closed bars, from 20 trades.
        fields: every other field of a playbook file, such as `horizon_bars`.

    Warns of what no market can make right, such as a stop beyond the entry.

    Raises:
        ConfigError: a rule that does not parse, an unknown field, or no direction at all.
    """
    rules = {side: given for side, given in (("long", long), ("short", short)) if given is not None}
    if not rules:
        raise ConfigError(f"playbook {id!r} has rules of neither direction: give long, short or both")
    payload: dict[str, Any] = {"id": id, "rules": rules, "parameters": parameters or {}}
    payload |= {} if expectation is None else {"expectation": expectation}
    payload |= fields
    try:
        definition = PlaybookDefinition(**payload)
    except ValidationError as error:
        field, reason = explain(payload, error)
        raise ConfigError(f"playbook {id!r}, {field}: {reason}") from error
    check_definition(definition, Path(id))
    warn_of_mistakes((definition,), Settings(), stacklevel=4)
    return definition


def warn_of_mistakes(definitions: Sequence[PlaybookDefinition], shown: Settings, *, stacklevel: int) -> None:
    """Warn of what no market can make right in playbooks; the settings are those of the run."""
    for mistake in list_mistakes(definitions, shown):
        warnings.warn(mistake.text, stacklevel=stacklevel)


def playbooks_of(given: Playbooks) -> Sequence[PlaybookDefinition] | None:
    """The playbooks of a folder, a file or a name, of objects, or None for those of the settings.

    Raises:
        ConfigError: a place that holds none, something else than playbooks, or two with one id.
    """
    if given is None:
        return None
    if isinstance(given, str | Path):
        return load_playbooks(Path(given))
    one = isinstance(given, PlaybookDefinition) or not isinstance(given, Iterable)
    books: tuple[Any, ...] = (given,) if one else tuple(given)
    other = next((book for book in books if not isinstance(book, PlaybookDefinition)), None)
    if other is not None:
        raise ConfigError(
            f"playbooks: {other!r} is no playbook: give objects of tt.Playbook, a folder, a file or a name"
        )
    names = [book.id for book in books]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or not books:
        raise ConfigError(
            "playbooks: give at least one" if twice is None else f"playbooks: {twice!r} is there twice"
        )
    return tuple(sorted(books, key=lambda book: book.id))


def bars_of(given: "pd.DataFrame | str | Path | None", shown: Settings) -> BarSeries:
    """Bars of a DataFrame, of a file or folder, or the embedded ones, as `data` and `runtime` select them.

    Raises:
        DataError: they cannot be used; names the value, its row and the argument that would help.
    """
    data, runtime, notes = shown.data, shown.runtime, list[str]()
    try:
        if given is None or isinstance(given, str | Path):
            path = None if given is None else str(given)
            named = shown.model_copy(update={"runtime": runtime.model_copy(update={"data": path})})
            bars = load_bars(named, notes.append)
        else:  # imported here: a run on the embedded bars loads no pandas
            from worker.feeds.files.bar_table import BarTable
            from worker.feeds.files.files import bars_of_tables
            from worker.feeds.files.symbol_rows import Selection

            name = data.symbols[0] if len(data.symbols) == 1 else UNNAMED
            chosen = Selection(
                data.symbols, data.timeframe, runtime.tz, data.label, runtime.start, runtime.end, data.zone,
                data.resample, data.adjusted, runtime.date_format, runtime.decimal, runtime.columns,
                notes.append,
            )  # fmt: skip
            bars = bars_of_tables([(BarTable.of_frame(given, columns=runtime.columns), name)], chosen)
    except (DataError, ConfigError) as error:
        raise in_arguments(error, getattr(given, "columns", ())) from error
    try:
        doubts = check_doubts(bars, data)
    except DataError as error:
        raise in_arguments(error) from error
    for note in (*notes, describe_off_phase(bars), *doubts):
        if note is not None:
            warnings.warn(argument_words(note), stacklevel=3)
    return bars


def in_arguments(error: Error, columns: Iterable[object] = ()) -> Error:
    """An error of a command with its options named as the arguments of a function.

    Args:
        error: what the command would say.
        columns: of the frame that was handed over; one of times is what it is sorted by.
    """
    times = [str(name) for name in columns if role_of(str(name)) == "time"]
    order = f"df.sort_values({times[0]!r})" if times else "df.sort_index()"
    text = argument_words(str(error)).replace("sort the file by time", f"sort it, {order}")
    return type(error)(text, **error.context)


def argument_words(text: str) -> str:
    """A sentence of a command with its options, and its look into a run in memory, as Python has them."""
    return OPTION.sub(_argument, JOURNAL.sub(r"`result.index.of_kind('\1')`", text))


def _argument(option: re.Match[str]) -> str:
    """An option of the command line as the argument of a function."""
    name = ARGUMENTS.get(option[1], option[1])
    value = option[2] or option[3] or option[4]
    return f'{name}="{value}"' if value else name
