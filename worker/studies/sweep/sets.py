"""From a grid to parameter sets: each a rule with its terms, as the kernel takes them."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from schemas.canonical import canonical_json, content_hash
from schemas.errors import ConfigError, nearest
from schemas.order_terms import OrderTerms
from schemas.playbook import PlaybookDefinition
from services.playbooks.rendering import placeholders, render_text
from trading_core.research.simulation import MANAGED, SWITCHES

MOST_SETS = 100_000
FIGURES = {"trades": "trades", "total_r": "total_r", "return": "gain", "sharpe": "sharpe"}
PROBLEM = "problem"
RULES = ("entry", "stop", "target", "exit", "trail", "invalidation", "activation", "refinement", "entry_at")
NUMBERS = ("stop_pct", "target_pct", "time_stop_bars", "activation_window_bars", "quantity", "cash")
KEYWORDS = (*RULES, *NUMBERS, "direction", "symbols", *MANAGED, *SWITCHES)
Grid = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Family:
    """A rule whose braces and keywords take values from a grid.

    Attributes:
        terms: keywords of `simulate` that every set has; texts may name parameters in braces.
        grid: values by the name of a parameter in braces or of a keyword; every combination is a set.
        sides: rules that hold for one direction alone, as a playbook has them.
        draws: how many sets are drawn of the grid without repeats; None: all.
        seed: of the draw.
    """

    terms: Mapping[str, Any]
    grid: Grid
    sides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    draws: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self.check_values()
        rules = [self.terms, *self.sides.values(), self.grid_texts()]
        texts = [str(given[name]) for given in rules for name in RULES if given.get(name) is not None]
        named = {name for text in texts for name in placeholders(text)}
        if unknown := sorted(set(self.terms) - set(KEYWORDS)):
            raise ConfigError(
                f"{unknown[0]!r} is no keyword of a sweep at level 'rule'.{nearest(unknown[0], KEYWORDS)}"
            )
        for name in self.grid:
            if name not in named and name not in KEYWORDS:
                known = sorted({*named, *KEYWORDS})
                raise ConfigError(
                    f"grid: {name!r} is no parameter in braces and no keyword.{nearest(name, known)}"
                )
        if missing := sorted(named - set(self.grid)):
            raise ConfigError(f"grid: no values for {{{missing[0]}}}: give a list of them")

    def check_values(self) -> None:
        """Refuse values that no set has or that stand twice, names of the table's columns, and too many sets.

        Raises:
            ConfigError: names it.
        """
        for name, values in self.grid.items():
            if not isinstance(name, str) or name in (*FIGURES, PROBLEM):
                raise ConfigError(
                    f"grid: {name!r} cannot name a parameter: give a text that is none of "
                    f"{', '.join(FIGURES)} and {PROBLEM}, which are columns of the table"
                )
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise ConfigError(f"grid: {name} is {values!r}: give a list of at least one value")
        for name, value in (*self.terms.items(), *((n, v) for n, vs in self.grid.items() for v in vs)):
            try:
                canonical_json(value)
            except (TypeError, ValueError) as error:
                raise ConfigError(
                    f"{name} {value!r} is no value of a set: give finite numbers, texts, or lists of them"
                ) from error
        for name, values in self.grid.items():
            texts = [canonical_json(value) for value in values]
            if len(set(texts)) < len(texts):
                again = next(text for place, text in enumerate(texts) if text in texts[:place])
                raise ConfigError(f"grid: {name} has {again} twice: give each value once")
        wanted = self.size if self.draws is None else self.draws
        if not isinstance(wanted, int):
            raise ConfigError(f"random {wanted!r}: give a whole number of sets")
        if not 1 <= wanted <= MOST_SETS:
            raise ConfigError(
                f"{wanted:,} sets: give 1 to {MOST_SETS:,}; `random` draws some of a large grid"
            )

    def grid_texts(self) -> dict[str, str]:
        """Rules that the grid itself offers, all of a name together."""
        return {name: " ".join(map(str, self.grid[name])) for name in RULES if name in self.grid}

    @property
    def size(self) -> int:
        """Combinations of the grid."""
        return prod(len(values) for values in self.grid.values())

    @property
    def hash(self) -> str:
        """What makes it the same search again."""
        grid = {name: list(values) for name, values in self.grid.items()}
        shown = {"terms": dict(self.terms), "sides": {s: dict(v) for s, v in self.sides.items()}}
        return content_hash({**shown, "grid": grid, "draws": self.draws, "seed": self.seed})

    def __len__(self) -> int:
        return self.size if self.draws is None else min(self.draws, self.size)

    def points(self) -> list[dict[str, Any]]:
        """Values of each set by name, in the order of the grid; the last name varies fastest."""
        names = list(self.grid)
        if self.draws is None or self.draws >= self.size:
            return [dict(zip(names, values, strict=True)) for values in product(*self.grid.values())]
        drawn = sorted(random.Random(self.seed).sample(range(self.size), self.draws))  # noqa: S311 - by its seed
        return [dict(zip(names, self._values(number), strict=True)) for number in drawn]

    def _values(self, number: int) -> Iterator[Any]:
        stride = self.size
        for values in self.grid.values():
            stride //= len(values)
            place, number = divmod(number, stride)
            yield values[place]

    def set_of(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A set as `run_sets` takes it."""
        keywords = {name: value for name, value in point.items() if name in KEYWORDS}
        direction = {**self.terms, **keywords}.get("direction", "long")
        made = {**self.terms, **self.sides.get(direction, {}), **keywords}
        for name in RULES:
            if isinstance(text := made.get(name), str) and "{" in text:
                made[name] = render_text(text, point)
        return made


def family_of_playbook(
    book: PlaybookDefinition, grid: Grid | None, terms: Mapping[str, Any], draws: int | None, seed: int
) -> Family:
    """Every value that a playbook allows its parameters, in each of its directions; in every regime.

    Args:
        book: whose rules are traded by themselves.
        grid: values in place of the playbook's own, and of keywords; None: its own.
        terms: other keywords of `simulate`.
        draws: see `Family`.
        seed: see `Family`.
    """
    own = {name: list(parameter.grid) for name, parameter in book.parameters.items()}
    held = {name: [parameter.value] for name, parameter in book.parameters.items()}
    values = {**(own if grid is None else held), **(grid or {})}
    if len(book.rules) > 1 and "direction" not in terms:
        values.setdefault("direction", sorted(book.rules))
    sides: dict[str, dict[str, str]] = {side: _keywords(rules) for side, rules in book.rules.items()}
    fields = {name: getattr(book, name) for name in OrderTerms.model_fields if name in MANAGED}
    shown = {name: value for name, value in fields.items() if value is not None}
    base = {
        "direction": min(book.rules), "time_stop_bars": book.horizon_bars,
        "activation_window_bars": book.activation_window_bars, **shown,
    }  # fmt: skip
    return Family({**base, **terms}, values, sides, draws, seed)


def _keywords(rules: Any) -> dict[str, str]:
    named = {"setup": "entry", "entry": "entry_at"}
    texts = {named.get(role, role): getattr(rules, role) for role in type(rules).model_fields}
    return {name: text for name, text in texts.items() if text is not None}
