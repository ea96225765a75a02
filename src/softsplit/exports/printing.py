"""What the printers of all languages share: operators, parentheses, names, and output files."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from softsplit.exports.expressions import (
    Column,
    Expression,
    Interpolate,
    Name,
    Op,
    Read,
    ValueLookup,
)
from softsplit.exports.program import TreeProgram
from softsplit.fitted.model import TreeModel
from softsplit.persistence.saved import SavedTree
from softsplit.support.output_files import PathName, write_file

# What ``str.strip`` removes: a text of nothing else is missing.
BLANKS = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)

COMPOUND = ("sum", "product", "minus", "divide", "negative", "greater", "at least", "equal")


class Printer(ABC):
    """Expressions in a language with infix operators; what differs is overridden."""

    signs: ClassVar[Mapping[str, str]] = {"greater": ">", "at least": ">=", "equal": "=="}
    words: ClassVar[Mapping[str, str]] = {"all": "and", "any": "or"}

    def __call__(self, expression: Expression) -> str:
        """The expression as code."""
        if isinstance(expression, float | int):
            return self.number(float(expression))
        if isinstance(expression, Name):
            return self.name(expression.text)
        if isinstance(expression, Read):
            return self.read(expression.column)
        if isinstance(expression, ValueLookup):
            return self.lookup(expression)
        if isinstance(expression, Interpolate):
            return self.interpolate(expression)
        return self.operation(expression)

    def inner(self, expression: Expression) -> str:
        """The same as a part of a larger expression."""
        compound = isinstance(expression, Op) and expression.kind in self.compound
        return f"({self(expression)})" if compound else self(expression)

    def otherwise(self, expression: Expression) -> str:
        """The last part of a choice, in a language in which choices follow each other."""
        again = isinstance(expression, Op) and expression.kind == "if"
        return self(expression) if again else self.inner(expression)

    compound: tuple[str, ...] = (*COMPOUND, "all", "any", "if", "missing")

    def operation(self, op: Op) -> str:
        args = op.args
        match op.kind:
            case "sum":
                return self.summed(args)
            case "product":
                return " * ".join(map(self.inner, args))
            case "minus":
                return self.subtracted(*args)
            case "divide":
                return " / ".join(map(self.inner, args))
            case "negative":
                return f"-{self.inner(args[0])}"
            case "greater" | "at least" | "equal":
                left, right = map(self.inner, args)
                return f"{left} {self.signs[op.kind]} {right}"
            case "all" | "any":
                return f" {self.words[op.kind]} ".join(map(self.inner, args))
            case "if":
                return self.choice(*args)
            case "missing":
                return self.missing(args[0])
            case _:
                return self.call(op.kind, [self(part) for part in args])

    def summed(self, terms: Sequence[Expression]) -> str:
        text = self(terms[0]) if _is_product(terms[0]) else self.inner(terms[0])
        for term in terms[1:]:
            sign, term = ("-", _turned(term)) if _is_negative(term) else ("+", term)
            text += f" {sign} {self.inner(term) if not _is_product(term) else self(term)}"
        return text

    def subtracted(self, left: Expression, right: Expression) -> str:
        sign = "-"
        if _is_negative(right):
            sign, right = "+", _turned(right)
        first = self(left) if _is_sum(left) or _is_product(left) else self.inner(left)
        return f"{first} {sign} {self.inner(right)}"

    def number(self, value: float) -> str:
        """A number with all its digits."""
        return repr(value)

    def name(self, text: str) -> str:
        """The name of a definition."""
        return text

    def call(self, function: str, args: list[str]) -> str:
        """exp, abs, max or min."""
        return f"{function}({', '.join(args)})"

    @abstractmethod
    def read(self, column: Column) -> str:
        """The cell of a column."""

    @abstractmethod
    def lookup(self, lookup: ValueLookup) -> str:
        """A value of a table."""

    @abstractmethod
    def interpolate(self, curve: Interpolate) -> str:
        """A rank."""

    @abstractmethod
    def choice(self, condition: Expression, yes: Expression, no: Expression) -> str:
        """One of two values."""

    @abstractmethod
    def missing(self, cell: Expression) -> str:
        """Whether a number is missing."""


class CodePrinter(Printer):
    """A language of functions that keeps tables in constants; what differs are the attributes.

    ``curves`` says whether some of the constants are knots.
    """

    # A table of numbers.
    listed = "[{}]"
    # The number of a table at a position from -2 on.
    picked = "{table}[{at} + 2]"
    ranked = "rank({at}, {knots}, {ranks})"
    # Positions of levels by their texts, and one of them.
    levels, level = "{{{}}}", "{}: {}"
    # The file of the language, and how a reason is written of its question, variable and value.
    template, reason = "", ""

    def __init__(self) -> None:
        self.constants: list[str] = []
        self.curves = False

    def constant(self, text: str) -> str:
        """The name of a constant."""
        self.constants.append(text)
        return f"T{len(self.constants) - 1}"

    def table(self, values: Iterable[float]) -> str:
        """The name of a table of numbers."""
        return self.constant(self.listed.format(", ".join(map(repr, values))))

    def write(self, program: TreeProgram, path: PathName | None, **more: Any) -> str:
        """The program by the template of the language, also in a file if one is given."""
        text = (
            _environment()
            .get_template(self.template)
            .render(
                header=program.header,
                columns=program.columns,
                kinds={column.kind for column in program.columns},
                classes=list(map(self.label, program.classes)),
                definitions={name: self(e) for name, e in program.definitions.items()},
                predicted=self(program.predicted),
                probabilities=list(map(self, program.probabilities)),
                reasons=[
                    self.reason.format(question, self.quoted(variable), self(value))
                    for question, variable, value, _ in program.reasons
                ],
                base={reason.question: reason.base for reason in program.reasons},
                constants=self.constants,
                curves=self.curves,
                **more,
            )
        )
        return written(text, path)

    @abstractmethod
    def quoted(self, text: str) -> str:
        """A text of the language."""

    @abstractmethod
    def label(self, label: Any) -> str:
        """A class label."""

    def form(self, column: Column) -> str:
        """How dates of a column are written, as a further argument of its reader."""
        return ""

    def read(self, column: Column) -> str:
        cell = f"cell(row, {self.quoted(column.name)}, {column.place})"
        if column.kind == "text":
            pairs = [self.level.format(self.quoted(t), i) for i, t in enumerate(column.levels)]
            return f"level({cell}, {self.constant(self.levels.format(', '.join(pairs)))})"
        return f"{column.kind}({cell}{self.form(column)})"

    def lookup(self, lookup: ValueLookup) -> str:
        return self.picked.format(table=self.table(lookup.values), at=self(lookup.at))

    def interpolate(self, curve: Interpolate) -> str:
        self.curves = True
        at, knots, ranks = self(curve.at), self.table(curve.knots), self.table(curve.ranks)
        return self.ranked.format(at=at, knots=knots, ranks=ranks, count=len(curve.knots))

    def choice(self, condition: Expression, yes: Expression, no: Expression) -> str:
        return f"{self.inner(condition)} ? {self.inner(yes)} : {self.otherwise(no)}"


def _is_sum(term: Expression) -> bool:
    return isinstance(term, Op) and term.kind in ("sum", "minus")


def _is_product(term: Expression) -> bool:
    return isinstance(term, Op) and term.kind == "product"


def _is_negative(term: Expression) -> bool:
    first = term.args[0] if isinstance(term, Op) and term.kind == "product" else term
    return isinstance(first, float) and first < 0


def _turned(term: Expression) -> Expression:
    """A negative number, or a product that begins with one, with the other sign."""
    if isinstance(term, float):
        return -term
    assert isinstance(term, Op) and isinstance(term.args[0], float)
    return Op("product", (-term.args[0], *term.args[1:]))


# --- names and files ------------------------------------------------------------------------------


def identifiers(names: Iterable[Any], prefix: str = "", taken: Iterable[str] = ()) -> list[str]:
    """Distinct identifiers of letters, digits and underscores that remind of ``names``.

    They are distinct from each other and from ``taken`` also where case does not count.
    """
    used = {name.casefold() for name in taken}
    unique = []
    for given in names:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", str(given)).strip("_")[:40] or "x"
        name, count = prefix + plain, 1
        while name.casefold() in used:
            count += 1
            name = f"{prefix}{plain}_{count}"
        used.add(name.casefold())
        unique.append(name)
    return unique


def remark(text: Any, length: int = 60) -> str:
    """A text that ends no comment and no line, and opens no markup, in any of the languages."""
    shown = ascii(str(text)[:length]).replace("<", "\\x3c").replace("*/", "* /")
    return shown.replace("?", "\\x3f")


if TYPE_CHECKING:
    from jinja2 import Environment


def model_in(tree: Any) -> TreeModel:
    """The tree of a fitted estimator, of a search or of a pipeline; or the tree itself."""
    if isinstance(tree, SavedTree):
        tree = tree.tree_
    if isinstance(tree, TreeModel):
        return tree
    from softsplit.persistence.estimators import estimator_in

    if hasattr(tree, "to_local"):  # of Dask
        tree = tree.to_local()
    return estimator_in(tree).tree_


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("softsplit.exports"), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["remark"] = remark
    return environment


def written(text: str, path: PathName | None) -> str:
    """The text, also written to a file if one is given."""
    if path is not None:
        write_file(path, text.encode("utf-8"))
    return text
