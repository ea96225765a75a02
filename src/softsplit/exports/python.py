"""A tree as a Python module that needs no other package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from softsplit.exports.expressions import Column, Expression
from softsplit.exports.printing import HEADER, CodePrinter, model_in, remark, written
from softsplit.exports.program import Reason, program_of
from softsplit.support.output_files import PathName

READERS = {
    "number": '''
NUMBER = re.compile(r"[+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:e[+-]?\\d+)?|[+-]?inf(?:inity)?", re.ASCII)


def number(value):
    """A number; NaN if it is missing."""
    if absent(value):
        return math.nan
    if isinstance(value, str) and not NUMBER.fullmatch(value.strip().lower()):
        raise ValueError(f"{value!r} stands where a number is needed.")
    if hasattr(value, "total_seconds"):
        value = value / datetime.timedelta(days=1)
    if math.isinf(float(value)):
        raise ValueError("infinity stands where a number is needed.")
    return float(value)
''',
    "truth": '''
def truth(value):
    """1 for true, 0 for false, -2 if it is missing."""
    if absent(value):
        return -2
    said = {"true": 1, "false": 0}.get(value.strip().lower()) if isinstance(value, str) else value
    if said not in (0, 1):
        raise ValueError(f"{value!r} stands where true or false is needed.")
    return int(said)
''',
    "day": '''
TIME = r"\\d\\d:\\d\\d(?::\\d\\d(?:\\.\\d{1,6})?)?(?:Z|[+-]\\d\\d:?\\d\\d)?"
ISO = re.compile(r"\\d{4}-\\d\\d-\\d\\d(?:[ T]" + TIME + ")?")


def day(value, form):
    """Days since 1970-01-01; NaN if it is missing."""
    if absent(value):
        return math.nan
    if isinstance(value, str):
        text = value.strip()
        if ISO.fullmatch(text):
            value = datetime.datetime.fromisoformat(text)
        elif form:
            value = datetime.datetime.strptime(text, form)
    if not isinstance(value, datetime.date):
        raise ValueError(f"{value!r} stands where a date is needed.")
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    zone = value.utcoffset() or datetime.timedelta()
    since = value.replace(tzinfo=None) - zone - datetime.datetime(1970, 1, 1)
    return since / datetime.timedelta(days=1)
''',
    "text": '''
def level(value, levels):
    """Position of a level; -1 if it is none of them, -2 if it is missing."""
    if absent(value):
        return -2
    if isinstance(value, float) and value == math.floor(value) and abs(value) <= 2.0**53:
        value = int(value)
    return levels.get(str(value), levels.get(str(value).strip(), -1))
''',
}

ABSENT = '''
def absent(value):
    """Whether a value is missing: None, NaN or a blank text."""
    return value is None or value != value or (isinstance(value, str) and not value.strip())
'''

RANK = '''
def rank(x, knots, ranks):
    """Linear interpolation, constant beyond the ends."""
    i = bisect.bisect_right(knots, x) - 1
    if i < 0:
        return ranks[0]
    if i >= len(knots) - 1:
        return ranks[-1]
    return ranks[i] + (x - knots[i]) * ((ranks[i + 1] - ranks[i]) / (knots[i + 1] - knots[i]))
'''


class PythonPrinter(CodePrinter):
    """Expressions of Python; tables become constants of the module."""

    helpers: ClassVar[Mapping[str, str]] = {"absent": ABSENT, **READERS}
    interpolation = RANK

    def table(self, values: Iterable[float]) -> str:
        return self.constant(repr(tuple(values)))

    def quoted(self, text: str) -> str:
        return ascii(text)

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
    program = program_of(model_in(tree), reasons=reasons)
    printer = PythonPrinter()
    lines = [f"    {name} = {printer(e)}" for name, e in program.definitions.items()]
    answers = f"[{', '.join(map(printer, program.probabilities))}]"
    triples = [f"({q}, {v!a}, {printer(value)})" for q, v, value, _ in program.reasons]
    kinds = {column.kind for column in program.columns}
    modules = {"math"} | ({"bisect"} if printer.curves else set())
    modules |= {"re", "datetime"} if kinds & {"number", "day"} else set()
    returned = ["int(" + printer(program.predicted) + ")", answers]
    used = ", ".join(remark(column.name) for column in program.columns)
    parts = [
        f'"""{HEADER}"""\n\n',
        "".join(f"import {module}\n" for module in sorted(modules)),
        f"\n# Columns in use: {used}\n" if used else "",
        f"CLASSES = {program.classes!a}\n",
        *(f"T{i} = {text}\n" for i, text in enumerate(printer.constants)),
        *(f"\n{text}" for text in printer.functions(program.columns)),
        CELL,
        "\n\ndef answer(row):\n",
        '    """Position of the class, probabilities, reasons."""\n',
        *(f"{line}\n" for line in lines),
        f"    return {', '.join(returned)}, [{', '.join(triples)}]\n",
        PREDICT,
        *_reasons(program.reasons),
    ]
    return written("".join(parts), path)


CELL = '''

def cell(row, name, place):
    """The value of a column in a row, a mapping by names or a sequence of all columns."""
    if not hasattr(row, "keys"):
        return row[place]
    if name not in row.keys():
        raise ValueError(f"the row has no column {name!r}; give None if its value is not known.")
    return row[name]
'''

PREDICT = '''

def predict_proba(row):
    """Probability of each class, in the order of CLASSES."""
    return answer(row)[1]


def predict(row):
    """The class of a row."""
    return CLASSES[answer(row)[0]]
'''


def _reasons(reasons: Sequence[Reason]) -> list[str]:
    if not reasons:
        return []
    base = {reason.question: reason.base for reason in reasons}
    return [
        "\n\ndef reasons(row):\n",
        '    """What each variable adds to the log-odds of each question."""\n',
        "    return answer(row)[2]\n",
        f"\n\nBASE = {base!r}\n",
    ]
