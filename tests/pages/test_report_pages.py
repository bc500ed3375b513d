"""Report pages in a real browser without a network: on a desk and on a phone, light and dark."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.browser import SCHEMES, WIDTHS, Window, needs_browser, window
from tests.worker.pages.reading import entries
from worker.runs.out_folder import report_files

pytestmark = needs_browser
RUN = {
    "run_id": "r0001",
    "data": {
        "symbols": ["AAA", "BBB"],
        "timeframe": "1d",
        "start": "2024-01-01T00:00:00+00:00",
        "end": "2025-01-01T00:00:00+00:00",
    },
    "performance": {"total_return": 0.125, "buy_and_hold_return": -0.25},
}
INDEX = "index.html"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out")
    (folder / "reports").mkdir()
    for name, text in report_files(entries(), RUN).items():
        (folder / name).write_text(text, "utf-8")
    return folder / "reports"


@pytest.fixture(scope="module")
def tab(folder) -> Iterator[Window]:
    with window() as opened:
        yield opened


@pytest.fixture(autouse=True)
def nothing_goes_wrong(tab) -> Iterator[None]:
    tab.faults.clear()
    yield
    assert tab.faults == []


@pytest.fixture(params=[INDEX, "report"])
def file(request: pytest.FixtureRequest, folder: Path) -> Path:
    return folder / (INDEX if request.param == INDEX else f"{entries()[-1]['report_id']}.html")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_report_pages_fit_the_window_and_can_be_read(tab, file, width, scheme):
    page = tab.open(file, width, scheme)
    assert tab.overflow() <= 0
    assert tab.faint() == []
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shade == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 25, 29)")


def test_report_tables_and_pictures_wider_than_a_phone_scroll_within_themselves(tab, folder):
    page = tab.open(folder / f"{entries()[-1]['report_id']}.html", 400, "light")
    wide = page.locator(".scroll").evaluate_all(
        "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.ariaLabel)"
    )
    assert {"Mean R of clusters", "Drift", "Holds and excursions"} <= set(wide)
    assert any("Clusters" in name for name in wide)
    frame = page.get_by_role("region", name="Clusters. From and to")
    first = frame.locator("tbody td").first
    frame.scroll_into_view_if_needed()
    before = first.bounding_box()
    assert frame.evaluate("(one) => { one.scrollLeft = 300; return one.scrollLeft; }") == 300
    assert first.bounding_box() == before, "the name of a row stays in sight"


def test_report_pictures_print_no_text_over_another(tab, folder):
    page = tab.open(folder / f"{entries()[-1]['report_id']}.html", 1280, "light")
    overlaps = page.evaluate("""() => [...document.querySelectorAll('svg')].flatMap((svg) => {
      const texts = [...svg.querySelectorAll('text')].map((one) => [one.textContent, one.getBBox()]);
      return texts.flatMap(([a, p], k) => texts.slice(k + 1)
        .filter(([b, q]) => p.x < q.x + q.width - 1 && q.x < p.x + p.width - 1
          && p.y < q.y + q.height - 5 && q.y < p.y + p.height - 5)
        .map(([b]) => `${a} | ${b}`));
    })""")
    assert overlaps == []


def test_every_link_of_the_index_and_of_a_report_leads_to_a_page(tab, folder):
    page = tab.open(folder / INDEX, 1280, "light")
    assert page.get_by_role("heading", level=1).inner_text() == "High-level reflections of run r0001"
    names = [entry["report_id"] for entry in entries()]
    for k, name in enumerate(names):
        page.locator("tbody tr").nth(k).get_by_role("link").first.click()
        assert page.url == (folder / f"{name}.html").as_uri()
        page.get_by_role("link", name="all reports").click()
        assert page.url == (folder / INDEX).as_uri()
    page.locator(f"a[href='{names[0]}.html']").click()
    page.get_by_role("link", name="after").click()
    page.get_by_role("link", name="before").click()
    assert page.url == (folder / f"{names[0]}.html").as_uri()


def test_window_notes_requests_errors_faint_words_and_what_overflows(tab, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text(
        "<body style='background: #fff'><img src='http://127.0.0.1:9/x.png' style='width: 2000px'>"
        "<p style='color: #bbb'>hardly seen</p><p>seen</p><script>throw Error('thrown')</script>",
        "utf-8",
    )
    tab.open(broken, 400, "light")
    kinds = {fault.partition(":")[0] for fault in tab.faults}
    assert kinds == {"request", "script", "console"}
    assert tab.overflow() > 1000
    assert [item.partition(": ")[2] for item in tab.faint()] == ["hardly seen"]
    tab.faults.clear()
