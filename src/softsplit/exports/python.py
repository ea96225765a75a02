"""A tree as a Python module that needs no other package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from softsplit.exports.expressions import Column, Expression
from softsplit.exports.printing import CodePrinter, model_in
from softsplit.exports.program import program_of
from softsplit.support.output_files import PathName


class PythonPrinter(CodePrinter):
    """Expressions of Python; tables become constants of the module."""

    template, reason = "python.jinja", "({}, {}, {})"

    def table(self, values: Iterable[float]) -> str:
        return self.constant(repr(tuple(values)))

    def quoted(self, text: str) -> str:
        return ascii(text)

    def label(self, label: Any) -> str:
        return ascii(label)

    def form(self, column: Column) -> str:
        return f", {column.form!r}" if column.kind == "day" else ""

    def choice(self, condition: Expression, yes: Expression, no: Expression) -> str:
        return f"{self.inner(yes)} if {self(condition)} else {self.otherwise(no)}"

    def missing(self, cell: Expression) -> str:
        return f"{self(cell)} != {self(cell)}"

    def call(self, function: str, args: list[str]) -> str:
        return super().call(f"math.{function}" if function in ("exp", "floor") else function, args)


def export_python(tree: Any, path: PathName | None = None, *, reasons: bool = False) -> str:
    """The tree as the text of a Python module, written to ``path`` if one is given.

    The module uses the standard library alone. ``predict_proba(row)`` returns the probabilities in
    the order of ``CLASSES`` and ``predict(row)`` the class. A row is a mapping by names of columns,
    or a sequence of all columns of the table.

    Parameters
    ----------
    tree : fitted SoftTreeClassifier, or a search that holds one as ``best_estimator_``
    path : path, optional
    reasons : bool, default=False
        Add ``reasons(row)``: what each variable adds to the log-odds of each question, as triples
        (question, variable, log-odds). With those of ``BASE`` they add up to the log-odds of yes.

    Returns
    -------
    str
    """
    return PythonPrinter().write(program_of(model_in(tree), reasons=reasons), path)
