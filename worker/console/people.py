"""Who asks the console: users with passwords, sessions of browsers, and the local person without either."""

import asyncio
import getpass
import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from schemas.errors import ConfigError

if TYPE_CHECKING:
    from services.store.console_users import ConsoleUsers, Role

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


@dataclass
class _Session:
    person: Person
    began: float
    seen: float


class TooManyTries(ConfigError):
    """A name or an address has failed to log in too often; `wait_s` says for how long nobody may try."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"too many failed logins: try again in {wait_s:.0f} s")
        self.wait_s = wait_s


class People:
    """Logs users in, and knows sessions by the hash of their cookie.

    Sessions end with the process, after an hour without a request, and after twelve hours.

    Args:
        users: of the store.
        local: whether this machine alone reaches the console; then nobody logs in while there is no user.
        now: seconds, of a clock that only ascends.
    """

    def __init__(
        self, users: "ConsoleUsers", *, local: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._users, self._local, self._now = users, local, now
        self._sessions: dict[str, _Session] = {}
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
        return None if person is None else self.begin(person)[0]

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

    def begin(self, person: Person) -> tuple[str, Person]:
        """The cookie of a new session of somebody, and who that is with the token of its pages."""
        now = self._now()
        for key in [key for key, session in self._sessions.items() if self._is_over(session)]:
            del self._sessions[key]
        while len(self._sessions) >= MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        cookie = secrets.token_urlsafe(32)
        known = Person(person.name, person.role, secrets.token_urlsafe(32))
        self._sessions[_key(cookie)] = _Session(known, now, now)
        return cookie, known

    async def of_session(self, cookie: str) -> Person | None:
        """Who a cookie stands for, as the store has them now; None where its session is over."""
        session = self._sessions.get(_key(cookie))
        if session is None or self._is_over(session):
            self._sessions.pop(_key(cookie), None)
            return None
        local = await self.local_person()
        user = None if local is not None else await self._users.find(session.person.name)
        if (local or user) is None or (local is not None and local.name != session.person.name):
            self._sessions.pop(_key(cookie), None)
            return None
        session.seen = self._now()
        role = session.person.role if user is None else user.role
        return Person(session.person.name, role, session.person.token)

    def close_session(self, cookie: str) -> None:
        """End a session."""
        self._sessions.pop(_key(cookie), None)

    def _is_over(self, session: _Session) -> bool:
        now = self._now()
        return now - session.seen > IDLE_S or now - session.began > SESSION_S

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


def _key(cookie: str) -> str:
    return sha256(cookie.encode()).hexdigest()
