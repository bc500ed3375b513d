"""Secrets come from the environment or from files that it names, and from nowhere else.

Every secret NAME may be given as NAME_FILE instead: the path of a file that holds it, as container secrets
are. Values are never printed; `worker.secrets.redaction` keeps them out of everything that is.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

from schemas.errors import ConfigError
from schemas.settings.providers import PROVIDERS

MODEL_KEYS = tuple(provider.key for provider in PROVIDERS.values())
OPERATIONS_TOKEN = "THINKTWICE_OPERATIONS_TOKEN"
MCP_TOKEN = "THINKTWICE_MCP_TOKEN"
CONSOLE_SECRET = "THINKTWICE_CONSOLE_SECRET"
WEBHOOK_URL = "THINKTWICE_WEBHOOK_URL"
WEBHOOK_SECRET = "THINKTWICE_WEBHOOK_SECRET"
STORE_ADDRESS = "THINKTWICE_RUNTIME__DB"
STORE_PASSWORD = "THINKTWICE_DB_PASSWORD"
FILE = "_FILE"
TOKENS = (OPERATIONS_TOKEN, MCP_TOKEN, CONSOLE_SECRET, WEBHOOK_URL, WEBHOOK_SECRET)
NAMES = (*MODEL_KEYS, *TOKENS, STORE_ADDRESS, STORE_PASSWORD)
# Names of ours that are read here and are no settings.
OURS = frozenset(name + end for name in (*TOKENS, STORE_PASSWORD) for end in ("", FILE)) | {
    STORE_ADDRESS + FILE
}

LONGEST = 65_536
LEAST_BYTES = 32
LEAST_KINDS = 12
WORDS = ("(api|access|secret|private)_?key", "secret", "token", "passw(or)?d", "passphrase", "webhook_?url")
SECRET_WORD = re.compile(rf"(^|[_.-]|pg)({'|'.join(WORDS)})$", re.IGNORECASE)


def secret(name: str, environment: Mapping[str, str]) -> str | None:
    """The secret of this name; None when neither NAME nor NAME_FILE is set, or set to nothing.

    Raises:
        ConfigError: both are set, or the file holds no secret.
    """
    given, path = environment.get(name, ""), environment.get(name + FILE, "")
    if given and path:
        raise ConfigError(f"{name} and {name + FILE} are both set: unset one of them")
    return _read(name + FILE, Path(path)) if path else given or None


def with_password(address: str, password: str) -> str:
    """A server's address with the password of its user, quoted; that of a file as it is.

    Raises:
        ConfigError: it names no user, or holds a password already.
    """
    scheme, separator, rest = address.partition("://")
    if scheme == "sqlite" or not separator:
        return address
    user, at, server = rest.rpartition("@")
    if not user or ":" in user:
        wrong = "names no user" if not user else "holds a password already"
        raise ConfigError(
            f"{STORE_PASSWORD} is set, and the address of the store {wrong}. It goes with "
            f"postgresql://USER@HOST/DATABASE; unset {STORE_PASSWORD} for another"
        )
    return f"{scheme}://{user}:{quote(password, safe='')}{at}{server}"


def strong(value: str) -> bool:
    """Whether a secret may guard an interface that others reach.

    It has 32 bytes or more of 12 kinds, is no shorter text repeated, and does not count up or down.
    """
    repeats = value in (value + value)[1:-1]
    counted = sum(abs(ord(letter) - ord(other)) == 1 for letter, other in pairwise(value))
    varied = len(set(value)) >= LEAST_KINDS and not repeats and counted <= len(value) / 2
    return len(value.encode()) >= LEAST_BYTES and varied


def is_secret_name(name: str) -> bool:
    """Whether a setting, field or variable of this name would hold a secret."""
    return SECRET_WORD.search(name) is not None


def where_secrets_belong(name: str) -> str:
    """What to say to whoever writes a secret into a file of settings."""
    known = ", ".join(NAMES)
    return f"{name!r} looks like a secret: give it in the environment or in a file ({known}; or NAME_FILE)"


def _read(variable: str, path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LONGEST + 1)
    except OSError as error:
        raise ConfigError(f"{variable}: file {str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        # The cause would carry the bytes of the secret.
        raise ConfigError(f"{variable}: file {str(path)!r} is not UTF-8 text") from None
    value = text.rstrip("\r\n")
    if not value or len(text) > LONGEST or "\n" in value or "\0" in value:
        raise ConfigError(f"{variable}: file {str(path)!r} does not hold one secret on one line")
    return value
