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
    Lookup,
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


EMPTY_ROWS = 200
"""Lines of the batch sheet if no rows are given."""

MOST_ROWS = 100_000
"""Lines of the batch sheet at most: each has a cell for every step of the tree."""

LONGEST_TEXT = 32_767
"""Characters of a cell."""

LONGEST_FORMULA = 8_192
"""Characters of a formula."""

EPOCH = 25_569
"""1970-01-01 as Excel counts days."""

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

    def lookup(self, lookup: Lookup) -> str:
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


def _outputs(program: TreeProgram) -> list[tuple[str, Expression]]:
    classes = [
        (f"p {label}", p) for label, p in zip(program.classes, program.probabilities, strict=True)
    ]
    return classes + [
        (f"question {q}: {variable}", value) for q, variable, value, _ in program.reasons
    ]


def _class_formula(program: TreeProgram, tables: _Tables, printer: ExcelPrinter) -> str:
    labels = tables.labels(program.classes)
    return _formula(f"INDEX({labels},{printer(program.predicted)}+1)")


def _mark_day(cell: Any, column: Column) -> None:
    if column.kind == "day":
        cell.number_format = "yyyy-mm-dd"


def _case_sheet(sheet: Any, program: TreeProgram, tables: _Tables, rows: list[list[Any]]) -> None:
    """One row to fill in: names in A, values in B; answers, then the steps."""
    places: dict[str, str] = {}
    _fill(sheet.cell(1, 1), "Fill in the values in column B; leave unknown ones empty.")
    line = 2
    for i, column in enumerate(program.columns):
        _fill(sheet.cell(line, 1), column.name)
        _fill(sheet.cell(line, 2), rows[0][i] if rows else None)
        _mark_day(sheet.cell(line, 2), column)
        places[f"in{column.place}"] = f"$B${line}"
        line += 1
    answers = line + 1
    line = answers + 2 + len(_outputs(program))
    for i, name in enumerate(program.definitions):
        places[name] = f"$B${line + i}"
    printer = ExcelPrinter(tables, places.__getitem__)
    _fill(sheet.cell(answers, 1), "class")
    sheet.cell(answers, 2).value = _class_formula(program, tables, printer)
    for i, (title, expression) in enumerate(_outputs(program), start=1):
        _fill(sheet.cell(answers + i, 1), title)
        sheet.cell(answers + i, 2).value = _formula(printer(expression))
    for i, (name, expression) in enumerate(program.definitions.items()):
        _fill(sheet.cell(line + i, 1), name)
        sheet.cell(line + i, 2).value = _formula(printer(expression))
        sheet.row_dimensions[line + i].outlineLevel = 1
    sheet.column_dimensions["A"].width, sheet.column_dimensions["B"].width = 50, 24


def _batch_sheet(sheet: Any, program: TreeProgram, tables: _Tables, rows: list[list[Any]]) -> None:
    """A line for each row: class, probabilities, reasons; values; then the steps."""
    from openpyxl.utils import get_column_letter

    outputs = _outputs(program)
    titles = ["class", *(title for title, _ in outputs), *(c.name for c in program.columns)]
    first_step = len(titles) + 1
    for j, title in enumerate([*titles, *program.definitions], start=1):
        _fill(sheet.cell(1, j), title)
    letters = {
        f"in{c.place}": get_column_letter(len(outputs) + 2 + i)
        for i, c in enumerate(program.columns)
    }
    letters |= {n: get_column_letter(first_step + i) for i, n in enumerate(program.definitions)}
    for line in range(2, 2 + (len(rows) or EMPTY_ROWS)):
        printer = ExcelPrinter(tables, {n: f"${a}{line}" for n, a in letters.items()}.__getitem__)
        for i, column in enumerate(program.columns):
            cell = sheet.cell(line, len(outputs) + 2 + i)
            _fill(cell, rows[line - 2][i] if rows else None)
            _mark_day(cell, column)
        answers = [_class_formula(program, tables, printer)]
        answers += [_formula(printer(expression)) for _, expression in outputs]
        if not rows and program.columns:  # an empty line has no answer
            ends = [f"${letters[f'in{c.place}']}{line}" for c in program.columns]
            empty = f"COUNTA({ends[0]}:{ends[-1]})=0"
            answers = [_formula(f'IF({empty},"",{answer[1:]})') for answer in answers]
        for j, answer in enumerate(answers, start=1):
            sheet.cell(line, j).value = answer
        for j, expression in enumerate(program.definitions.values(), start=first_step):
            sheet.cell(line, j).value = _formula(printer(expression))
    if program.definitions:
        last = get_column_letter(first_step + len(program.definitions) - 1)
        sheet.column_dimensions.group(get_column_letter(first_step), last, hidden=True)
    sheet.freeze_panes = "B2"
