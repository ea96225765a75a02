"""The report in a real browser, opened from disk."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from softsplit.cli import app
from softsplit.data.made_up import loans
from softsplit.report import comparison
from softsplit.report.comparison import ComparisonOptions
from tables import HOSTILE, HOSTILE_TARGET, hostile

POINTS = 4


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports of a plain and of a hostile table."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        options = ComparisonOptions(points=POINTS, folds=3)
        patch.setattr(comparison, "OPTIONS", options)
        for name, table, target in [
            ("plain", loans(240), "repaid"),
            ("hostile", hostile(90), HOSTILE_TARGET),
        ]:
            data, page = folder / f"{name}.csv", folder / f"{name}.html"
            table.to_csv(data, index=False)
            arguments = ["fit", str(data), "-t", target, "--report", str(page), "--depth", "2"]
            arguments += ["--strength", "0.5", "--quiet", "--jobs", "1", "--time-limit", "0"]
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, result.output
            made[name] = page
    return made


@pytest.fixture
def opened(browser, pages):
    """Opens a page; at the end nothing may have been asked of the network or said in error."""
    contexts, said, asked = [], [], []

    def open_page(name="plain", **options):
        context = browser.new_context(**{"viewport": {"width": 1100, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(pages[name].as_uri())
        page.wait_for_selector("html.ready")
        for part in page.locator("details.part").all():
            part.evaluate("(e) => { e.open = true; }")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    assert asked and all(url.startswith("file://") for url in asked)
    assert len(asked) == len(contexts)


def shown(page) -> dict[str, str]:
    """What the one visible panel says."""
    panels = page.locator(".panel:visible")
    assert panels.count() == 1
    facts = panels.locator("[data-fact]")
    said = {f.get_attribute("data-fact"): f.inner_text() for f in facts.all()}
    drawn = panels.locator(".sheet svg.tree")  # that of the chosen tree leads the page
    said["tree"] = (drawn if drawn.count() else page.locator("#tree svg.tree")).inner_html()
    said["python"] = panels.locator(".anew pre code").first.text_content()
    said["point"] = panels.get_attribute("data-point")
    return said


def test_the_slider_moves_by_keyboard(opened):
    page = opened()
    assert page.title() == "repaid: no or yes?"
    slider = page.locator("#slider")
    assert shown(page)["point"] == slider.input_value()
    assert "the chosen tree" in page.locator("#headline").inner_text()
    slider.focus()
    slider.press("Home")
    weak = shown(page)
    slider.press("End")
    strong = shown(page)
    last = slider.get_attribute("max")
    assert (weak["point"], strong["point"]) == ("0", last)
    for what in ("tree", "strength", "features", "python"):
        assert weak[what] != strong[what], what
    said = page.locator("#headline").inner_text()
    assert said.startswith(f"Tree {int(last) + 1} of {int(last) + 1}")
    assert slider.get_attribute("aria-valuetext") == said
    assert page.locator("#headline").get_attribute("role") == "status"
    slider.press("ArrowLeft")
    assert shown(page)["point"] == str(int(last) - 1)
    if page.locator("#back").is_disabled():  # this is the chosen tree
        slider.press("End")
    page.locator("#back").click()
    assert "the chosen tree" in page.locator("#headline").inner_text()


def test_hostile_names_stay_text(opened):
    page = opened("hostile")
    assert page.title().startswith("<!--: ")
    assert page.locator("img, iframe, object, embed").count() == 0
    assert page.locator("script").count() == 2
    assert page.locator("#data table").inner_text().count("<script>") >= 1
    names = page.locator("#data tbody th").all_inner_texts()
    assert HOSTILE[0] in names and HOSTILE[3] in names
    assert any("x" * 20 in name for name in names)
    assert HOSTILE[1][:20] in page.locator(".classes").inner_text()


def test_the_policy_forbids_even_pictures(browser, pages):
    context = browser.new_context()
    page = context.new_page()
    page.goto(pages["plain"].as_uri())
    blocked = page.evaluate(
        """() => new Promise((resolve) => {
            document.addEventListener('securitypolicyviolation',
                (e) => resolve(e.violatedDirective));
            setTimeout(() => resolve('nothing'), 3000);
            const image = new Image();
            image.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw=';
        })"""
    )
    assert blocked == "img-src"
    context.close()


@pytest.mark.parametrize(
    ("name", "width"), [("plain", 320), ("plain", 768), ("hostile", 320), ("hostile", 1200)]
)
def test_nothing_overflows_at_any_width(opened, name, width):
    page = opened(name, viewport={"width": width, "height": 800})
    for part in page.locator("details").all():
        part.evaluate("(e) => { e.open = true; }")
    if name == "plain":
        page.locator("#slider").press("Home")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    beyond = page.evaluate(
        """(width) => [...document.querySelectorAll('body *')].filter((e) => e.offsetParent
            && !e.closest('.scroll') && !e.closest('.skip')
            && e.getBoundingClientRect().right > width + 1).map((e) => e.outerHTML.slice(0, 80))""",
        width,
    )
    assert beyond == []
    sheet, aside = page.locator(".panel:visible .sheet"), page.locator(".panel:visible .more-aside")
    if sheet.count():
        assert aside.is_visible() == sheet.evaluate("(e) => e.scrollWidth > e.clientWidth")
    small = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select')]
            .filter((e) => e.offsetParent)
            .filter((e) => e.getBoundingClientRect().height < 24).length"""
    )
    assert small == 0


def test_everything_has_a_name_and_one_heading_leads(opened):
    page = opened()
    assert page.locator("h1").count() == 1
    assert page.get_by_role("slider", name="Strength of the penalty").count() == 1
    assert page.get_by_role("slider", name="Predict ").count() == 1
    assert page.get_by_role("button", name="Copy").count() == 2
    drawing = page.get_by_role("group", name=re.compile("Drawing of tree"))
    assert drawing.count() == 1
    assert drawing.get_by_role("link", name=re.compile("Question 1: ")).count() == 1
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


def test_print_shows_everything_and_no_controls(opened):
    page = opened(color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("#slider").is_visible()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0


def test_without_scripts_the_chosen_tree_is_there(browser, pages):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["plain"].as_uri())
    assert page.locator("#tree .sheet svg.tree:visible").count() == 1
    context.close()


def test_the_threshold_moves_and_costs_choose_it(opened):
    page = opened()
    bar, said = page.locator("#threshold"), page.locator("#threshold-said")
    bar.focus()
    bar.press("Home")
    assert "(100.0 %), " in said.inner_text() and bar.get_attribute("aria-valuetext")
    bar.press("End")
    assert said.inner_text().startswith("From 100.0 % on: ")
    page.locator("#miss-cost").fill("1000")
    page.locator("#cheapest").click()
    many = int(re.search(r": (\d+) of", said.inner_text())[1])
    page.locator("#miss-cost").fill("0")
    page.locator("#cheapest").click()
    few = int(re.search(r": (\d+) of", said.inner_text())[1])
    assert many > few
    line = page.locator("#threshold-line").inner_text()
    assert re.fullmatch(r"tree\.predict_proba\(X\)\[:, [01]\] >= [\d.]+", line)
    assert page.get_by_label("A false alarm costs").count() == 1


def test_the_tree_and_a_case_come_first_and_a_telephone_shows_the_words(opened):
    page = opened()
    order = ["tree", "try", "told", "quality", "explorer", "data", "provenance", "words"]
    places = [page.locator(f"#{name}").bounding_box()["y"] for name in order]
    assert places == sorted(places)
    tree = page.locator("#tree svg.tree").bounding_box()
    assert tree["y"] < 150 and tree["y"] + tree["height"] < 900
    phone = opened(viewport={"width": 390, "height": 800})
    assert not phone.locator("#tree").is_visible()
    assert phone.locator("#told").bounding_box()["y"] < phone.locator("#try").bounding_box()["y"]
