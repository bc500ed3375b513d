"""The shape every contract shares: frozen, closed, split into what is hashed and what is recorded."""

import copyreg
import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache, cached_property
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from schemas.canonical import WRITERS, canonical_json, datetime_to_ns, ns_to_datetime

K = TypeVar("K")
V = TypeVar("V")


def _read_only(mapping: Mapping[K, V]) -> Mapping[K, V]:
    return MappingProxyType(dict(mapping))


def _reduce_mapping(mapping: MappingProxyType[Any, Any]) -> tuple[Any, ...]:
    return _read_only, (dict(mapping),)


copyreg.pickle(MappingProxyType, _reduce_mapping)  # a contract goes to another process whole


# A mapping of a frozen contract that cannot be changed in place either.
FrozenMap = Annotated[Mapping[K, V], AfterValidator(_read_only), PlainSerializer(dict)]


def _nanoseconds(value: Any) -> Any:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return datetime_to_ns(value) if isinstance(value, datetime) else value


# A moment in ns since 1970; a time with its zone, as text or as TOML writes it, is read as one.
Nanoseconds = Annotated[int, BeforeValidator(_nanoseconds)]


def _as_moment(value: Any) -> Any:
    return ns_to_datetime(value) if isinstance(value, int) else value


# A time with its zone; it is read from ns, as which a hash and a stored text have it.
Moment = Annotated[datetime, BeforeValidator(_as_moment)]


# For contracts of measured numbers: NaN and infinity are refused with the name of their field.
FINITE = ConfigDict(allow_inf_nan=False)


class Contract(BaseModel):
    """Frozen model that refuses unknown fields.

    `telemetry_fields` names what is measured rather than decided (latencies, token counts). They are kept
    out of `payload()` and so out of every hash, and come back through `telemetry()`. `sparse_fields` names
    what the payload leaves out where it has its default: most say nothing there.
    """

    # A bound on the length, even one that every text keeps, makes the validator read texts as Unicode: half
    # of a surrogate pair, which no store and no hash takes, is refused with the name of its field.
    model_config = ConfigDict(
        frozen=True, extra="forbid", ignored_types=(cached_property,), str_min_length=0, defer_build=True
    )
    telemetry_fields: ClassVar[frozenset[str]] = frozenset()
    sparse_fields: ClassVar[frozenset[str]] = frozenset()
    keeps_its_text: ClassVar[bool] = False

    @classmethod
    def trust(cls, **values: Any) -> Self:
        """A contract of values of our own that have the types of its fields: nothing is checked."""
        made, put = cls.__new__(cls), object.__setattr__
        put(made, "__dict__", cls._defaults() | values)
        put(made, "__pydantic_fields_set__", set(values))
        put(made, "__pydantic_extra__", None)
        put(made, "__pydantic_private__", None)
        return made

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        fields = cls.model_fields.items()
        return {name: field.default for name, field in fields if not field.is_required()}

    def payload(self) -> dict[str, Any]:
        """The hashed part as plain data, nested contracts included."""
        values = self.__dict__
        return {
            key: value if type(value := values[name]) in SIMPLE else _payload_of(value)
            for key, name in self._without_defaults(type(self)._hashed_fields())
        }

    def _without_defaults(self, fields: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        """The fields, of which the name stands last, but the sparse ones that have their default."""
        values = self.__dict__
        left_out = {name for name in self.sparse_fields if values[name] == self._defaults()[name]}
        return tuple(field for field in fields if field[1] not in left_out) if left_out else fields

    @classmethod
    @cache
    def _hashed_fields(cls) -> tuple[tuple[str, str], ...]:
        """Key and name of each: a key that is a word of Python's has another name."""
        fields = cls.model_fields.items()
        return tuple(
            (field.alias or name, name) for name, field in fields if name not in cls.telemetry_fields
        )

    def __hash__(self) -> int:
        """By content, mappings included: a contract may be the key of what is kept of it."""
        return hash(self.content_hash)

    def __getitem__(self, name: str) -> Any:
        """A field: readers of rows take a contract as they take one that was read from text."""
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or the default where there is none of the name."""
        return self.__dict__.get(name, default)

    def telemetry(self) -> dict[str, Any]:
        """The measured part: never hashed, stored beside the payload."""
        return {name: getattr(self, name) for name in sorted(self.telemetry_fields)}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with its own hash: the one already computed belongs to the original."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("content_hash", None)
        copied.__dict__.pop(TEXT, None)
        return copied

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the whole payload in canonical JSON."""
        text = self.__dict__[TEXT] = self.canonical_text()
        return hashlib.sha256(text.encode()).hexdigest()

    def canonical_text(self) -> str:
        """Canonical JSON of the payload; what was written for the hash is handed out once more."""
        if self.keeps_its_text:
            if TEXT not in self.__dict__:
                self.__dict__[TEXT] = self._write()
            return str(self.__dict__[TEXT])
        return self.__dict__.pop(TEXT, None) or self._write()

    def _write(self) -> str:
        layout, values = self._layout(), self.__dict__
        if layout is None:
            return canonical_json(self.payload())
        fields = self._without_defaults(layout)
        return (
            "{" + ",".join([start + WRITERS[type(own := values[name])](own) for start, name in fields]) + "}"
        )

    @classmethod
    @cache
    def _layout(cls) -> tuple[tuple[str, str], ...] | None:
        """How the text of each field begins, and its name, in order; None where the payload is not theirs."""
        if cls.payload is not Contract.payload:
            return None
        return tuple((f"{canonical_json(key)}:", name) for key, name in sorted(cls._hashed_fields()))


TEXT = "_text"  # of what was hashed, beside the fields
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
