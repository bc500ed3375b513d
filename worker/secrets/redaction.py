"""Keeps secrets out of what is printed, logged, served and sent: by their values, then by how secrets look.

Values are collected once, from the environment and from store addresses. Patterns catch what we were not told
about: keys of other programs, bearer tokens, passwords in addresses. A reader sees `***` in their place.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from pydantic import SecretBytes, SecretStr

from schemas.errors import ConfigError
from worker.secrets.secrets import FILE, MODEL_KEYS, WEBHOOK_URL, is_secret_name, secret

MASK = "***"
LEAST_NAMED = 8  # a shorter value of a variable is rather a flag than a secret
LEAST_PASSWORD = 4
PLAIN_FROM = 12  # shorter secrets are looked for as whole words, or every text would be full of holes
LEAST_PATH = 16  # a part of a webhook's path this long is its key
DEEPEST = 8

_WORD = r"(?:api[_-]?key|secret|access[_-]?token|token|passw(?:or)?d|passphrase|authorization|signature)"
# Quoted, or right after the sign; after a blank only what has a digit, or prose would lose its words.
_HIDDEN = r"[^\s'\"\\,;&}\])]"
_IS = r"\\?['\"]?\s{0,4}[:=]"
_QUOTED, _FIGURES = (
    r"\s{0,4}\\?['\"]",
    rf"\s{{1,4}}(?={_HIDDEN}{{0,64}}\d{_HIDDEN}{{0,64}})(?={_HIDDEN}{{8}})",
)
IN_QUERY = re.compile(r"([?&][^\s=&]{0,32}passw?o?r?d?=)[^\s&'\"]{1,512}", re.IGNORECASE)
PATTERNS = (
    (re.compile(r"(?<=://)([^\s/@:'\"]{0,128}):[^\s/@'\"]{1,512}@"), rf"\1:{MASK}@"),
    (re.compile(r"\b(bearer|basic)\s{1,4}[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1 {MASK}"),
    (re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"), MASK),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|xox[abeprs]-|AKIA|ASIA|AIza)[A-Za-z0-9_-]{12,}"), MASK),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"), MASK),
    (
        re.compile(rf"(\b\w{{0,32}}{_WORD}{_IS}(?:{_QUOTED}|{_FIGURES})?){_HIDDEN}{{4,}}", re.IGNORECASE),
        rf"\1{MASK}",
    ),
)


class Redactor:
    """Takes known secrets, and whatever looks like one, out of text and of plain data; NaN becomes text."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        forms = sorted(
            {form for value in known for form in _forms(value)}, key=lambda form: (-len(form), form)
        )
        self._known = re.compile("|".join(map(_pattern_of, forms))) if forms else None

    def text(self, text: str) -> str:
        """The text without secrets."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        for pattern, instead in PATTERNS:
            text = pattern.sub(instead, text)
        return text

    def value(self, value: Any, depth: int = 0) -> Any:
        """Plain data without secrets; a field with the name of a secret is masked whatever it holds."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (SecretStr, SecretBytes)) or depth > DEEPEST:
            return MASK
        if isinstance(value, Mapping):
            return {
                self.value(key, depth + 1): MASK
                if is_secret_name(str(key)) and inner not in (None, "")
                else self.value(inner, depth + 1)
                for key, inner in value.items()
            }
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.value(inner, depth + 1) for inner in value]
        if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and isfinite(value)):
            return value
        return self.text(str(value))


def known_secrets(environment: Mapping[str, str], addresses: Iterable[str] = ()) -> frozenset[str]:
    """Every secret that can be told from the environment, from files it names, and from store addresses."""
    return frozenset(_from_environment(environment)) | frozenset(
        part for address in addresses for part in _long_passwords(address)
    )


def redactor_of(environment: Mapping[str, str] | None = None, *addresses: str) -> Redactor:
    """A redactor for this process."""
    return Redactor(known_secrets(os.environ if environment is None else environment, addresses))


def masked_webhook(url: str) -> str:
    """A webhook's address as it may be shown: scheme and host; its path is its key."""
    try:
        parts = urlsplit(url)
        return (
            f"{parts.scheme}://{parts.hostname or ''}{'' if parts.port is None else f':{parts.port}'}/{MASK}"
        )
    except ValueError:
        return MASK


def is_address(text: str) -> bool:
    """Whether a text is an address that an HTTP client takes."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or a bracket that is none
        return False
    return usable and text.isascii() and text.isprintable() and " " not in text


def masked_addresses(text: str) -> str:
    """The text with the passwords of addresses in it masked."""
    pattern, instead = PATTERNS[0]
    return IN_QUERY.sub(rf"\1{MASK}", pattern.sub(instead, text))


def _from_environment(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        base = name.removesuffix(FILE)
        if is_secret_name(base) and name != base:
            value = _file_of(base, environment)
        # Any word is the key of a server that wants none: a short one is no secret, and may be a command.
        least = PLAIN_FROM if base in MODEL_KEYS else LEAST_NAMED
        if is_secret_name(base) and len(value) >= least:
            yield value
        if base == WEBHOOK_URL:
            yield from _webhook_parts(value)
        address = _file_of(base, environment) if name.endswith(f"DB{FILE}") else value
        yield from _long_passwords(address)


def _file_of(name: str, environment: Mapping[str, str]) -> str:
    try:
        return secret(name, {name + FILE: environment[name + FILE]}) or ""
    except ConfigError:  # whoever needs it says what is wrong with it
        return ""


def holds_password(address: str) -> bool:
    """Whether an address carries a password, before its host or among its options."""
    return "://" in address and any(_passwords(address))


def _passwords(address: str) -> Iterator[str]:
    before, _, rest = address.partition("://")
    user_info = rest.rpartition("@")[0]
    given = [user_info.partition(":")[2]] if ":" in user_info else []
    pairs = (pair.partition("=") for pair in rest.partition("?")[2].split("&"))
    given += [value for name, _, value in pairs if "pass" in name.lower() or is_secret_name(name)]
    yield from (part for part in given if before and part)


def _long_passwords(address: str) -> Iterator[str]:
    if "://" in address:
        yield from (password for password in _passwords(address) if len(password) >= LEAST_PASSWORD)


def _webhook_parts(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    pieces = [*parts.path.split("/"), *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    yield from (piece for piece in pieces if len(piece) >= LEAST_PATH)
    if len(parts.path) >= LEAST_PATH:
        yield parts.path


def _forms(value: str) -> Iterator[str]:
    # As it is, as it stands in an address, in JSON and in a quoted text.
    yield value
    yield unquote(value)
    yield quote(value, safe="")
    yield json.dumps(value)[1:-1]
    yield repr(value)[1:-1]


def _pattern_of(form: str) -> str:
    escaped = re.escape(form)
    return escaped if len(form) >= PLAIN_FROM else rf"(?<![A-Za-z0-9]){escaped}(?![A-Za-z0-9])"
