"""A tree as code without other packages: a module of Python, a script of JavaScript, a file of C99.

A printer writes the expressions of a language, and a file of ``templates`` holds all else.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from softsplit.exports.expressions import Column, Expression
from softsplit.exports.printing import BLANKS, CodePrinter, identifiers, model_in
from softsplit.exports.program import program_of
from softsplit.support.arrays import LARGEST_WHOLE
from softsplit.support.messages import shown
from softsplit.support.output_files import PathName

# --- Python ---------------------------------------------------------------------------------------


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


# --- JavaScript -----------------------------------------------------------------------------------


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
    order = [1 + places.index(part) for part in "Ymd"]
    form = re.sub(r"%\w|[./ ]", lambda part: parts[part[0]], form)
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


# --- C --------------------------------------------------------------------------------------------

# Bytes that a string of C holds as they are.
PLAIN = re.compile(rb"[A-Za-z0-9 _.,:;+=()-]")

# Names of fields begin with this, so that none is a word of C.
FIELD = "col_"


class CPrinter(CodePrinter):
    """Expressions of C; tables become static arrays."""

    words: ClassVar[Mapping[str, str]] = {"all": "&&", "any": "||"}

    listed = "{{{}}}"
    picked = "{table}[(int){at} + 2]"
    ranked = "ss_rank({at}, {knots}, {ranks}, {count})"
    template, reason = "c.jinja", "{2}"

    def __init__(self, fields: dict[int, str]) -> None:
        super().__init__()
        self.fields = fields

    def constant(self, text: str, kind: str = "const double ") -> str:
        name = f"ss_t{len(self.constants)}"
        self.constants.append(f"static {kind}{name}[] = {text};")
        return name

    def quoted(self, text: str) -> str:
        """A string of C in UTF-8; what is not plain is written as octal numbers."""
        if "\0" in text:
            raise ValueError(
                f"{shown(text)} holds a zero character, which ends a string of C; use another "
                "export."
            )
        content = text.encode("utf-8", "surrogatepass")
        parts = [chr(b) if PLAIN.match(bytes([b])) else f"\\{b:03o}" for b in content]
        return f'"{"".join(parts)}"'

    def label(self, label: Any) -> str:
        return self.quoted(str(label))

    def read(self, column: Column) -> str:
        field = f"row->{self.fields[column.place]}"
        if column.kind == "text":
            texts = self.listed.format(", ".join(map(self.quoted, column.levels)))
            levels = self.constant(texts, "const char *const ")
            return f"ss_level({field}, {levels}, {len(column.levels)})"
        return f"ss_truth({field})" if column.kind == "truth" else field

    def missing(self, cell: Expression) -> str:
        return f"isnan({self(cell)})"

    def call(self, function: str, args: list[str]) -> str:
        names = {"exp": "exp", "abs": "fabs", "max": "fmax", "min": "fmin", "floor": "floor"}
        text = args[-1]
        if len(args) == 1:
            return f"{names[function]}({text})"
        for arg in reversed(args[:-1]):
            text = f"{names[function]}({arg}, {text})"
        return text


def export_c(tree: Any, path: PathName | None = None, *, reasons: bool = False) -> str:
    """The tree as the text of a C file, written to ``path`` if one is given.

    ``softsplit_row`` is a struct with a field for each column in use: ``double`` for numbers, truth
    values (1 and 0) and days since 1970-01-01, NAN for a missing value; ``const char *`` in UTF-8
    for texts, NULL or blank for a missing one. ``softsplit_predict_proba(&row, proba)`` fills in
    the probabilities and returns the position of the class in ``softsplit_classes``, a list of
    texts.

    Parameters
    ----------
    tree : fitted SoftTreeClassifier, or a search that holds one as ``best_estimator_``
    path : path, optional
    reasons : bool, default=False
        Add ``softsplit_reasons(&row, values)``, which fills in what each variable adds to the
        log-odds of each question, in the order of ``softsplit_reason_names``.

    Returns
    -------
    str
    """
    program = program_of(model_in(tree), reasons=reasons)
    names = identifiers([column.name for column in program.columns], FIELD)
    fields = {column.place: name for column, name in zip(program.columns, names, strict=True)}
    printer = CPrinter(fields)
    return printer.write(
        program,
        path,
        fields=fields,
        blanks=list(map(printer.quoted, BLANKS)),
        answering=program.needed_for(program.answers),
        reasoning=program.needed_for(reason.value for reason in program.reasons),
        reason_names=[
            printer.quoted(f"question {r.question}: {r.variable}") for r in program.reasons
        ],
    )
