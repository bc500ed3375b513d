"""Who asks the console: users with passwords, sessions of browsers, and the local person without either."""

import asyncio
import getpass
import hmac
import math
import re
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from schemas.errors import ConfigError

if TYPE_CHECKING:
    from services.store.console_users import ConsoleUser, ConsoleUsers, Role

SIGNED = re.compile(r"(?P<name>(?:[0-9a-f]{2}){1,256})\.(?P<began>[0-9]{1,12})\.[\w-]{22}", re.ASCII)
SESSION_S = 12 * 3_600.0
IDLE_S = 3_600.0
MOST_SESSIONS = 1_000
MOST_TRIES, TRIES_S = 10, 300.0
LEAST_PASSWORD, LONGEST_PASSWORD = 12, 256


@dataclass(frozen=True)
class Person:
    """Whoever asks, as decisions and the audit name them.

    Attributes:
        name: of the user; of the local person with what lets them in.
        role: `operator` decides, `reader` looks.
        token: that a browser's writes carry beside their cookie; None for a program.
    """

    name: str
    role: "Role"
    token: str | None = None


class TooManyTries(ConfigError):
    """A name or an address has failed to log in too often; `wait_s` says for how long nobody may try."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"too many failed logins: try again in {wait_s:.0f} s")
        self.wait_s = wait_s


class People:
    """Logs users in, and knows their sessions by cookies that it has signed.

    A session ends after an hour without a request, after twelve hours, when somebody logs out, and when its
    user goes or gets another password.

    Args:
        users: of the store.
        local: whether this machine alone reaches the console; then nobody logs in while there is no user.
        secret: that signs cookies; None: one of this object alone, with which its sessions end.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        users: "ConsoleUsers",
        *,
        local: bool,
        secret: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._users, self._local, self._now = users, local, now
        self._key = (secret or secrets.token_hex(32)).encode()
        self._seen: OrderedDict[str, float] = OrderedDict()  # by cookie; when somebody logged out: never
        self._failures: dict[str, deque[float]] = {}

    async def local_person(self) -> Person | None:
        """The operator at this machine, while the store has no user; None where somebody has to log in."""
        if not self._local or await self._users.all():
            return None
        return Person(f"{getpass.getuser()} (local, no login)", "operator")

    async def log_in(self, name: str, password: str, address: str) -> str | None:
        """The cookie of a new session; None where name and password do not fit.

        Raises:
            TooManyTries: this name or address failed too often.
        """
        person = await self.check(name, password, address)
        user = None if person is None else await self._users.find(name)
        return None if person is None or user is None else self.begin(person, user)[0]

    async def check(self, name: str, password: str, address: str) -> Person | None:
        """Who has this name and password; None for nobody.

        Raises:
            TooManyTries: this name or address failed too often.
        """
        places = (f"name {name[:64]}", f"address {address}")
        for place in places:
            self._demand_tries(place)
        user = await self._users.find(name)
        stored = _nobody() if user is None else user.password_hash
        if not await asyncio.to_thread(is_password, stored, password) or user is None:
            for place in places:
                self._failures.setdefault(place, deque(maxlen=MOST_TRIES)).append(self._now())
            return None
        return Person(user.name, user.role)

    def begin(self, person: Person, user: "ConsoleUser | None" = None) -> tuple[str, Person]:
        """The cookie of a new session of somebody, and who that is with the token of its pages."""
        body = f"{person.name.encode().hex()}.{self._now():.0f}.{secrets.token_urlsafe(16)}"
        cookie = f"{body}.{self._sign(body, user)}"
        self._note(cookie, self._now())
        return cookie, replace(person, token=self._token(cookie))

    async def of_session(self, cookie: str) -> Person | None:
        """Who a cookie stands for, as the store has them now; None where its session is over."""
        body, _, signature = cookie.rpartition(".")
        found = SIGNED.fullmatch(body)
        if found is None:
            return None
        name, now = bytes.fromhex(found["name"]).decode("utf-8", "replace"), self._now()
        local, user = await self.local_person(), await self._users.find(name)
        known = local if local is not None and local.name == name else user
        is_signed = hmac.compare_digest(self._sign(body, user).encode(), signature.encode())
        idle, age = now - self._seen.get(cookie, now), now - float(found["began"])
        if known is None or not is_signed or idle > IDLE_S or not -1.0 <= age <= SESSION_S:
            return None
        self._note(cookie, now)
        return Person(name, known.role, self._token(cookie))

    def close_session(self, cookie: str) -> None:
        """End a session."""
        self._note(cookie, -math.inf)

    def _note(self, cookie: str, seen: float) -> None:
        self._seen[cookie] = seen
        self._seen.move_to_end(cookie)
        while len(self._seen) > MOST_SESSIONS:
            self._seen.popitem(last=False)

    def _sign(self, body: str, user: "ConsoleUser | None") -> str:
        """Of a session: another password of its user makes it another."""
        stored = "" if user is None else user.password_hash
        return hmac.new(self._key, f"{body} {stored}".encode(), sha256).hexdigest()

    def _token(self, cookie: str) -> str:
        return hmac.new(self._key, f"token of {cookie}".encode(), sha256).hexdigest()

    def _demand_tries(self, place: str) -> None:
        tries = self._failures.get(place)
        if tries is None:
            return
        while tries and self._now() - tries[0] > TRIES_S:
            tries.popleft()
        if not tries:
            del self._failures[place]
        elif len(tries) >= MOST_TRIES:
            raise TooManyTries(TRIES_S - (self._now() - tries[0]))


def has_token(person: Person, given: str) -> bool:
    """Whether a browser's write carries the token of its session."""
    return person.token is not None and hmac.compare_digest(person.token.encode(), given.encode())


def is_password(stored: str, password: str) -> bool:
    """Whether a password is the one that was stored."""
    try:
        return PasswordHasher().verify(stored, password[:LONGEST_PASSWORD])
    except (VerificationError, InvalidHashError):
        return False


def hash_password(password: str) -> str:
    """The password as the store keeps it.

    Raises:
        ConfigError: it is too short or too long.
    """
    if not LEAST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise ConfigError(f"a password has {LEAST_PASSWORD} to {LONGEST_PASSWORD} characters")
    return PasswordHasher().hash(password)


@cache
def _nobody() -> str:
    """What is verified where a name is unknown: an answer does not tell by its time which names there are."""
    return PasswordHasher().hash(secrets.token_hex())
