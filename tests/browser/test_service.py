"""The page of a service in Debian's chromium, driven by Playwright: ``make test-browser``."""

import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from handmade import table, two_stages
from sparing.frontier import Frontier
from sparing.runtime import Bundle, MockSource, Policy
from sparing.runtime._restored import StoredFrontier
from sparing.runtime.service import create_app

pytestmark = pytest.mark.browser

KEY = "the-key-of-the-tests"
N_ROWS = 200
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NARROW, WIDE = {"width": 390, "height": 800}, {"width": 1100, "height": 900}


@pytest.fixture(scope="module")
def url():
    """A service with a frontier, some answers behind it and a source that fails now and then."""
    X, y = table(N_ROWS)
    sources = [
        MockSource(X, [0], name="cheap"),
        MockSource(X, [1, 2], name="dear", faults=[None, None, "refused"] * 100),
    ]
    policy = Policy(retries=0, breaker_failures=9)
    with running(create_app(bundle(X, y), sources, keys=[KEY], policy=policy)) as address:
        for row in range(120):
            httpx.post(
                f"{address}/v1/predict",
                json={"entity": row},
                headers={"Authorization": f"Bearer {KEY}"},
            )
        yield address


@contextmanager
def running(app):
    """The address of an application that is served meanwhile."""
    uvicorn = pytest.importorskip("uvicorn")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="critical"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


def bundle(X, y):
    """A handmade system with a frontier of its thresholds."""
    systems = [two_stages(threshold) for threshold in (-1.5, -1.0, -0.5, -0.2, -0.1)]
    systems = [systems[0].with_thresholds(system.thresholds) for system in systems]
    found = Frontier.evaluate(systems, X, y)
    frontier = StoredFrontier(found.points, found.full, "accuracy", "stage", N_ROWS)
    fitted = systems[2]
    return Bundle(fitted.stages, fitted.costs, fitted.classes, frontier=frontier, digest="0" * 64)


def in_a_browser(visit, *arguments):
    """Run a visit in a thread of its own: one thread holds one driver, and another module may have this one's."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no chromium here: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'sparing[browser]'")

    def run():
        with playwright.sync_playwright() as driver:
            # Without a sandbox of its own, which it cannot make as root in a container; it opens our own page only.
            browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
            try:
                visit(browser, *arguments)
            finally:
                browser.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result()


@contextmanager
def opened(browser, url, **options):
    """The page; afterwards nothing may have gone wrong, and nothing may have been asked of another server."""
    context = browser.new_context(**options)
    page = context.new_page()
    wrong, asked = [], []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    yield page
    context.close()
    assert wrong == []
    assert all(address.startswith(url) or address.startswith("data:") for address in asked)


def open_with_keyboard(page):
    page.focus("#key")
    page.keyboard.type(KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector("#live:not([hidden])")


def state(url):
    return httpx.get(f"{url}/v1/exit", headers={"Authorization": f"Bearer {KEY}"}).json()


def until(page, condition):
    """Wait for something; the page's own policy lets nobody evaluate code in it."""
    for _ in range(200):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("It did not happen.")


def move_by_keyboard(browser, url):
    with opened(browser, url, viewport=WIDE) as page:
        open_with_keyboard(page)
        before = state(url)
        at_the_end = before["position"] == len(before["places"]) - 1
        page.focus("#position")
        page.keyboard.press("ArrowLeft" if at_the_end else "ArrowRight")
        chosen = int(page.input_value("#position"))
        place = before["places"][chosen]
        assert f"System {chosen + 1} of" in page.inner_text("#preview")
        assert page.get_attribute("#position", "aria-valuetext") == page.inner_text("#preview")
        # Looking is not moving: until the button is pressed the old system serves.
        assert state(url)["position"] == before["position"]
        page.focus("#apply")
        page.keyboard.press("Enter")
        until(page, lambda: state(url)["position"] == chosen)
        until(page, lambda: "serves now" in page.inner_text("#preview"))
        assert f"{place['cost']:.4g}" in page.inner_text("#preview")
        page.focus("#fitted")
        page.keyboard.press("Enter")
        until(page, lambda: state(url)["as_fitted"])
        page.fill("#gate0", "-inf")
        page.click("#apply-gates")
        until(page, lambda: state(url)["thresholds"] == ["-inf"])
        page.click("#fitted")
        until(page, lambda: state(url)["as_fitted"])


def test_the_lever_moves_by_keyboard(url):
    in_a_browser(move_by_keyboard, url)


def look(browser, url, scheme, viewport):
    with opened(browser, url, viewport=viewport, color_scheme=scheme) as page:
        open_with_keyboard(page)
        spend = httpx.get(f"{url}/v1/spend", headers={"Authorization": f"Bearer {KEY}"}).json()
        assert str(spend["answers"]) in page.inner_text("#tiles")
        assert page.locator("#degraded-rows tr").count() == len(spend["latest_degraded"]) > 0
        assert page.locator("#stages tr").count() == 2
        assert page.locator("#time-marks .bar").count() >= 1
        assert page.locator("#curve-marks .dot").count() >= 2
        # Nothing sticks out of the screen, and text is told apart from what is behind it.
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, paper[4:-1].split(","))) > 380) == (scheme == "light")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["phone", "desk"])
def test_the_page_shows_what_the_service_did(url, scheme, viewport):
    in_a_browser(look, url, scheme, viewport)


def no_key(browser, url):
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("#live")
    assert page.is_hidden("#door")
    assert page.inner_text("#status").startswith("Live")
    context.close()


def test_without_keys_the_page_opens_by_itself():
    X, y = table(N_ROWS)
    with running(create_app(bundle(X, y), no_keys=True)) as address:
        in_a_browser(no_key, address)


def wrong_key(browser, url):
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
    page.fill("#key", "not-a-key-at-all")
    page.click("button[type=submit]")
    page.wait_for_selector("#status.bad")
    assert "Send a key" in page.inner_text("#status")
    assert page.is_hidden("#live")
    context.close()


def test_a_wrong_key_shows_nothing(url):
    in_a_browser(wrong_key, url)
