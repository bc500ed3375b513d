"""The shape every contract shares: frozen, closed, split into what is hashed and what is recorded."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache, cached_property
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from schemas.canonical import content_hash, datetime_to_ns

K = TypeVar("K")
V = TypeVar("V")


def _read_only(mapping: Mapping[K, V]) -> Mapping[K, V]:
    return MappingProxyType(dict(mapping))


# A mapping of a frozen contract that cannot be changed in place either.
FrozenMap = Annotated[Mapping[K, V], AfterValidator(_read_only), PlainSerializer(dict)]


def _nanoseconds(value: Any) -> Any:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return datetime_to_ns(value) if isinstance(value, datetime) else value


# A moment in ns since 1970; a time with its zone, as text or as TOML writes it, is read as one.
Nanoseconds = Annotated[int, BeforeValidator(_nanoseconds)]


# For contracts of measured numbers: NaN and infinity are refused with the name of their field.
FINITE = ConfigDict(allow_inf_nan=False)


class Contract(BaseModel):
    """Frozen model that refuses unknown fields.

    `telemetry_fields` names what is measured rather than decided (latencies, token counts). They are kept
    out of `payload()` and so out of every hash, and come back through `telemetry()`.
    """

    # A bound on the length, even one that every text keeps, makes the validator read texts as Unicode: half
    # of a surrogate pair, which no store and no hash takes, is refused with the name of its field.
    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,), str_min_length=0)
    telemetry_fields: ClassVar[frozenset[str]] = frozenset()

    def payload(self) -> dict[str, Any]:
        """The hashed part as plain data, nested contracts included."""
        values = self.__dict__
        return {
            key: value if type(value := values[name]) in SIMPLE else _payload_of(value)
            for key, name in type(self)._hashed_fields()
        }

    @classmethod
    @cache
    def _hashed_fields(cls) -> tuple[tuple[str, str], ...]:
        """Key and name of each: a key that is a word of Python's has another name."""
        fields = cls.model_fields.items()
        return tuple(
            (field.alias or name, name) for name, field in fields if name not in cls.telemetry_fields
        )

    def telemetry(self) -> dict[str, Any]:
        """The measured part: never hashed, stored beside the payload."""
        return {name: getattr(self, name) for name in sorted(self.telemetry_fields)}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with its own hash: the one already computed belongs to the original."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("content_hash", None)
        return copied

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the whole payload in canonical JSON."""
        return content_hash(self.payload())


SIMPLE = frozenset({type(None), bool, int, float, str})


def _payload_of(value: Any) -> Any:
    if type(value) in SIMPLE:
        return value
    if isinstance(value, (tuple, list, frozenset)):
        return [item if type(item) in SIMPLE else _payload_of(item) for item in value]
    if isinstance(value, Contract):
        return value.payload()
    if isinstance(value, Mapping):
        return {key: _payload_of(item) for key, item in value.items()}
    return value
