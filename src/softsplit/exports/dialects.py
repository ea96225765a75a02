"""SQL in the dialects of five databases: what they differ in are attributes of one printer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from softsplit.exports.expressions import (
    MISSING,
    UNLISTED,
    Column,
    Expression,
    Interpolate,
    Op,
    ValueLookup,
)
from softsplit.exports.printing import BLANKS, Printer
from softsplit.exports.program import SATURATION
from softsplit.persistence.records import has_halves
from softsplit.support.messages import shown

# Knots of one CASE of an interpolation; more are halved, so that few are looked at.
HELD = 2


class Dialect(Printer):
    """Expressions of SQL. What databases differ in are the attributes below, of SQLite here.

    In templates ``cell`` is a cell of the table, ``text`` its text (of dates without the blanks at
    both ends), ``bare`` the cell without these blanks, and ``double`` the cell as a number.
    """

    signs: ClassVar[Mapping[str, str]] = {"greater": ">", "at least": ">=", "equal": "="}
    words: ClassVar[Mapping[str, str]] = {"all": "AND", "any": "OR"}
    compound = tuple(kind for kind in Printer.compound if kind != "if")
    # Functions that are not called as in capitals.
    called: ClassVar[Mapping[str, str]] = {}

    double, text_type, materialized = "REAL", "TEXT", "MATERIALIZED "
    truths = ("0", "1")
    # Before a name, after it, and for the latter within a name.
    quotes = ('"', '"', '""')
    # What ``trim`` removes.
    blanks = f"char({', '.join(str(ord(c)) for c in BLANKS)})"
    # The character that no literal can hold.
    zero = "char(0)"
    # Whether numbers have an exponent, as others are decimals of few digits.
    exponents = False

    trim = "TRIM({text}, {blanks})"
    number_cell = "CASE WHEN typeof({cell}) = 'text' AND {bare} = '' THEN NULL ELSE {double} END"
    # The text of a level that may be a number: 1.0 is written as 1.
    level_cell = (
        "CASE WHEN typeof({cell}) = 'real' AND {cell} = CAST({cell} AS INTEGER) "
        "THEN CAST(CAST({cell} AS INTEGER) AS TEXT) ELSE {text} END"
    )
    # A text, compared letter by letter.
    exactly = "{text} COLLATE BINARY"
    # A date, as the database has it.
    moment = "{text}"
    # The same, if dates may also be written in a ``form``: what ``date_form`` makes of it.
    formed = "CASE WHEN {text} GLOB '????-??-??*' THEN {text} ELSE {form} END"
    # Days since 1970-01-01.
    days = (
        "(CAST(strftime('%s', {moment}) AS REAL) + (CAST(strftime('%f', {moment}) AS REAL) "
        "- CAST(strftime('%S', {moment}) AS REAL))) / 86400.0"
    )

    # Of a function; the limit of SQLite is 127, or less where it was built so.
    most_arguments = 50
    saturation = SATURATION
    prefix = "ss_"

    def name(self, text: str) -> str:
        return self.prefix + text

    def number(self, value: float) -> str:
        text = repr(value)
        if not self.exponents or "e" in text or not text[-1].isdigit():
            return text
        return text.removesuffix(".0") + "E0"

    def identifier(self, name: str) -> str:
        """A name of a table or column, which cannot be anything else."""
        if "\0" in name or has_halves(name) or not name:
            raise ValueError(
                f"{shown(name)} cannot be the name of a column or table in SQL; rename it."
            )
        first, last, within = self.quotes
        return first + name.replace(last, within) + last

    def literal(self, text: str) -> str | None:
        """A text, or None if the database can hold no such text."""
        if has_halves(text):
            return None
        parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
        return parts[0] if len(parts) == 1 else f"({f' || {self.zero} || '.join(parts)})"

    def constant(self, label: Any) -> str:
        """A class label."""
        if isinstance(label, bool):
            return self.truths[label]
        if isinstance(label, int):
            return str(label)
        if isinstance(label, float):
            return self.number(label)
        literal = self.literal(label)
        if literal is None:
            raise ValueError(
                f"class {shown(label)} holds an unpaired surrogate character; rename it."
            )
        return literal

    def as_double(self, text: str) -> str:
        return f"CAST({text} AS {self.double})"

    def as_text(self, cell: str) -> str:
        return f"CAST({cell} AS {self.text_type})"

    def without_blanks(self, text: str) -> str:
        """A text without blanks at both ends."""
        return self.trim.format(text=text, blanks=self.blanks)

    # --- cells ------------------------------------------------------------------------------------

    def read(self, column: Column) -> str:
        cell = f"t.{self.identifier(column.name)}"
        if column.kind == "number":
            bare, double = self.without_blanks(cell), self.as_double(cell)
            return self.number_cell.format(cell=cell, bare=bare, double=double)
        if column.kind == "day":
            return self.read_day(cell, column.form)
        if column.kind == "truth":
            text = f"LOWER({self.without_blanks(self.as_text(cell))})"
            return (
                f"CASE WHEN {text} IN ('true', 't', '1', '1.0') THEN 1 "
                f"WHEN {text} IN ('false', 'f', '0', '0.0') THEN 0 ELSE {MISSING} END"
            )
        return self.read_level(cell, column.levels)

    def read_level(self, cell: str, levels: Sequence[str]) -> str:
        """The position of a level: as it is written, else without the blanks at both ends."""
        text = self.as_text(cell)
        if any(level[-1:].isdigit() for level in levels):
            text = self.level_cell.format(cell=cell, text=text)
        literals = {level: self.level_literal(level) for level in levels}
        known = [(level, i) for i, level in enumerate(levels) if literals[level] is not None]
        cases = " ".join(f"WHEN {literals[level]} THEN {i}" for level, i in known)
        bare = " ".join(
            f"WHEN {literals[level]} THEN {i}" for level, i in known if level == level.strip()
        )
        blank = f"WHEN {self.level_literal('')} THEN {MISSING}"
        inner = self.exactly.format(text=self.without_blanks(self.as_text(cell)))
        other = f"CASE {inner} {blank} {bare} ELSE {UNLISTED} END"  # last: it takes long
        exact = self.exactly.format(text=text)
        position = f"CASE {exact} {cases} ELSE {other} END" if cases else other
        return f"CASE WHEN {cell} IS NULL THEN {MISSING} ELSE {position} END"

    def level_literal(self, level: str) -> str | None:
        return self.literal(level)

    def read_day(self, cell: str, form: str) -> str:
        text = self.without_blanks(self.as_text(cell))
        moment = self.moment.format(cell=cell, text=text)
        if form:
            moment = self.formed.format(cell=cell, text=text, form=self.date_form(text, form))
        return self.days.format(moment=moment)

    def date_form(self, text: str, form: str) -> str:
        """A ``strptime`` format as the database has it; here the ISO text of the date."""
        return _iso_text(text, form)

    # --- values -----------------------------------------------------------------------------------

    def lookup(self, lookup: ValueLookup) -> str:
        cases = " ".join(f"WHEN {i - 2} THEN {self.number(v)}" for i, v in enumerate(lookup.values))
        return f"CASE {self(lookup.at)} {cases} END"

    def interpolate(self, curve: Interpolate) -> str:
        x, knots, ranks = self(curve.at), curve.knots, curve.ranks

        def between(low: int, high: int) -> str:
            if high - low <= HELD:
                cases = [piece(i) for i in range(low, high)]
                tests = [
                    f"WHEN {x} < {self.number(knots[i + 1])} THEN {cases[i - low]}"
                    for i in range(low, high - 1)
                ]
                return f"CASE {' '.join(tests)} ELSE {cases[-1]} END" if tests else cases[-1]
            middle = (low + high) // 2
            test = f"{x} < {self.number(knots[middle])}"
            return f"CASE WHEN {test} THEN {between(low, middle)} ELSE {between(middle, high)} END"

        def piece(i: int) -> str:
            slope = (ranks[i + 1] - ranks[i]) / (knots[i + 1] - knots[i])
            past = self.subtracted(curve.at, knots[i])
            return f"{self.number(ranks[i])} + {self.number(slope)} * ({past})"

        return (
            f"CASE WHEN {x} <= {self.number(knots[0])} THEN {self.number(ranks[0])} "
            f"WHEN {x} >= {self.number(knots[-1])} THEN {self.number(ranks[-1])} "
            f"ELSE {between(0, len(knots) - 1)} END"
        )

    def choice(self, condition: Expression, yes: Expression, no: Expression) -> str:
        cases = [f"WHEN {self(condition)} THEN {self(yes)}"]
        while isinstance(no, Op) and no.kind == "if":  # one CASE: databases nest few of them
            condition, yes, no = no.args
            cases.append(f"WHEN {self(condition)} THEN {self(yes)}")
        return f"CASE {' '.join(cases)} ELSE {self(no)} END"

    def missing(self, cell: Expression) -> str:
        return f"{self(cell)} IS NULL"

    def call(self, function: str, args: list[str]) -> str:
        while len(args) > self.most_arguments:
            first, args = args[: self.most_arguments], args[self.most_arguments :]
            args = [self.call(function, first), *args]
        return f"{self.called.get(function, function.upper())}({', '.join(args)})"


class GreatestDialect(Dialect):
    """Dialects with GREATEST and LEAST of any number of arguments, and with truth values."""

    called: ClassVar[Mapping[str, str]] = {"max": "GREATEST", "min": "LEAST"}
    most_arguments = 1_000_000
    truths = ("FALSE", "TRUE")
    level_cell = exactly = "{text}"

    def date_form(self, text: str, form: str) -> str:
        return form


class Postgres(GreatestDialect):
    """PostgreSQL 12 and later. A product that underflows is an error there: gates shut earlier."""

    double, text_type = "double precision", "text"
    blanks = "E'" + "".join(f"\\u{ord(c):04x}" for c in BLANKS) + "'"
    number_cell = "NULLIF({double}, 'NaN')"
    exactly = '{text} COLLATE "C"'
    moment = (
        "CASE WHEN {text} ~ ':[0-9.]+(Z|[+-][0-9][0-9].*)$' "
        "THEN EXTRACT(EPOCH FROM CAST({text} AS timestamptz)) "
        "WHEN {text} <> '' THEN EXTRACT(EPOCH FROM CAST({text} AS timestamp)) END"
    )
    formed = moment.replace(
        "WHEN {text} <> ''",
        "WHEN {text} !~ '^[0-9]{{4}}-' "
        "THEN EXTRACT(EPOCH FROM CAST(to_timestamp({text}, '{form}') AS timestamp)) "
        "WHEN {text} <> ''",
    )
    days = "CAST({moment} AS double precision) / 86400.0"

    def literal(self, text: str) -> str | None:
        if "\0" in text or has_halves(text):
            return None
        body = text.replace("'", "''")
        return "E'" + body.replace("\\", "\\\\") + "'" if "\\" in body else f"'{body}'"

    def date_form(self, text: str, form: str) -> str:
        for part, word in FORMAT_WORDS.items():
            form = form.replace(part, word)
        return form


class DuckDB(GreatestDialect):
    """DuckDB."""

    double, text_type = "DOUBLE", "VARCHAR"
    blanks = f"concat({', '.join(f'chr({ord(c)})' for c in BLANKS)})"
    zero, exponents = "chr(0)", True
    number_cell = "NULLIF({double}, CAST('NaN' AS DOUBLE))"
    level_cell = (
        "CASE WHEN typeof({cell}) IN ('DOUBLE', 'FLOAT') "
        "THEN regexp_replace({text}, '\\.0$', '') ELSE {text} END"
    )
    moment = "TRY_CAST({text} AS TIMESTAMP)"
    formed = "COALESCE(TRY_CAST({text} AS TIMESTAMP), try_strptime({text}, '{form}'))"
    days = "epoch({moment}) / 86400E0"


class BigQuery(GreatestDialect):
    """GoogleSQL of BigQuery."""

    double, text_type, materialized = "FLOAT64", "STRING", ""
    blanks = "'" + "".join(f"\\u{ord(c):04x}" for c in BLANKS) + "'"
    number_cell = "IF(IS_NAN({double}), NULL, {double})"
    moment = "SAFE_CAST({text} AS TIMESTAMP)"
    formed = "COALESCE(SAFE_CAST({text} AS TIMESTAMP), SAFE.PARSE_TIMESTAMP('{form}', {text}))"
    days = "UNIX_MICROS({moment}) / 86400000000.0"

    def identifier(self, name: str) -> str:
        super().identifier(name)
        return f"`{_escaped(name)}`"

    def literal(self, text: str) -> str | None:
        return None if has_halves(text) else f"'{_escaped(text)}'"


class SQLServer(Dialect):
    """Transact-SQL of SQL Server 2017 and later."""

    double, text_type, materialized = "float", "nvarchar(max)", ""
    blanks = "CONCAT(" + ", ".join(f"NCHAR({ord(c)})" for c in BLANKS) + ")"
    truths, exponents = ("CAST(0 AS bit)", "CAST(1 AS bit)"), True
    quotes = ("[", "]", "]]")
    trim, number_cell, level_cell = "TRIM({blanks} FROM {text})", "{double}", "{text}"
    # The mark at the end: blanks there would not count.
    exactly = "(({text}) COLLATE Latin1_General_100_BIN2 + N'|')"
    moment, formed = "CAST({cell} AS datetime2)", "CONVERT(datetime2, {cell}, {form})"
    days = "DATEDIFF_BIG(microsecond, '1970-01-01', {moment}) / 86400000000E0"

    def literal(self, text: str) -> str | None:
        """Characters before the blank by their numbers: a backslash at the end of a line would join
        it to the next one."""
        if has_halves(text):
            return None
        runs = re.split(r"([\x00-\x1f])", text.replace("'", "''"))
        parts = [f"NCHAR({ord(run)})" if i % 2 else f"N'{run}'" for i, run in enumerate(runs)]
        return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"

    def level_literal(self, level: str) -> str | None:
        return self.literal(f"{level}|")

    def date_form(self, text: str, form: str) -> str:
        return str(STYLES[form.split(" ")[0]])

    def call(self, function: str, args: list[str]) -> str:
        if function in ("max", "min"):
            values = ", ".join(f"({arg})" for arg in args)
            return f"(SELECT {function.upper()}(v) FROM (VALUES {values}) AS s(v))"
        return super().call(function, args)


# Numbers of date formats in Transact-SQL.
STYLES = {
    "%d.%m.%Y": 104, "%d/%m/%Y": 103, "%m/%d/%Y": 101, "%Y/%m/%d": 111, "%d-%m-%Y": 105,
    "%Y%m%d": 112,
}  # fmt: skip

DIALECTS: dict[str, type[Dialect]] = {
    "postgres": Postgres,
    "sqlite": Dialect,
    "duckdb": DuckDB,
    "mssql": SQLServer,
    "bigquery": BigQuery,
}


def _escaped(text: str) -> str:
    """Letters and digits as they are, everything else by its number."""
    return "".join(
        c if c.isascii() and (c.isalnum() or c in " _") else f"\\U{ord(c):08x}" for c in text
    )


# Parts of date formats in PostgreSQL.
FORMAT_WORDS = {"%d": "DD", "%m": "MM", "%Y": "YYYY", "%H": "HH24", "%M": "MI", "%S": "SS"}


def _iso_text(text: str, form: str) -> str:
    """A date in a ``strptime`` format as an ISO text, in SQLite."""
    date, _, time = form.partition(" ")
    if date == "%Y%m%d":
        parts = {
            "Y": f"substr({text}, 1, 4)",
            "m": f"substr({text}, 5, 2)",
            "d": f"substr({text}, 7, 2)",
        }
    else:
        mark = date[2]
        second = f"substr({text}, instr({text}, '{mark}') + 1)"
        third = f"substr({second}, instr({second}, '{mark}') + 1)"
        parts = dict(zip(date[1::3], (text, second, third), strict=True))
    # The cast of a text to an integer takes the digits with which it begins.
    day = (
        "printf('%04d-%02d-%02d', " + ", ".join(f"CAST({parts[p]} AS INTEGER)" for p in "Ymd") + ")"
    )
    if not time:
        return day
    clock = f"substr({text}, instr({text}, ' ') + 1)"
    hours = f"printf(' %02d', CAST({clock} AS INTEGER))"
    return f"{day} || {hours} || substr({clock}, instr({clock}, ':'))"
