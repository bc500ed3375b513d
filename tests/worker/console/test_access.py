"""Who reaches the console: hosts, origins, tokens, users, roles, and what a machine of others needs."""

import pytest

from tests.worker.cli.test_plans import made
from tests.worker.console.asked import PASSWORD, URL, add_user, ask, get, log_in, token_of
from worker.console.guards import Address
from worker.console.people import IDLE_S, MOST_TRIES, SESSION_S, People, Person, TooManyTries

SECRET = "8f2c1d9be04a7735c6e1f0a2d4b8937e5a6c1b2d3e4f5061728394a5b6c7d8e9"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1:8766", "origin": "http://evil.example"}, 403),
        ({"host": "127.0.0.1:8766", "sec-fetch-site": "cross-site"}, 403),
        ({"host": "127.0.0.1:8766", "content-length": "1000001"}, 413),
        ({"host": "127.0.0.1:8766", "transfer-encoding": "chunked"}, 413),
        ({"host": "127.0.0.1:8766", "origin": URL}, 403),
    ],
)
def test_write_of_another_host_page_or_size_is_refused(planted, headers, status):
    path = f"/api/plans/{made(planted)['plan_id']}/cancel"
    answer = ask(lambda client: client.post(path, headers=headers))
    assert answer.status_code == status
    assert ask(lambda client: client.get("/api/plans")).json()[0]["state"] == "awaiting_approval"


def test_session_without_its_token_writes_nothing(planted):
    path = f"/api/plans/{made(planted)['plan_id']}/cancel"

    async def steps(client):
        await token_of(client)
        return [
            (await client.post(path, headers=headers)).status_code
            for headers in ({}, {"x-csrf-token": "another"}, {"origin": URL})
        ]

    assert ask(steps) == [403, 403, 403]


def test_program_on_this_machine_decides_without_a_session(planted):
    plan = made(planted)
    answer = ask(lambda client: client.post(f"/api/plans/{plan['plan_id']}/cancel"))
    assert answer.json()["state"] == "cancelled"


def test_first_user_ends_the_access_of_the_local_person(planted):
    add_user("ann", "operator")

    async def steps(client):
        page = await client.get("/plans", headers={"accept": "text/html"})
        return page, await client.get("/api/runs"), await client.get("/health")

    page, api, _ = ask(steps)
    assert (page.status_code, page.headers["location"], api.status_code) == (303, "/login", 401)


def test_reader_sees_a_plan_and_decides_nothing(planted):
    add_user("rita", "reader")
    plan = made(planted)

    async def steps(client):
        await log_in(client, "rita")
        token = await token_of(client)
        page = (await client.get(f"/plans/{plan['plan_id']}", headers={"accept": "text/html"})).text
        path = f"/api/plans/{plan['plan_id']}/approve"
        return page, await client.post(path, json={"hash": plan["hash"]}, headers=token)

    page, refused = ask(steps)
    assert "rita is a reader" in page
    assert 'data-post="/api/plans' not in page.replace(
        'data-post="/api/plans/' + plan["plan_id"] + "/edit", ""
    )
    assert refused.status_code == 403


def test_operator_logs_in_and_their_name_stands_with_the_decision(planted):
    add_user("otto", "operator")
    plan = made(planted)

    async def steps(client):
        moved = await log_in(client, "otto")
        token = await token_of(client)
        path = f"/api/plans/{plan['plan_id']}/cancel"
        return moved, await client.post(path, headers=token), (await client.get("/api/audit")).json()

    moved, done, audit = ask(steps)
    cookie = moved.headers["set-cookie"].lower()
    assert (moved.status_code, "httponly" in cookie, "samesite=strict" in cookie) == (303, True, True)
    assert done.json()["decided"]["by"] == "otto"
    assert [entry["who"] for entry in audit] == ["otto"]


def test_program_of_a_user_gives_name_and_password(planted):
    add_user("otto", "operator")

    async def steps(client):
        good = await client.get("/api/me", auth=("otto", PASSWORD))
        return good.json(), (await client.get("/api/me", auth=("otto", "another password"))).status_code

    me, bad = ask(steps)
    assert (me["name"], me["role"], bad) == ("otto", "operator", 401)


def test_name_that_fails_too_often_has_to_wait(planted):
    add_user("otto", "operator")

    async def steps(client):
        failed = [(await log_in(client, "otto", "wrong password")).status_code for _ in range(MOST_TRIES)]
        return failed, (await log_in(client, "otto")).status_code

    failed, then = ask(steps)
    assert (set(failed), then) == ({401}, 429)


class Users:
    """A store of users with one in it."""

    def __init__(self, *users):
        self.users = users

    async def all(self):
        return self.users

    async def find(self, name):
        return next((user for user in self.users if user.name == name), None)


def run_steps(work):
    import asyncio

    return asyncio.run(work)


def test_session_ends_when_idle_when_its_user_goes_and_follows_the_role():
    from services.store.console_users import ConsoleUser

    now = [0.0]
    users = Users(ConsoleUser("a", "operator", "x"))
    people = People(users, local=False, now=lambda: now[0])  # type: ignore[arg-type]
    cookie, _ = people.begin(Person("a", "operator"), users.users[0])
    assert run_steps(people.of_session(cookie)).role == "operator"
    users.users = (ConsoleUser("a", "reader", "x"),)
    assert run_steps(people.of_session(cookie)).role == "reader"
    now[0] += IDLE_S + 1
    assert run_steps(people.of_session(cookie)) is None
    for users_then in ((), (ConsoleUser("a", "reader", "another password"),)):
        users.users = (ConsoleUser("a", "reader", "x"),)
        cookie, _ = people.begin(Person("a", "reader"), users.users[0])
        assert run_steps(people.of_session(cookie)) is not None
        users.users = users_then
        assert run_steps(people.of_session(cookie)) is None


def test_secret_signs_sessions_which_outlive_the_process_and_no_other_opens_them():
    from services.store.console_users import ConsoleUser

    now = [1_000_000.0]
    ann = ConsoleUser("änn", "operator", "x")

    def people(secret):
        return People(Users(ann), local=False, secret=secret, now=lambda: now[0])  # type: ignore[arg-type]

    first = people(SECRET)
    cookie, known = first.begin(Person("änn", "operator"), ann)
    again = run_steps(people(SECRET).of_session(cookie))
    assert (again.name, again.token) == ("änn", known.token)
    assert run_steps(people(SECRET[::-1]).of_session(cookie)) is None
    assert run_steps(people(None).of_session(cookie)) is None
    name, began, nonce, signature = cookie.split(".")
    later = f"{int(began) + 60}"
    for forged in (
        f"{name}.{later}.{nonce}.{signature}",
        f"{b'rita'.hex()}.{began}.{nonce}.{signature}",
        "",
    ):
        assert run_steps(first.of_session(forged)) is None
    first.close_session(cookie)
    assert run_steps(first.of_session(cookie)) is None
    cookie, _ = first.begin(Person("änn", "operator"), ann)
    now[0] += SESSION_S + 1
    assert run_steps(people(SECRET).of_session(cookie)) is None


def test_failed_logins_are_forgotten_in_time():
    now = [0.0]
    people = People(Users(), local=False, now=lambda: now[0])  # type: ignore[arg-type]

    async def work():
        for _ in range(MOST_TRIES):
            assert await people.check("a", "b", "1.2.3.4") is None
        with pytest.raises(TooManyTries, match=r"try again in 300 s"):
            await people.check("a", "b", "1.2.3.4")
        now[0] += 301
        return await people.check("a", "b", "1.2.3.4")

    assert run_steps(work()) is None


def test_page_is_kept_from_frames_scripts_of_others_and_caches(planted):
    headers = get("/plans", accept="text/html").headers
    policy = headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert "frame-ancestors 'none'" in policy
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")


def test_console_of_others_needs_a_secret_and_a_user(shell, monkeypatch):
    said = shell.complaint("console", "--host", "0.0.0.0", "--port", "0")
    assert "THINKTWICE_CONSOLE_SECRET" in said
    monkeypatch.setenv("THINKTWICE_CONSOLE_SECRET", SECRET)
    assert "console user add" in shell.complaint("console", "--host", "0.0.0.0", "--port", "0")


def test_console_that_others_call_by_a_name_has_no_local_operator(shell):
    words = ("console", "--allow-host", "console.example", "--port", "0")
    assert "console user add" in shell.complaint(*words)


def test_cookie_of_a_console_behind_tls_is_sent_over_tls_alone(planted):
    add_user("otto", "operator")
    address = Address("0.0.0.0", ("127.0.0.1",), secure=True)
    moved = ask(lambda client: log_in(client, "otto"), address)
    assert "secure" in moved.headers["set-cookie"].lower()


def test_user_is_added_with_a_password_of_enough_letters_and_removed(shell, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    assert "12 to 256 characters" in shell.complaint("console", "user", "add", "ann")
