"""The console in a real browser: plans are decided, by keys alone too, narrow and dark, nothing foreign."""

import subprocess

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.commands.started import thinktwice
from tests.pages.browser import needs_browser
from tests.worker.cli.test_plans import made, risk_of
from tests.worker.console.asked import PASSWORD, add_user, started
from tools import console_pictures
from tools.chromium import tab

pytestmark = needs_browser
PAGES = ("/plans", "/live?run=latest", "/runs", "/runs/latest", "/ask", "/audit")


@pytest.fixture
def console(planted):
    plan = made(planted)
    with started() as url:
        yield url, plan, planted


def opened(page, url, faults):
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.route(
        "**/*",
        lambda route: (
            route.continue_()
            if route.request.url.startswith(url)
            else (faults.append(route.request.url), route.abort())
        ),
    )
    page.on("dialog", lambda dialog: dialog.accept())


def test_plan_is_edited_and_approved_and_the_stale_page_is_refused(console):
    url, plan, planted = console
    faults: list[str] = []
    with tab(online=True) as page:
        other = page.context.new_page()
        for window in (page, other):
            opened(window, url, faults)
            window.goto(f"{url}/plans")
            window.click(f"text=Plan {plan['plan_id']}")
        page.fill("input[name='steps.1.value']", "0.001")
        page.click("text=Save as a new revision")
        page.wait_for_selector("text=Revision 2")
        other.click("text=Approve this revision")
        other.wait_for_selector("#notice:has-text('revision 2')")
        page.click("text=Approve this revision")
        page.wait_for_selector("text=completed")
    assert risk_of(planted) == 0.001
    assert [fault for fault in faults if "409" not in fault] == []


def test_plan_is_cancelled_by_keys_alone(console):
    url, plan, _ = console
    faults: list[str] = []
    with tab(online=True) as page:
        opened(page, url, faults)
        page.goto(f"{url}/plans/{plan['plan_id']}")
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "Cancel the plan":
                break
        page.keyboard.press("Enter")
        page.wait_for_selector("text=cancelled")
    assert faults == []


def test_pages_have_no_serious_fault_narrow_and_dark_and_load_nothing_of_others(console):
    url, plan, _ = console
    faults: list[str] = []
    with tab(online=True) as page:
        opened(page, url, faults)
        for width in (1_280, 400):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme="dark" if width == 400 else "light")
            for place in (*PAGES, f"/plans/{plan['plan_id']}"):
                page.goto(url + place)
                found = Axe().run(page).response["violations"]
                serious = [item for item in found if item["impact"] in ("serious", "critical")]
                assert [(place, item["id"], item["nodes"][0]["html"][:200]) for item in serious] == []
                assert page.evaluate("document.documentElement.scrollWidth") <= width, place
    # The bars of the planted run are in no file: its chart says so.
    assert [fault for fault in faults if "409" not in fault] == []


def test_chart_of_a_run_is_drawn_and_a_fill_opens_its_chain(shell):
    words = ("--symbols", "IBM", "--from", "2003-01-01", "--to", "2004-12-31")
    subprocess.run([thinktwice(), "backtest", *words], check=True, capture_output=True)
    faults: list[str] = []
    with started() as url, tab(online=True) as page:
        opened(page, url, faults)
        page.goto(f"{url}/runs/latest")
        page.wait_for_selector("#chart[data-drawn]")
        page.click("#whole")
        page.wait_for_selector("#chart[data-drawn='504']")
        chain = page.evaluate("Bokeh.documents.at(-1).get_model_by_name('fills').data.chain[0]")
        page.evaluate("Bokeh.documents.at(-1).get_model_by_name('fills').selected.indices = [0]")
        page.click("#tapped a")
        page.wait_for_selector("ul.tree")
        assert chain[:16] in page.content()
    assert faults == []


def test_pictures_of_the_docs_are_drawn_from_the_pages_and_of_modest_size(shell, tmp_path):
    for words in (console_pictures.RUN[:-1] + ("2004-12-31",), console_pictures.PLAN):
        subprocess.run([thinktwice(), *words], check=True, capture_output=True)
    add_user(console_pictures.NAME, "operator", console_pictures.PASSWORD)
    with started() as url:
        drawn = console_pictures.draw(url, tmp_path)
    for picture in (*drawn, *(console_pictures.FOLDER / own.name for own in drawn)):
        data = picture.read_bytes()
        assert data.startswith(b"\x89PNG")
        assert 20_000 < len(data) < 150_000


def test_user_logs_in_and_out_and_a_reader_sees_no_button(planted):
    add_user("rita", "reader")
    plan = made(planted)
    with started() as url, tab(online=True) as page:
        faults: list[str] = []
        opened(page, url, faults)
        page.goto(f"{url}/plans/{plan['plan_id']}")
        log_in(page)
        page.goto(f"{url}/plans/{plan['plan_id']}")
        assert page.locator("text=Approve this revision").count() == 0
        page.click("text=log out")
        page.wait_for_selector("input[name=password]")
        assert faults == []
        log_in(page)
        page.goto(f"{url}/live?run=latest")
        page.context.clear_cookies()
        page.wait_for_selector("#notice:has-text('log in first')")


def log_in(page):
    page.fill("input[name=name]", "rita")
    page.fill("input[name=password]", PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_selector("text=rita, reader")
