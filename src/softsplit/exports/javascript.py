"""A tree as JavaScript, for browsers and Node, without other packages."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from softsplit.exports.expressions import Column, Expression
from softsplit.exports.printing import CodePrinter, model_in
from softsplit.exports.program import program_of
from softsplit.support.arrays import LARGEST_WHOLE
from softsplit.support.output_files import PathName


class JavaScriptPrinter(CodePrinter):
    """Expressions of JavaScript; tables become constants."""

    signs: ClassVar[Mapping[str, str]] = {"greater": ">", "at least": ">=", "equal": "==="}
    words: ClassVar[Mapping[str, str]] = {"all": "&&", "any": "||"}

    levels, level = "new Map([{}])", "[{}, {}]"
    template, reason = "javascript.jinja", "[{}, {}, {}]"

    def quoted(self, text: str) -> str:
        """A string that may also stand in an HTML page."""
        return json.dumps(text).replace("<", "\\u003c")

    def label(self, label: Any) -> str:
        if isinstance(label, str):
            return self.quoted(label)
        if isinstance(label, int) and not isinstance(label, bool) and abs(label) > LARGEST_WHOLE:
            return f"{label}n"  # BigInt: a number of JavaScript is a double
        if isinstance(label, float) and not math.isfinite(label):
            return "NaN" if math.isnan(label) else f"{'-' if label < 0 else ''}Infinity"
        return json.dumps(label)

    def form(self, column: Column) -> str:
        return ", ".join(["", *_date_pattern(column.form)]) if column.form else ""

    def missing(self, cell: Expression) -> str:
        return f"Number.isNaN({self(cell)})"

    def call(self, function: str, args: list[str]) -> str:
        return super().call(f"Math.{function}", args)


def _date_pattern(form: str) -> tuple[str, str]:
    """A pattern for dates in a ``strptime`` format, and where year, month and day stand in it."""
    parts = {
        "%d": r"(\d{1,2})", "%m": r"(\d{1,2})", "%Y": r"(\d{4})",
        "%H": r"(\d{1,2})", "%M": r"(\d{1,2})", "%S": r"(\d{1,2})",
        ".": r"\.", "/": r"\/", " ": r"\s+",
    }  # fmt: skip
    places = sorted("Ymd", key=form.index)
    for part, pattern in parts.items():
        form = form.replace(part, pattern) if part.startswith("%") else form
    # Separators are told apart from the patterns that were put in before.
    for mark in ("/", "."):
        form = form.replace(f"){mark}(", f"){parts[mark]}(")
    form = form.replace(") (", r")\s+(")
    order = [1 + places.index(part) for part in "Ymd"]
    return f"/^{form}$/", json.dumps(order)


def export_javascript(tree: Any, path: PathName | None = None, *, reasons: bool = False) -> str:
    """The tree as the text of a script, written to ``path`` if one is given.

    It defines ``softsplit`` with ``classes``, ``predictProba(row)`` and ``predict(row)``, in a page
    as a global name and in Node by ``require``. A row is an object by names of columns, or an array
    of all columns of the table. Dates are texts or ``Date``.

    Parameters
    ----------
    tree : fitted SoftTreeClassifier, or a search that holds one as ``best_estimator_``
    path : path, optional
    reasons : bool, default=False
        Add ``reasons(row)``: what each variable adds to the log-odds of each question, as arrays
        [question, variable, log-odds], and ``base``, the log-odds of a mean row by question.

    Returns
    -------
    str
    """
    return JavaScriptPrinter().write(program_of(model_in(tree), reasons=reasons), path)
