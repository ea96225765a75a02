"""Reports of single trees in a real browser, and the form in which cases are tried there."""

from __future__ import annotations

import numpy as np
import pytest

from softsplit.report import Assessment, ReportData, render_report
from softsplit.selection.assessment import NOT_JUDGED, Judged
from softsplit.selection.baselines import BASELINES


def unjudged_page(tree, rows):
    """The report of a tree alone."""
    shape = (len(rows.y), len(tree.classes_))
    none = Judged(np.full(shape[0], NOT_JUDGED), np.zeros(shape))
    labels = np.searchsorted(tree.classes_, rows.y)
    found = Assessment(labels, (none,), dict.fromkeys(BASELINES, none), 2, 0)
    return ReportData("data", rows.coded_as(tree.tree_.coding), (tree,), 0, found)


def shown_proba(page):
    found = page.locator("#case-proba [data-class]").all()
    pairs = [(e.get_attribute("data-class"), e.get_attribute("data-value")) for e in found]
    values = {int(k): float(p) for k, p in pairs}
    return np.array([values[k] for k in range(len(values))])


def filled(page, values, names):
    """Put values into the form by the labels of its fields."""
    for name, value in zip(names, values, strict=True):
        field = page.locator("#case .field").filter(has_text=name).locator("input, select")
        if field.count() == 0:
            continue
        if field.evaluate("(e) => e.tagName") == "SELECT":
            field.select_option(str(int(value)) if np.isreal(value) else str(value))
        else:
            field.fill(repr(float(value)))


@pytest.fixture
def opened(browser, tmp_path):
    said = []
    pages = []

    def open_page(data, **options):
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(render_report(data), encoding="utf-8")
        page = browser.new_context(**options).new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("html.ready")
        for part in page.locator("details.part").all():
            part.evaluate("(e) => { e.open = true; }")
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.context.close()
    assert said == []
