"""Elements of HTML; what comes from data is set as text or attribute, never as markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from markupsafe import Markup


def element(name: str, attributes: Mapping[str, str] | None = None, text: str = "") -> ET.Element:
    """A new element with text in it."""
    made = ET.Element(name, dict(attributes or {}))
    made.text = text or None
    return made


def add(
    parent: ET.Element, name: str, attributes: Mapping[str, str] | None = None, text: str = ""
) -> ET.Element:
    """A new element as the last child of another."""
    made = element(name, attributes, text)
    parent.append(made)
    return made


def add_table(
    parent: ET.Element,
    caption: str,
    head: Iterable[str],
    rows: Iterable[Iterable[str]],
    numeric: Iterable[int] = (),
) -> ET.Element:
    """A table inside a box that scrolls by itself if it is too wide for the page."""
    box = add(
        parent, "div", {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": caption}
    )
    table = add(box, "table")
    add(table, "caption", {}, caption)
    numbers = set(numeric)
    line = add(add(table, "thead"), "tr")
    for i, title in enumerate(head):
        add(line, "th", {"scope": "col", **({"class": "number"} if i in numbers else {})}, title)
    body = add(table, "tbody")
    for row in rows:
        line = add(body, "tr")
        for i, cell in enumerate(row):
            kind = {"class": "number"} if i in numbers else {}
            add(
                line,
                "th" if i == 0 else "td",
                {**({"scope": "row"} if i == 0 else {}), **kind},
                cell,
            )
    return table


def add_markup(parent: ET.Element, markup: str) -> None:
    """A part that a template has made, as the last child."""
    parent.append(ET.fromstring(markup))


def rendered(root: ET.Element) -> Markup:
    """The element as HTML; text of script and style elements goes out as it is."""
    from markupsafe import Markup

    return Markup(ET.tostring(root, encoding="unicode", method="html"))
