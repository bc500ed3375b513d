"""The page of a run in a real browser without a network: drawn, answering a pointer, sorted, filtered."""

import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.pages.browser import SCHEMES, WIDTHS, Window, needs_browser, window
from tests.worker.pages.test_run_page import page as page_text
from tests.worker.pages.test_run_page import picture
from tools.docs_pages import DOCS, ROOT
from tools.draw_page import DRAWN, HEIGHT, WIDTH
from worker.pages import run_page
from worker.pages.rendering import template_text
from worker.pages.run_figures import STOP, TARGET

pytestmark = needs_browser
SOURCE = """(name) => Bokeh.documents.map((one) => one.get_model_by_name(name)).find((one) => one).data"""
SELECTED = f"{SOURCE.removesuffix('.data')}.selected.indices"
# Where the last mark of a source lies in the window, in pixels.
PLACE = """([name, nth]) => {
  const made = Bokeh.documents.find((one) => one.get_model_by_name('candle_plot'));
  const plot = made.get_model_by_name('candle_plot'), data = made.get_model_by_name(name).data;
  const view = Bokeh.index.find_one(plot), edge = view.canvas.el.getBoundingClientRect();
  const k = nth < 0 ? data.x.length + nth : nth;
  const {x_scale, y_scale} = view.frame;
  return [edge.x + x_scale.compute(data.x[k]), edge.y + y_scale.compute(data.y[k])];
}"""
FIELD = f"{SOURCE.removesuffix('.data')}.glyph.y.field"
INK = "getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()"
AXIS_INK = """Bokeh.documents.map((one) => one.get_model_by_name('candle_plot')).find((one) => one)
  .below[0].axis_label_text_color"""
INKED = """() => {
  const plot = Bokeh.documents.map((one) => one.get_model_by_name('candle_plot')).find((one) => one);
  const canvas = Bokeh.index.find_one(plot).canvas.primary.canvas;
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let green = 0;
  for (let k = 0; k < pixels.length; k += 4) {
    green += pixels[k] === 0 && pixels[k + 1] === 158 && pixels[k + 2] === 115;
  }
  return green;
}"""


def most_traded():
    return picture().marks[picture().bars.symbols[picture().most_traded]]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "run.html"
    file.write_text(page_text(), "utf-8")
    return file


@pytest.fixture(scope="module")
def tab(file: Path) -> Iterator[Window]:
    with window() as opened:
        yield opened


@pytest.fixture(autouse=True)
def nothing_goes_wrong(tab: Window) -> Iterator[None]:
    tab.faults.clear()
    yield
    assert tab.faults == []


@pytest.fixture
def opened(tab, file):
    def open_page(width=1280, scheme="light"):
        page = tab.open(file, width, scheme)
        page.wait_for_selector(DRAWN)
        return page

    return open_page


def test_run_page_fits_the_window_and_can_be_read(tab, opened):
    for width in WIDTHS:
        for scheme in SCHEMES:
            page = opened(width, scheme)
            assert tab.overflow() <= 0, (width, scheme)
            assert tab.faint() == [], (width, scheme)
            shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert shade == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 25, 29)")
            assert page.evaluate(INKED) > 100


def show_all(page):
    """The candles over all their bars; the page opens on the last ones."""
    page.evaluate("""() => {
      const made = Bokeh.documents.find((one) => one.get_model_by_name('candle_plot'));
      const range = made.get_model_by_name('candle_x');
      range.setv({start: range.reset_start, end: range.reset_end});
    }""")
    page.wait_for_timeout(200)


def test_run_page_opens_on_the_last_bars_and_steps_from_trade_to_trade(opened):
    page = opened()
    bars, fills = page.evaluate(SOURCE, "candles"), most_traded().fills
    assert len(bars["x"]) in (150, 151)
    assert bars["x"][-1] == picture().bars.times[-1] / 1e6
    entries = [mark.label / 1e6 for mark in fills if mark.kind == "entry_filled"]
    before = [label for label in entries if label < bars["x"][-1]]
    for step in range(1, 4):
        page.get_by_role("button", name="previous trade").click()
        page.wait_for_timeout(200)
        assert before[-step] in page.evaluate(SOURCE, "fills")["x"]
        expect(page.locator("#why li").first).to_contain_text("entry_filled")
    page.get_by_role("button", name="next trade").click()
    page.wait_for_timeout(200)
    assert before[-2] in page.evaluate(SOURCE, "fills")["x"]


def test_run_page_log_axes_are_logarithmic_and_back(opened):
    page = opened()
    for box, plot in (("price_log", "candle_plot"), ("equity_log", "equity")):
        kind = SOURCE.removesuffix(".data") + ".y_scale.type"
        for expected in ("LogScale", "LinearScale"):
            page.locator(f"#{box}").click()
            assert page.evaluate(kind, plot) == expected
            assert page.evaluate(INKED) > 100


def test_run_page_names_its_parts_and_explains_its_figures(opened):
    page = opened()
    for link in page.locator("nav a").all():
        assert page.locator(str(link.get_attribute("href"))).count() == 1
    assert page.locator("abbr[title]").count() > 20
    assert page.locator("#falls tbody tr").count() == len(picture().falls) > 0
    for name in ("years", "spread"):
        assert page.evaluate(f"{SOURCE.removesuffix('.data')}.renderers.length", name) == 1


def test_run_page_button_turns_the_page_dark(opened):
    page = opened()
    for shade in ("rgb(22, 25, 29)", "rgb(255, 255, 255)"):
        page.locator("#theme").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == shade
        assert page.evaluate(AXIS_INK) == page.evaluate(INK)


def test_run_page_pointer_tells_the_verdict_and_a_click_what_led_to_it(opened):
    page = opened()
    show_all(page)
    page.locator("#candles").scroll_into_view_if_needed()
    marks = [mark for mark in most_traded().reflections if mark.matters]
    nth = max(k for k, mark in enumerate(marks) if mark.decision not in (None, mark.status))
    x, y = page.evaluate(PLACE, ["reflections", nth])
    page.mouse.move(x - 40, y)
    page.mouse.move(x, y)
    shown = page.locator(".bk-Tooltip", has_text="judge").first
    expect(shown).to_contain_text(f"judge: {marks[nth].decision}")
    page.mouse.click(x, y)
    expect(page.locator("#why li").first).to_be_visible()
    assert page.locator("#why summary").count() > 1


def test_run_page_draws_buy_and_hold_every_fill_and_the_lines_of_stops_and_targets(opened):
    page, marks = opened(), most_traded()
    assert page.evaluate(SOURCE, "curve")["hold"] == pytest.approx(list(picture().hold[1:]), rel=1e-6)
    assert page.evaluate(FIELD, "hold_line") == "hold"
    show_all(page)
    fills, levels = page.evaluate(SOURCE, "fills"), page.evaluate(SOURCE, "levels")
    assert fills["y"] == [mark.price for mark in marks.fills]
    colors = {"stop": STOP, "target": TARGET}
    assert set(zip(levels["y"], levels["color"], strict=True)) == {
        (line.price, colors[line.kind]) for line in marks.levels
    }


def test_run_page_thins_no_peak_and_no_fall_of_any_curve_away(tab, tmp_path, monkeypatch):
    monkeypatch.setattr(run_page, "template_text", lambda name: template_text(name).replace("3000", "30"))
    file = tmp_path / "run.html"
    file.write_text(run_page.run_html(picture()), "utf-8")
    page = tab.open(file, 1280, "light")
    page.wait_for_selector(DRAWN)
    drawn = page.evaluate(SOURCE, "curve")
    assert len(drawn["x"]) < len(picture().equity) / 3
    assert drawn["x"] == sorted(drawn["x"])
    for name, curve in picture().curves.items():
        found = np.array(drawn[name], dtype=float)
        edges = np.nanmin(curve), np.nanmax(curve)
        assert (np.nanmin(found), np.nanmax(found)) == pytest.approx(edges, rel=1e-6, abs=1e-6), name


def test_run_page_shows_every_column_of_its_trades_in_a_window_of_1280_pixels(opened):
    page = opened()
    frame, table = page.locator("#ledger .scroll"), page.locator("#trades")
    assert table.evaluate("(one) => one.offsetWidth") <= frame.evaluate("(one) => one.clientWidth")
    assert table.locator("th").count() == 18
    page = opened(400)
    assert table.evaluate("(one) => one.offsetWidth") > frame.evaluate("(one) => one.clientWidth")
    frame.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)  # the page's own policy lets nothing be evaluated while it is waited for
    assert frame.evaluate("(one) => one.scrollLeft") > 0


def test_run_page_shows_the_candles_of_the_chosen_symbol(opened):
    page = opened()
    highs = {}
    for option in page.locator("#symbol option").all():
        page.locator("#symbol").select_option(option.get_attribute("value"))
        page.wait_for_timeout(100)
        highs[option.inner_text()] = max(page.evaluate(SOURCE, "candles")["high"])
    assert len(set(highs.values())) == len(highs) == 2


def test_run_page_fades_no_other_fill_and_forgets_the_selected_one_with_its_symbol(opened):
    page = opened()
    page.locator("#candles").scroll_into_view_if_needed()
    every = page.evaluate(INKED)
    page.mouse.click(*page.evaluate(PLACE, ["fills", -2]))
    assert page.evaluate(SELECTED, "fills") != []
    expect(page.locator("#why li").first).to_be_visible()
    page.mouse.move(0, 0)
    page.wait_for_timeout(200)
    assert page.evaluate(INKED) > 0.95 * every
    other = page.locator("#symbol option:not(:checked)").get_attribute("value")
    page.locator("#symbol").select_option(other)
    expect(page.locator("#why")).to_have_text("Click a fill, a dot or a trade.")
    page.wait_for_timeout(100)
    assert page.evaluate(SELECTED, "fills") == []


def test_run_page_sorts_and_filters_its_trades_and_a_trade_shows_its_chain(opened):
    page = opened()
    rows, heads = page.locator("#trades tbody tr"), page.locator("#trades th")
    names = heads.all_inner_texts()
    of = {name: k for k, name in enumerate(names)}

    def column(name: str) -> list[str]:
        return [row.split("\t")[of[name]] for row in rows.all_inner_texts()]

    page.get_by_role("button", name="R", exact=True).click()
    assert heads.nth(of["R"]).get_attribute("aria-sort") == "ascending"
    rising = [float(entry.removesuffix(" R")) for entry in column("R")]
    assert rising == sorted(rising)
    page.get_by_role("button", name="R", exact=True).click()
    falling = column("R")
    assert [float(entry.removesuffix(" R")) for entry in falling] == sorted(rising, reverse=True)
    every = rows.count()
    page.locator("#filter").fill("ibm short")
    assert 0 < rows.count() < every
    assert set(column("symbol")) == {"IBM"}
    assert set(column("direction")) == {"short"}
    page.locator("#filter").fill("stop")
    assert "time_stop" not in column("reason")
    assert "stop" in column("reason")
    page.locator("#filter").fill("no such trade")
    expect(page.locator("#found")).to_have_text("none")
    page.locator("#filter").fill("")
    rows.nth(1).evaluate("(row) => row.scrollIntoView()")
    rows.nth(1).click()
    expect(page.locator("#why li").first).to_be_in_viewport()
    expect(page.locator("#candles")).to_be_in_viewport()
    page.get_by_role("button", name="R", exact=True).click()
    current = page.locator("#trades tr[aria-current=true]")
    assert current.count() == 1
    assert current.inner_text().split("\t")[of["R"]] == falling[1]


def test_picture_of_a_page_is_a_png_of_modest_size_like_the_one_of_the_readme(file, tmp_path):
    # A process of its own: the tab of this file's tests is open in this one.
    made = tmp_path / "images" / "run-page.png"
    subprocess.run([sys.executable, "-m", "tools.draw_page", file, made], cwd=ROOT, check=True)
    for drawn in (made, DOCS / "images" / "run-page.png"):
        data = drawn.read_bytes()
        assert data.startswith(b"\x89PNG")
        assert struct.unpack(">II", data[16:24]) == (WIDTH, HEIGHT)
        assert 30_000 < len(data) < 250_000
