import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser

import pytest

from handmade import table, two_stages
from report.models import HOSTILE, frontier_of, hostile_rows, learnt, three_stages
from sparing import Guarantee, certify
from sparing.frontier import stage_alone
from sparing.report import render, summarise, write_report

X, Y = table(300, seed=1)
VOID = {"meta", "input", "br", "link", "img", "hr"}


class Page(HTMLParser):
    """Elements with their attributes, and the text of the page without scripts and styles."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.open, self.raw = [], [], [], {}
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing, at {self.getpos()}"

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.raw.setdefault(self.open[-1], []).append(data)
        else:
            self.texts.append(data)

    def all(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def page_of(model=None, rows=X, y=Y, **settings):
    return Page(render(summarise(two_stages() if model is None else model, rows, y, **settings)))


@pytest.fixture(scope="module")
def hostile():
    rows, y, system = hostile_rows()
    region = [HOSTILE[i % 3] for i in range(len(y))]
    source = render(
        summarise(system, rows, y, segments={HOSTILE[1]: region}, examples=3, title=HOSTILE[0])
    )
    return source, Page(source)


def test_hostile_names_stay_text(hostile):
    _, page = hostile
    plain = summarise(three_stages(), X, Y, segments={"region": ["a", "b", "c"] * 100}, examples=3)
    harmless = Page(render(plain))
    assert {tag for tag, _ in page.elements} == {tag for tag, _ in harmless.elements}
    assert len(page.all("script")) == 2
    assert page.all("img") == []
    for name in [*HOSTILE, "</script>", "<b>sick</b>"]:
        assert " ".join(name.split()) in page.text
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)


def test_the_data_of_the_slider_survive_hostile_names(hostile):
    _, page = hostile
    data = json.loads(page.raw["script"][0])
    assert data["systems"][data["chosen"]]["names"] == HOSTILE


def test_the_policy_allows_this_script_and_this_style_and_nothing_else():
    page = page_of()
    policy = next(a for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    allowed = dict(part.split(" ", 1) for part in policy["content"].split("; "))
    assert allowed["default-src"] == allowed["base-uri"] == allowed["form-action"] == "'none'"
    script, style = page.raw["script"][-1], page.raw["style"][0]
    for kind, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert allowed[kind] == f"'sha256-{digest}'"
    assert len(page.raw["style"]) == 1


def test_nothing_comes_from_outside_and_nothing_needs_what_the_policy_forbids():
    clf, rows, y = learnt()
    source = render(summarise(clf, rows, y, examples=2))
    page = Page(source)
    for _, attributes in page.elements:
        assert not {"src", "srcset", "style", "action"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")
    without_namespace = source.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", without_namespace)


def test_it_is_whole_without_its_script():
    clf, rows, y = learnt()
    summary = summarise(clf, rows, y)
    text = Page(render(summary)).text
    assert f"{summary['headline']['score']['value']:.4f}" in text
    for system in summary["frontier"]["systems"]:
        assert f"{system['score']:.4f}" in text
    for item in summary["items"]:
        assert item["name"] in text


def test_people_who_do_not_see_it_can_use_it():
    clf, rows, y = learnt()
    page = page_of(clf, rows, y, examples=1)
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for attributes in page.all("a"):
        assert attributes["href"][1:] in ids
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert attributes.get(name, ids[0]) in ids
    for picture in page.all("svg"):
        assert picture.get("aria-hidden") == "true" or (
            picture["role"] == "img" and picture["aria-label"]
        )
    assert all(header.get("scope") in ("row", "col") for header in page.all("th"))
    assert [a["lang"] for a in page.all("html")] == ["en"]
    assert len(page.all("h1")) == len(page.all("main")) == 1
    (slider,) = page.all("input")
    assert slider["aria-valuetext"]
    for region in (a for _, a in page.elements if a.get("tabindex") == "0" and a.get("role")):
        assert region["aria-label"]


def test_rows_are_shown_with_a_warning_and_only_when_asked_for():
    clf, rows, y = learnt()
    without, with_rows = page_of(clf, rows, y), page_of(clf, rows, y, examples=2)
    assert "personal data" not in without.text
    assert "personal data" in with_rows.text
    example = summarise(clf, rows, y, examples=2)["examples"][0]
    value = next(iter(example["values"].values()))
    assert value in with_rows.text
    assert value not in without.text


def test_a_certificate_is_shown_and_told_apart_from_others():
    X_more, y_more = table(400, seed=9)
    system, certificate, _ = certify(
        frontier_of(two_stages()), X_more, y_more, Guarantee(tolerance=0.2), date="2026-05-01"
    )

    class Model:
        def __init__(self, system, certificate):
            self.system, self.certificate = system, certificate

    text = page_of(Model(system, certificate)).text
    assert "accuracy at most 0.2 below the full model's" in text
    assert "2026-05-01" in text
    assert "promises nothing about this one" not in text
    assert "promises nothing about this one" in page_of(Model(two_stages(), certificate)).text
    assert '"signed": "<by hand>"' in page_of(Model(system, {"signed": "<by hand>"})).text
    assert "Certificate" not in page_of().text


@pytest.mark.parametrize(
    "system",
    [
        two_stages(prices=(0, 0, 0)),
        two_stages(float("inf")),
        two_stages(float("-inf")),
        three_stages(accounting="path"),
    ],
)
def test_odd_systems_have_a_page(system):
    assert page_of(system).text


def test_a_system_alone_has_no_slider():
    page = page_of(stage_alone(two_stages(), 0))
    assert page.all("input") == []
    assert "no full model to compare with" in page.text


def test_a_page_can_be_made_from_a_stored_summary():
    summary = summarise(two_stages(), X, Y, title="Spring")
    source = render(json.loads(json.dumps(summary)))
    assert source == render(summary)
    assert source.startswith("<!doctype html>")


def test_the_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "report.html"
    summary = write_report(two_stages(), X, Y, path, title="half a \ud800 character", date="today")
    assert "half a ? character" in path.read_text("utf-8")
    assert summary["date"] == "today"
    before = path.read_bytes()
    with pytest.raises(ValueError, match="segments names columns"):
        write_report(two_stages(), X, Y, path, segments="no such column")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_without_jinja2_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"sparing\[report\]"):
        write_report(two_stages(), X, Y, tmp_path / "report.html")
    assert summarise(two_stages(), X, Y)["format"] == 1
