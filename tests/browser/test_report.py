"""The report in Debian's chromium, driven by Playwright: ``make test-browser``."""

import json
import re
import shutil
from itertools import pairwise

import numpy as np
import pytest

from handmade import table, two_stages
from report.models import HOSTILE, frontier_of, hostile_rows
from sparing import Guarantee, certify
from sparing.report import write_report

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Colours as the page computes them: "rgb(1, 2, 3)"; those of parts that let others through are never asked for.
COLOUR = re.compile(r"rgb\((\d+), (\d+), (\d+)\)")


@pytest.fixture(scope="session")
def chromium():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no chromium here: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'sparing[browser]'")
    with playwright.sync_playwright() as driver:
        # Without a sandbox of its own, which it cannot make as root in a container; it opens our own files only.
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


class Model:
    """A system, its frontier and its certificate."""

    frontier = frontier_of(two_stages())

    def __init__(self):
        self.system, self.certificate, _ = certify(
            self.frontier, *table(400, seed=9), Guarantee(tolerance=0.1)
        )


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    X, y = table(600, seed=1)
    write_report(
        Model(), X, y, path, segments={"region": np.where(X[:, 1] > 0, "n", "s")}, examples=2
    )
    return path


@pytest.fixture
def visit(chromium):
    """Open a file and give its page; afterwards nothing may have gone wrong or out."""
    opened, wrong = [], []

    def open_page(path, **options):
        context = chromium.new_context(**options)
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("request", lambda request: asked.append(request.url))
        asked = []
        page.goto(path.as_uri())
        assert asked == [path.as_uri()]
        page.asked = asked
        return page

    yield open_page
    for context in opened:
        context.close()
    assert wrong == []


def shown(page):
    """What the page says about the system the slider stands at."""
    fields = {
        name: page.inner_text(f"#at-{name}") for name in ("cost", "score", "saving", "difference")
    }
    return fields | {"shares": page.locator("#at-shares .number").all_inner_texts()}


def data_of(page):
    return json.loads(page.text_content("#systems"))


def test_the_slider_moves_along_the_systems_by_keyboard(visit, report):
    page = visit(report)
    data = data_of(page)
    slider = page.locator("#budget")
    slider.focus()
    assert page.locator("#at-reported").is_visible()
    page.keyboard.press("Home")
    seen = []
    for system in data["systems"]:
        now = shown(page)
        assert now == {name: system["text"][name] for name in now}
        assert slider.get_attribute("aria-valuetext") == system["text"]["spoken"]
        # The text is the number.
        assert float(now["cost"]) == pytest.approx(system["cost"], abs=0.006)
        assert float(now["saving"].rstrip("%").replace("−", "-")) == pytest.approx(
            100 * system["saving"], abs=0.06
        )
        widths = page.eval_on_selector_all(
            "#at-bar rect", "all => all.map(r => +r.getAttribute('width'))"
        )
        assert widths == pytest.approx([100 * share for share in system["shares"]])
        ring, dot = (
            page.eval_on_selector(
                f"svg.wide {which}", "e => [e.getAttribute('cx'), e.getAttribute('cy')]"
            )
            for which in (".here", f".system:nth-of-type({len(seen) + 1})")
        )
        assert ring == dot
        seen.append(now)
        page.keyboard.press("ArrowRight")
    assert slider.input_value() == str(len(data["systems"]) - 1)
    assert all(a != b for a, b in pairwise(seen))
    assert not page.locator("#at-reported").is_visible()
    page.click("#reported")
    assert shown(page)["cost"] == data["systems"][data["chosen"]]["text"]["cost"]
    assert page.locator("#at-reported").is_visible()


def test_a_click_on_a_dot_moves_the_slider(visit, report):
    page = visit(report)
    page.locator("svg.wide .system").first.click(force=True)
    assert page.locator("#budget").input_value() == "0"
    assert shown(page)["cost"] == data_of(page)["systems"][0]["text"]["cost"]


def test_everything_can_be_reached_by_keyboard_and_focus_is_seen(visit, report):
    page = visit(report)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "(() => { const e = document.activeElement; "
            "return [e.id || e.className || e.tagName, getComputedStyle(e).outlineStyle] })()"
        )
        if name == "BODY":
            break
        assert outline != "none", name
        reached.add(name)
    assert {"skip", "theme", "budget", "SUMMARY"} <= reached


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_marks_stand_out_in_both_themes(visit, report, scheme):
    page = visit(report, color_scheme=scheme)
    for theme in (scheme, "light" if scheme == "dark" else "dark"):
        pressed = page.get_attribute("#theme", "aria-pressed")
        assert pressed == str(theme == "dark").lower()
        paper = colour(page, "body", "backgroundColor")
        assert (sum(paper) > 380) == (theme == "light")
        for text in ("body", ".quiet", "a", "caption", ".card dt", "summary"):
            for behind in ("body", ".card"):
                assert (
                    contrast(colour(page, text, "color"), colour(page, behind, "backgroundColor"))
                    >= 4.5
                )
        assert (
            contrast(colour(page, ".note", "color"), colour(page, ".note", "backgroundColor"))
            >= 4.5
        )
        for mark in ("svg .system", "svg .full"):
            assert contrast(colour(page, mark, "fill"), paper) >= 3
        for stage in range(data_of(page)["colours"]):
            page.evaluate(f"document.querySelector('.swatch').className = 'swatch stage-{stage}'")
            assert contrast(colour(page, ".swatch", "backgroundColor"), paper) >= 3
        page.click("#theme")


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_nothing_sticks_out_of_the_window(visit, report, width):
    page = visit(report, viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shown_picture = page.locator("svg.frontier:visible")
    assert shown_picture.count() == 1
    size = page.eval_on_selector_all(
        "svg text", "all => Math.min(...all.filter(t => t.getClientRects().length)"
        ".map(t => 13 * t.ownerSVGElement.getBoundingClientRect().width / t.ownerSVGElement.viewBox.baseVal.width))"
    )  # fmt: skip
    assert size >= 9  # CSS pixels


def test_on_paper_everything_is_open_and_light(visit, report):
    page = visit(report, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert sum(colour(page, "body", "backgroundColor")) == 3 * 255
    assert not page.locator("#controls").is_visible()
    assert page.locator("svg.wide").is_visible()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
    assert page.pdf().startswith(b"%PDF")


def test_without_javascript_the_numbers_are_there(visit, report):
    page = visit(report, java_script_enabled=False)
    data = data_of(page)
    assert page.inner_text("#at-cost") == data["systems"][data["chosen"]]["text"]["cost"]
    assert not page.locator("#controls").is_visible()
    assert not page.locator("#theme").is_visible()


def test_hostile_names_run_nothing(visit, tmp_path):
    rows, y, system = hostile_rows()
    path = tmp_path / "hostile.html"
    write_report(system.with_thresholds(0.0), rows, y, path, title=HOSTILE[0], examples=2)
    page = visit(path, viewport={"width": 320, "height": 800})
    assert page.evaluate("window.hacked") is None
    assert page.title() == " ".join(HOSTILE[0].split())
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_policy_stops_what_is_slipped_in(chromium, report, tmp_path):
    path = tmp_path / "changed.html"
    text = report.read_text("utf-8")
    slipped = '<script>window.hacked = 1</script><img src="http://127.0.0.1:9/x"></main>'
    path.write_text(text.replace("</main>", slipped), "utf-8")
    page = chromium.new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(path.as_uri())
    assert page.evaluate("window.hacked") is None
    assert sum("Content Security Policy" in text for text in refused) == 2
    assert page.locator("#controls").is_visible()  # its own script still runs
    page.close()


# -- colours -------------------------------------------------------------------------------------------


def colour(page, selector, what):
    found = page.eval_on_selector(selector, f"e => getComputedStyle(e).{what}")
    return tuple(int(part) for part in COLOUR.fullmatch(found).groups())


def contrast(one, other):
    """Contrast ratio of two colours, as the Web Content Accessibility Guidelines define it."""

    def luminance(rgb):
        parts = np.array(rgb) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)
