"""The report as one HTML file: nothing is fetched, and the policy in its head forbids it."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree as ET

from softsplit.report.cards import add_card
from softsplit.report.case import add_case, case_values
from softsplit.report.editor import add_editor, editor_values
from softsplit.report.elements import add, element, json_for_script, rendered
from softsplit.report.measures import threshold_values
from softsplit.report.other_trees import add_alternatives, add_stability
from softsplit.report.panels import headline
from softsplit.report.report_data import ReportData
from softsplit.report.requirements import add_rates
from softsplit.report.sections import (
    add_data,
    add_explorer,
    add_header,
    add_provenance,
    add_quality,
    add_summary,
    add_words,
    section,
    title_of,
)


def render_report(data: ReportData) -> str:
    """The report as HTML."""
    style = asset("report.css") + asset("tree.css")
    script = "".join(asset(f"{name}.js") for name in ("report", "tree", "case", "edit"))
    html = element("html", {"lang": "en"})
    add_head(html, title_of(data), style, script)
    body = add(html, "body")
    add(body, "a", {"class": "skip", "href": "#explorer"}, "Skip to the tree")
    add_header(body, data)
    main = add(body, "main")
    add_summary(main, data)
    add_explorer(main, data)
    case = case_values(data)
    if case is not None:
        add_case(section(main, "try", "Try a case"), data, case)
    editor = None if case is None else editor_values(data)
    if editor is not None:
        add_editor(section(main, "change", "Change the tree"), data, editor)
    card = section(main, "card", "As a score card")
    if data.interrupted:  # it takes as long as all the rest of the page, and the user waits
        _missing(card, data, "The score card is missing", data.more("it"))
    else:
        add_card(card, data.card)
    add_quality(main, data)
    if data.tree.tree_.rates:
        add_rates(section(main, "requirements", "What must hold"), data)
    if data.alternatives is not None:
        add_alternatives(section(main, "alternatives", "Other trees as good"), data.alternatives)
    elif data.no_alternatives:
        more = "fit again" if data.interrupted else "fit with more time (--time-limit 0)"
        part = section(main, "alternatives", "Other trees as good")
        _missing(part, data, "Other trees as good are missing", more)
    if data.stability is not None:
        add_stability(section(main, "stability", "What recurs"), data.stability)
    elif data.no_resamples:
        part = section(main, "stability", "What recurs")
        _missing(part, data, "Trees of resamples are missing", data.more("them"))
    add_data(main, data)
    edits = [("Edit by hand", line) for line in data.tree.tree_.edits.lines]
    add_provenance(main, [*data.provenance, *edits])
    add_words(section(main, "words", "Words"), data.tree.tree_.labels)
    said = "Made by softsplit. This page is one file and needs no internet connection."
    add(add(body, "footer"), "p", {"class": "quiet"}, said)
    add(body, "script", {"type": "application/json", "id": "points"}, _points(data, case, editor))
    add(body, "script", {}, script)
    return "<!doctype html>\n" + rendered(html) + "\n"


def _missing(parent: ET.Element, data: ReportData, what: str, more: str) -> None:
    add(parent, "p", {"class": "missing"}, f"{what}: {data.cut_by} before; {more}.")


def add_head(html: ET.Element, title: str, style: str, script: str = "") -> None:
    """The head of a page that fetches nothing and runs this script alone."""
    head = add(html, "head")
    add(head, "meta", {"charset": "utf-8"})
    allowed = f"'{_digest(script)}'" if script else "'none'"
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )
    add(head, "meta", {"http-equiv": "Content-Security-Policy", "content": policy})
    add(head, "meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    add(head, "meta", {"name": "color-scheme", "content": "light dark"})
    add(head, "title", {}, title)
    add(head, "style", {}, style)


def _points(data: ReportData, case: dict[str, Any] | None, editor: dict[str, Any] | None) -> str:
    """What the slider says at each point, and the numbers behind threshold and forms."""
    said = [headline(data, point) for point in range(len(data.trees))]
    values = {
        "chosen": data.chosen,
        "said": said,
        "threshold": threshold_values(data),
        "case": case,
        "edit": editor,
    }
    return json_for_script(values)


def asset(name: str) -> str:
    """A style or script of the package."""
    return files("softsplit.report").joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    """How the policy names an inline style or script that may be used."""
    made = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(made).decode('ascii')}"
