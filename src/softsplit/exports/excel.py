"""A tree as an Excel workbook with live formulas.

Sheets: *Case*, one row to fill in, with its answer; *Batch*, a line for each of many rows; *Tree*,
the text of the tree; *Tables*, all texts and tables that formulas look up. A formula holds numbers
and cell references alone: names and levels stand in cells as texts, and can be nothing else.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from softsplit.exports.expressions import (
    MISSING,
    UNLISTED,
    Column,
    Expression,
    Interpolate,
    ValueLookup,
)
from softsplit.exports.printing import Printer, model_in
from softsplit.exports.program import TreeProgram, program_of
from softsplit.fitted.model import TreeModel
from softsplit.persistence.records import has_halves
from softsplit.reading.text import tree_text
from softsplit.support.messages import shown
from softsplit.support.output_files import PathName, write_file

if TYPE_CHECKING:
    import pandas as pd


# Lines of the batch sheet if no rows are given.
EMPTY_ROWS = 200

# Lines of the batch sheet at most: each has a cell for every step of the tree.
MOST_ROWS = 100_000

# Characters of a cell.
LONGEST_TEXT = 32_767

# Characters of a formula.
LONGEST_FORMULA = 8_192

# 1970-01-01 as Excel counts days.
EPOCH = 25_569

SPECIAL = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)|[\x00-\x08\x0b-\x1f\ufffe\uffff]")


class ExcelPrinter(Printer):
    """Formulas; ``place`` says in which cell a name is, tables are ranges of *Tables*."""

    signs: ClassVar[Mapping[str, str]] = {"greater": ">", "at least": ">=", "equal": "="}
    compound = tuple(kind for kind in Printer.compound if kind not in ("if", "all", "any"))

    def __init__(self, tables: _Tables, place: Callable[[str], str]) -> None:
        self.tables, self.place = tables, place

    def name(self, text: str) -> str:
        return self.place(text)

    def number(self, value: float) -> str:
        return repr(value).replace("e", "E").removesuffix(".0")

    def read(self, column: Column) -> str:
        cell = self.place(f"in{column.place}")
        blank = f'TRIM({cell}&"")=""'
        if column.kind == "text":
            levels = self.tables.texts(column)
            same = f'EXACT({levels},{cell}&"")'
            at = f"SUMPRODUCT({same}*ROW({levels}))"  # tables begin in the first line
            # TRIM also joins blanks inside of a text: then the level is not in the cell.
            bare = f'EXACT({levels},TRIM({cell}&""))*ISNUMBER(FIND({levels},{cell}&""))'
            other = f"SUMPRODUCT({bare}*ROW({levels}))"
            position = f"IF({at}>0,{at}-1,IF({other}>0,{other}-1,{UNLISTED}))"
            return f"IF({blank},{MISSING},{position})"
        if column.kind == "truth":
            said = f'IF(ISTEXT({cell}),IF(LOWER(TRIM({cell}))="true",1,0),IF({cell},1,0))'
            return f"IF({blank},{MISSING},{said})"
        value = f"VALUE({cell})" if column.kind == "number" else f"{cell}-{EPOCH}"
        return f'IF({blank},"",{value})'

    def lookup(self, lookup: ValueLookup) -> str:
        return f"INDEX({self.tables.numbers(lookup.values)},{self(lookup.at)}+3)"

    def interpolate(self, curve: Interpolate) -> str:
        x = self(curve.at)
        knots, ranks = self.tables.numbers(curve.knots), self.tables.numbers(curve.ranks)
        first, last = self.number(curve.knots[0]), self.number(curve.knots[-1])
        at = f"MATCH({x},{knots},1)"
        low, high = f"INDEX({ranks},{at})", f"INDEX({ranks},{at}+1)"
        left, right = f"INDEX({knots},{at})", f"INDEX({knots},{at}+1)"
        inside = f"{low}+({x}-{left})*(({high}-{low})/({right}-{left}))"
        ends = self.number(curve.ranks[0]), self.number(curve.ranks[-1])
        return f"IF({x}<={first},{ends[0]},IF({x}>={last},{ends[1]},{inside}))"

    def choice(self, condition: Expression, yes: Expression, no: Expression) -> str:
        return f"IF({self(condition)},{self(yes)},{self(no)})"

    def missing(self, cell: Expression) -> str:
        return f'{self(cell)}=""'

    def operation(self, op: Any) -> str:
        if op.kind in ("all", "any"):
            return f"{'AND' if op.kind == 'all' else 'OR'}({','.join(map(self, op.args))})"
        if op.kind == "negative":
            return f"(0-{self.inner(op.args[0])})"  # -x^2 and the like bind otherwise
        return super().operation(op).replace(" ", "")

    def call(self, function: str, args: list[str]) -> str:
        called = "INT" if function == "floor" else function.upper()
        return f"{called}({','.join(args)})"


class _Tables:
    """The sheet *Tables*: columns of texts and numbers that formulas look up."""

    def __init__(self, sheet: Any) -> None:
        self.sheet = sheet
        self.known: dict[Any, str] = {}

    def _put(self, key: Any, values: Sequence[Any]) -> str:
        from openpyxl.utils import get_column_letter

        if key not in self.known:
            letter = get_column_letter(len(self.known) + 1)
            for i, value in enumerate(values, start=1):
                _fill(self.sheet.cell(i, len(self.known) + 1), value)
            self.known[key] = f"Tables!${letter}$1:${letter}${len(values)}"
        return self.known[key]

    def texts(self, column: Column) -> str:
        return self._put(("levels", column.place), column.levels)

    def numbers(self, values: tuple[float, ...]) -> str:
        return self._put(values, values)

    def labels(self, values: Sequence[Any]) -> str:
        return self._put("classes", values)


def _fill(cell: Any, value: Any) -> None:
    """Put a value into a cell; a text is a text, however it begins."""
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise ValueError(
                f"{shown(value)} is longer than a cell of Excel can hold; use another export."
            )
        if has_halves(value):
            raise ValueError(f"{shown(value)} holds an unpaired surrogate character; rename it.")
        cell.value = SPECIAL.sub(lambda match: f"_x{ord(match[0]):04X}_", value)
        cell.data_type = "s"  # also where it begins with "="
        cell.number_format = "@"
    else:
        cell.value = value


def _formula(text: str) -> str:
    if len(text) + 1 > LONGEST_FORMULA:
        raise ValueError(
            f"the tree is too large for Excel: a formula would have {len(text):,} characters, and "
            f"{LONGEST_FORMULA:,} are the most; use another export or a smaller tree."
        )
    return f"={text}"


def export_excel(tree: Any, path: PathName, X: Any = None, *, reasons: bool = False) -> None:
    """Write the tree as an Excel workbook with live formulas. Needs ``softsplit[excel]``.

    *Case* has the columns in use, one below the other, to fill in, and the answer; *Batch* a line
    for each row, with answers; *Tree* its text. An empty cell is a missing value.

    Parameters
    ----------
    tree : fitted SoftTreeClassifier, or a search that holds one as ``best_estimator_``
    path : path
    X : table, optional
        Rows that fill the batch sheet. Without them it has empty lines.
    reasons : bool, default=False
        What each variable adds to the log-odds of each question, on both sheets.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.styles import Font
    except ImportError as error:
        raise ImportError(
            "Excel export needs openpyxl; install it with pip install 'softsplit[excel]'."
        ) from error
    model = model_in(tree)
    program = program_of(model, reasons=reasons)
    book = Workbook()
    case, batch = book.active, book.create_sheet("Batch")
    case.title = "Case"
    text, tables = book.create_sheet("Tree"), _Tables(book.create_sheet("Tables"))
    rows = _cells(program, model, X)
    _case_sheet(case, program, tables, rows)
    _batch_sheet(batch, program, tables, rows)
    for i, line in enumerate(tree_text(model).split("\n"), start=1):
        _fill(text.cell(i, 1), line)
        text.cell(i, 1).font = Font(name="Courier New")
    out = io.BytesIO()
    book.save(out)
    write_file(path, out.getvalue())


def _cells(program: TreeProgram, model: TreeModel, X: Any) -> list[list[Any]]:
    """The cells of the columns in use, row by row."""
    if X is None:
        return []
    from softsplit.variables.contents import table_columns

    names, columns = table_columns(X)
    if len(columns[0]) > MOST_ROWS:
        raise ValueError(
            f"X has {len(columns[0]):,} rows, and a workbook takes {MOST_ROWS:,} at most; "
            "give fewer, or use export_sql."
        )
    at = {name: j for j, name in enumerate(names or model.table_coding.names)}
    chosen = [_values(columns[at[column.name]], column) for column in program.columns]
    return [list(line) for line in zip(*chosen, strict=True)]


def _values(series: pd.Series, column: Column) -> list[Any]:
    from softsplit.variables.dates import days_in

    cells: list[Any] = []
    for value, missing in zip(series.astype(object), series.isna(), strict=True):
        if missing or (isinstance(value, str) and not value.strip()):
            cells.append(None)
        elif column.kind == "day":
            days = days_in(column.form)(value)
            cells.append(None if days is None else days + EPOCH)
        elif column.kind == "number" and not isinstance(value, str):
            cells.append(float(value))
        else:
            cells.append(value.item() if hasattr(value, "item") else value)
    return [str(v) if isinstance(v, date | datetime) else v for v in cells]


def _titles(program: TreeProgram) -> list[str]:
    """What the answers of a row are called."""
    reasons = [f"question {reason.question}: {reason.variable}" for reason in program.reasons]
    called = "class" if program.classes else "prediction"
    return [called, *(f"p {label}" for label in program.classes), *reasons]


def _answers(program: TreeProgram, tables: _Tables, printer: ExcelPrinter) -> list[str]:
    """The formulas of these answers."""
    values = [*program.probabilities, *(reason.value for reason in program.reasons)]
    predicted = printer(program.predicted)
    if program.classes:
        predicted = f"INDEX({tables.labels(program.classes)},{predicted}+1)"
    return [_formula(text) for text in (predicted, *map(printer, values))]


def _fill_in(cell: Any, value: Any, column: Column) -> None:
    """Put a value of a column into its cell."""
    _fill(cell, value)
    if column.kind == "day":
        cell.number_format = "yyyy-mm-dd"


def _case_sheet(sheet: Any, program: TreeProgram, tables: _Tables, rows: list[list[Any]]) -> None:
    """One row to fill in: names in A, values in B; answers, then the steps."""
    # 1. Lines of values, answers and steps, with a free line between.
    titles = _titles(program)
    first_answer = len(program.columns) + 3
    first_step = first_answer + len(titles) + 1
    places = {f"in{c.place}": f"$B${line}" for line, c in enumerate(program.columns, 2)}
    places |= {name: f"$B${line}" for line, name in enumerate(program.definitions, first_step)}
    printer = ExcelPrinter(tables, places.__getitem__)
    # 2. What they hold.
    _fill(sheet.cell(1, 1), "Fill in the values in column B; leave unknown ones empty.")
    for i, column in enumerate(program.columns):
        _fill(sheet.cell(i + 2, 1), column.name)
        _fill_in(sheet.cell(i + 2, 2), rows[0][i] if rows else None, column)
    answers = zip(titles, _answers(program, tables, printer), strict=True)
    for line, (title, formula) in enumerate(answers, first_answer):
        _fill(sheet.cell(line, 1), title)
        sheet.cell(line, 2).value = formula
    for line, (name, expression) in enumerate(program.definitions.items(), first_step):
        _fill(sheet.cell(line, 1), name)
        sheet.cell(line, 2).value = _formula(printer(expression))
        sheet.row_dimensions[line].outlineLevel = 1
    sheet.column_dimensions["A"].width, sheet.column_dimensions["B"].width = 50, 24


def _batch_sheet(sheet: Any, program: TreeProgram, tables: _Tables, rows: list[list[Any]]) -> None:
    """A line for each row: class, probabilities, reasons; values; then the steps."""
    from openpyxl.utils import get_column_letter

    # 1. Columns of answers, values and steps.
    titles = _titles(program)
    first_value = len(titles) + 1
    first_step = first_value + len(program.columns)
    heads = [*titles, *(column.name for column in program.columns), *program.definitions]
    for j, title in enumerate(heads, start=1):
        _fill(sheet.cell(1, j), title)
    names = [*(f"in{c.place}" for c in program.columns), *program.definitions]
    letters = {name: get_column_letter(j) for j, name in enumerate(names, first_value)}
    # 2. Line by line: values, answers (an empty line has none), steps.
    for line in range(2, 2 + (len(rows) or EMPTY_ROWS)):
        places = {name: f"${letter}{line}" for name, letter in letters.items()}
        printer = ExcelPrinter(tables, places.__getitem__)
        for i, column in enumerate(program.columns):
            value = rows[line - 2][i] if rows else None
            _fill_in(sheet.cell(line, first_value + i), value, column)
        answers = _answers(program, tables, printer)
        if not rows and program.columns:
            ends = [places[f"in{program.columns[at].place}"] for at in (0, -1)]
            empty = f"COUNTA({ends[0]}:{ends[1]})=0"
            answers = [_formula(f'IF({empty},"",{answer[1:]})') for answer in answers]
        steps = [_formula(printer(expression)) for expression in program.definitions.values()]
        for first, formulas in ((1, answers), (first_step, steps)):
            for j, formula in enumerate(formulas, first):
                sheet.cell(line, j).value = formula
    # 3. Steps are folded away.
    if program.definitions:
        ends = [get_column_letter(first_step), letters[names[-1]]]
        sheet.column_dimensions.group(*ends, hidden=True)
    sheet.freeze_panes = "B2"
