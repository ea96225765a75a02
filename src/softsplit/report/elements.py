"""Elements of HTML, and names and figures as the page writes them.

What comes from data is set as text or attribute, never as markup.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from softsplit.report.metrics import Interval
from softsplit.support.messages import visible


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


def rendered(root: ET.Element) -> str:
    """The element as HTML; text of script and style elements goes out as it is."""
    return ET.tostring(root, encoding="unicode", method="html")


def json_for_script(values: Any) -> str:
    """JSON that cannot end its script element, whatever it holds.

    "<", ">" and "&" are written as escapes, so that there is neither "</script>" nor "<!--"; so
    is all that is not ASCII, such as characters that turn the direction of a text.
    """
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


# --- Names and figures as the page writes them ----------------------------------------------------


CHARACTER, WIDE_CHARACTER = 7.5, 14.0
LONGEST_NAME = 28


def text_width(text: str) -> float:
    """Width of a line in the drawing, estimated without a browser."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return WIDE_CHARACTER * wide + CHARACTER * (len(text) - wide)


def shortened(name: Any, length: int = LONGEST_NAME) -> str:
    """A name on one line, its middle left out if it is long."""
    text = " ".join(visible(name).split())
    if len(text) <= length:
        return text
    ending = (length - 1) // 3
    return f"{text[: length - 1 - ending]}\N{HORIZONTAL ELLIPSIS}{text[-ending:]}"


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def with_interval(found: Interval | None) -> str:
    """A share in percent with the ends of its interval."""
    if found is None:
        return "not judged"
    return f"{percent(found.value)} ({100 * found.low:.1f} to {100 * found.high:.1f})"
