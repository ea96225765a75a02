"""Pages from the templates of ``templates/``, and figures and names as they are written there.

Modules of this package compute numbers and texts; a template says where on the page they stand.
What comes from data is escaped by jinja2, which is imported with the first page that is made.
"""

from __future__ import annotations

import base64
import hashlib
import json
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from softsplit.reading.palette import class_colour, ink_on
from softsplit.report.metrics import Interval
from softsplit.support.messages import counted, shortened, visible
from softsplit.support.numbers import number

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


@dataclass(frozen=True)
class PageTable:
    """A table of texts; the first cell of a row is its head.

    Attributes
    ----------
    caption : str
    head : sequence of str
    rows : sequence of sequences of str
    numeric : collection of int
        Columns that are set to the right.
    diagonal : bool
        Whether cell k of row k, not counting heads, is one to be seen.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Collection[int] = ()
    diagonal: bool = False


def render(template: str, **values: Any) -> Markup:
    """A template filled with values; the result may be a value of another template."""
    from markupsafe import Markup

    return Markup(_environment().get_template(template).render(**values))


def page(template: str, styles: Iterable[str], scripts: Iterable[str] = (), **values: Any) -> str:
    """A page that is one file: it fetches nothing and runs these scripts alone."""
    from markupsafe import Markup

    style = Markup("".join(asset(f"{name}.css") for name in styles))
    script = Markup("".join(asset(f"{name}.js") for name in scripts))
    policy = Markup(
        f"default-src 'none'; style-src '{_digest(style)}'; "
        f"script-src {repr(_digest(script)) if script else repr('none')}; "
        "base-uri 'none'; form-action 'none'"
    )
    return render(template, style=style, script=script, policy=policy, **values) + "\n"


def asset(name: str) -> str:
    """A style or script of the package."""
    return files("softsplit.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("softsplit.report"), undefined=StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True, finalize=_written,
    )  # fmt: skip
    environment.filters |= {
        "capital": capital, "class_colour": class_colour, "counted": counted, "ink_on": ink_on,
        "json": json_for_script, "number": number, "percent": percent, "shortened": shortened,
        "visible": visible, "with_interval": with_interval,
    }  # fmt: skip
    return environment


def _written(value: Any) -> Any:
    """Places in drawings with one decimal; figures of a page are texts already."""
    return f"{value:.1f}" if isinstance(value, float) else value


def _digest(content: str) -> str:
    """How the policy names an inline style or script that may be used."""
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def json_for_script(values: Any) -> Markup:
    """JSON that cannot end its script element, whatever it holds.

    "<", ">" and "&" are written as escapes, so that there is neither "</script>" nor "<!--"; so
    is all that is not ASCII, such as characters that turn the direction of a text.
    """
    from markupsafe import Markup

    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


# --- Names and figures as the page writes them ----------------------------------------------------


CHARACTER, WIDE_CHARACTER = 7.9, 14.0


def text_width(text: str) -> float:
    """Width of a line in the drawing, estimated without a browser."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return WIDE_CHARACTER * wide + CHARACTER * (len(text) - wide)


def capital(sentence: str) -> str:
    """A sentence that begins with a capital, whatever else is in it."""
    return sentence[:1].upper() + sentence[1:]


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def with_interval(share: Interval | None) -> str:
    """A share in percent with the ends of its interval."""
    if share is None:
        return "not judged"
    return f"{percent(share.value)} ({100 * share.low:.1f} to {100 * share.high:.1f})"
