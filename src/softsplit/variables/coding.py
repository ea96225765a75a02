"""The coding of a table as columns of a training problem: learned once, then applied to any table.

learn(X, labels, ...) -> CodedRows      the training table with its learned ``Coding``
coding.code(X)        -> CodedRows      another table, coded by a learned ``Coding``

``column_groups`` returns the groups of columns that are selected together: those of one variable,
and the user's groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.hinged_table import HingedTable
from softsplit.support.messages import ParameterError, nearest, shown, warn_user
from softsplit.support.row_budgets import ROWS
from softsplit.variables.contents import (
    as_table,
    columns_at,
    distinct,
    names_of,
    plain_numbers,
    table_columns,
)
from softsplit.variables.curves import Ordered, hinges, knots_of, learn_knots
from softsplit.variables.dates import PARTS, part_name
from softsplit.variables.kinds import (
    DROP,
    HINTS,
    KEEP,
    NEARLY_DATES,
    Hint,
    kind_of,
    learn_variables,
    needs_shares,
)
from softsplit.variables.shares import Shared, fold_of_rows
from softsplit.variables.variable import DATE, NUMBER, ORDERED, Cells, DayReader, Variable


class ColumnsLeftOut(UserWarning):
    """Warns that columns of a table are not used for training.

    Attributes
    ----------
    columns : tuple of (str, str)
        Name of each column and why it is not used.
    """

    def __init__(self, columns: Sequence[tuple[str, str]], advice: str = "") -> None:
        super().__init__(columns, advice)
        self.columns = tuple(columns)
        self.advice = (
            advice or f"name its kind, such as feature_types={{{columns[0][0]!r}: 'keep'}}"
        )
        if not advice and self.nearly_dates is not None:
            self.advice += (
                "; correct the cells that are not dates or leave them empty "
                f"(feature_types={{{self.nearly_dates!r}: 'date'}} lists them)"
            )

    @property
    def nearly_dates(self) -> str | None:
        """The first column whose cells are dates except for a few."""
        return next((name for name, why in self.columns if why.startswith(NEARLY_DATES)), None)

    def advising(self, advice: str) -> str:
        """Return the message with ``advice`` in place of the default advice."""
        which = "column" if len(self.columns) == 1 else "columns"
        verb = "is" if len(self.columns) == 1 else "are"
        listed = listed_columns([f"{shown(name, 20)} ({why})" for name, why in self.columns])
        one = "it" if len(self.columns) == 1 else "one"
        return f"{which} {listed} {verb} left out; to use {one} all the same, {advice}."

    def __str__(self) -> str:
        return self.advising(self.advice)


def listed_columns(names: Sequence[str], most: int = 8) -> str:
    """Return the first ``most`` names, separated by commas, and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class CodedRows:
    """Rows of a table in coded form.

    Attributes
    ----------
    X : array of shape (n_rows, n_columns)
        For many training rows with hinges a ``HingedTable``, which supports the same indexing.
    coding : Coding
    cells : tuple of Cells
        The parsed cells of each variable.
    shared : tuple of Shared
        The categories that are encoded by class shares.
    apart : DataFrame, optional
        Columns of the table as they are that requirements on rates name, features or not.
    """

    X: FloatArray
    coding: Coding
    cells: tuple[Cells, ...] = ()
    shared: tuple[Shared, ...] = ()
    apart: pd.DataFrame | None = None

    def __len__(self) -> int:
        return len(self.X)

    def part(self, rows: NDArray[Any]) -> CodedRows:
        """Return the rows with indices ``rows``."""
        return CodedRows(
            self.X[rows],
            self.coding,
            tuple(cell.part(rows) for cell in self.cells),
            tuple(one.part(rows) for one in self.shared),
            None if self.apart is None else self.apart.iloc[rows],
        )

    def bent(self, n_knots: int, weight: FloatArray) -> CodedRows:
        """Return training rows whose numbers bend at ``n_knots`` knots, learned from these rows."""
        coding, counted = self.coding, weight > 0
        knots: list[tuple[float, ...]] = []
        for i, variable in enumerate(coding.variables):
            columns = coding.columns_of(i)
            if variable.kind != NUMBER:
                knots.append(())
                continue
            known = counted & (self.X[:, columns[-1]] == 0) if variable.has_missing else counted
            knots.append(learn_knots(self.X[known, columns[0]], weight[known], n_knots))
        return self.with_knots(knots, held=len(self.X) <= ROWS.row_sums)

    def with_knots(self, knots: Sequence[tuple[float, ...]], *, held: bool = True) -> CodedRows:
        """Return the rows with other knots for each variable; all else is as it was.

        Where hinges are not to be ``held``, X is a ``HingedTable``.
        """
        old = self.coding
        if all(v.knots == tuple(k) for v, k in zip(old.variables, knots, strict=True)):
            return self
        coding = old.with_knots(knots)
        values = self.X[:, ~old.hinges] if np.any(old.hinges) else self.X
        X: Any = coding.hinged(values)
        if held or not coding.bends:
            X = np.empty((len(self.X), len(coding.column_names)), dtype=self.X.dtype)
            X[:, ~coding.hinges] = values
            coding.fill_hinges(X)
        places = np.flatnonzero(~coding.hinges)[np.cumsum(~old.hinges) - 1]
        shared = tuple(replace(one, first=int(places[one.first])) for one in self.shared)
        return CodedRows(X, coding, self.cells, shared, self.apart)

    def coded_as(self, coding: Coding | None) -> CodedRows:
        """Return the rows with the knots of another coding of the same variables, None: without."""
        mine = [variable.name for variable in self.coding.variables]
        if coding is None:
            return self.with_knots([()] * len(mine))
        if mine != [variable.name for variable in coding.variables]:
            return self
        return self.with_knots([variable.knots for variable in coding.variables])


@dataclass(frozen=True)
class Coding:
    """The variables of a table and their places in it.

    Attributes
    ----------
    names : tuple of str
        The columns of the table in order; x0, x1, ... if they have no names.
    variables : tuple of Variable
    places : tuple of int
        Index of the table column of each variable.
    left_out : tuple of (str, str)
        Columns that are not used, and why.
    named : bool
        Whether ``code`` finds columns by their names rather than by their positions.
    """

    names: tuple[str, ...]
    variables: tuple[Variable, ...]
    places: tuple[int, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    named: bool = True

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: cached properties are not pickled."""
        names = ("names", "variables", "places", "left_out", "named")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def of_numbers(
        cls,
        names: Sequence[str],
        middles: FloatArray,
        named: bool = True,
        places: Sequence[int] | None = None,
    ) -> Coding:
        """Return the identity coding of numeric columns without missing values.

        ``middles`` are the medians of the columns at ``places`` (default: all columns).
        """
        chosen = range(len(names)) if places is None else places
        found = tuple(
            Variable(names[j], NUMBER, float(m)) for j, m in zip(chosen, middles, strict=True)
        )
        return cls(tuple(names), found, tuple(chosen), (), named)

    @property
    def plain(self) -> bool:
        """Whether the coding is the identity on all columns of the table."""
        return self.of_matrices and not self.bends

    @cached_property
    def of_matrices(self) -> bool:
        """Whether the table is a matrix of numbers: none has an indicator, or is left out."""
        simple = all(v.kind == NUMBER and not v.has_missing for v in self.variables)
        return simple and not self.left_out and len(self.variables) == len(self.names)

    @cached_property
    def bends(self) -> bool:
        """Whether some number has knots."""
        return any(variable.knots for variable in self.variables)

    def renamed(self, names: Sequence[str]) -> Coding:
        """Return the coding with other names for the columns of the table."""
        called = tuple(map(str, names))
        known = dict(zip(self.names, called, strict=True))
        variables = []
        for variable, place in zip(self.variables, self.places, strict=True):
            name, source, since = called[place], "", known.get(variable.since, variable.since)
            if variable.part:
                name, source = part_name(variable.part, name, since), name
            variables.append(replace(variable, name=name, source=source, since=since))
        left_out = tuple((known.get(name, name), why) for name, why in self.left_out)
        return replace(self, names=called, variables=tuple(variables), left_out=left_out)

    def with_knots(self, knots: Sequence[tuple[float, ...]]) -> Coding:
        """Return the coding with the knots of each variable."""
        pairs = zip(self.variables, knots, strict=True)
        return replace(self, variables=tuple(replace(v, knots=tuple(k)) for v, k in pairs))

    @property
    def n_candidates(self) -> int:
        """Number of table columns that a tree could use.

        It exceeds the number of variables where a wide sparse matrix was screened before training.
        """
        return len(self.names) - len(self.left_out)

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The name of each column, as shown to users."""
        return tuple(name for variable in self.variables for name in variable.column_names)

    @cached_property
    def opposites(self) -> tuple[str, ...]:
        """For each indicator, the statement that holds where it is 0."""
        return tuple(name for variable in self.variables for name in variable.opposites)

    @cached_property
    def indicators(self) -> NDArray[np.bool_]:
        """For each column, whether it is a 0/1 indicator."""
        return np.array([flag for v in self.variables for flag in v.indicators], dtype=bool)

    @cached_property
    def homes(self) -> NDArray[np.intp]:
        """Index of the variable of each column."""
        return np.repeat(np.arange(len(self.variables)), [v.n_columns for v in self.variables])

    @cached_property
    def firsts(self) -> list[int]:
        """Index of the first column of each variable: of a number, that of its value."""
        return np.searchsorted(self.homes, np.arange(len(self.variables))).tolist()

    @cached_property
    def hinges(self) -> NDArray[np.bool_]:
        """For each column, whether it is a hinge of a number that bends."""
        marks = [
            0 < place <= variable.n_hinges
            for variable in self.variables
            for place in range(variable.n_columns)
        ]
        return np.array(marks, dtype=bool)

    def columns_of(self, variable: int) -> NDArray[np.intp]:
        """Return the indices of the columns of ``variable``; of a number its value comes first,
        then its hinges (``curves``), then the indicator of a missing value."""
        return np.flatnonzero(self.homes == variable)

    def fill_hinges(self, X: FloatArray) -> None:
        """Overwrite the hinges of coded rows by those of their values."""
        for first, variable in zip(self.firsts, self.variables, strict=True):
            if variable.knots:
                own = slice(first + 1, first + 1 + variable.n_hinges)
                X[:, own] = hinges(X[:, first], variable.knots)

    def hinged(self, values: FloatArray) -> HingedTable:
        """Return coded rows, of which ``values`` are the columns that are no hinges."""
        knots = np.full(len(self.homes), -np.inf)
        knots[self.hinges] = [knot for variable in self.variables for knot in variable.knots]
        return HingedTable(values, np.cumsum(~self.hinges) - 1, knots)

    def code_matrix(self, X: FloatArray, used: NDArray[np.bool_] | None = None) -> CodedRows:
        """Code a matrix of all columns of a table of numbers, without missing values.

        Hinges that are not ``used``, and variables of which no column is, are left at zero: they
        take neither time nor memory. By default all columns are used.
        """
        used = np.ones(len(self.homes), dtype=bool) if used is None else used
        made: FloatArray = np.zeros((len(self.homes), len(X))).T
        for i in np.unique(self.homes[used]).tolist():
            knots, first = self.variables[i].knots, self.firsts[i]
            values = made[:, first]
            values[:] = X[:, self.places[i]]
            for n, knot in enumerate(knots, first + 1):
                if used[n]:
                    np.maximum(np.subtract(values, knot, out=made[:, n]), 0.0, out=made[:, n])
        none = np.zeros(len(X), dtype=bool)
        cells = tuple(Cells(X[:, place], none, none) for place in self.places)  # no copies
        return CodedRows(made, self, cells)

    def code(self, X: Any, needed: Collection[int] | None = None) -> CodedRows:
        """Code the table ``X``.

        ``needed`` are the indices of variables that must be present (default: all); the others are
        coded as missing values.
        """
        wanted = range(len(self.variables)) if needed is None else self.siblings(needed)
        others = {
            i: self.names.index(self.variables[i].since) for i in wanted if self.variables[i].since
        }
        places = sorted({self.places[i] for i in wanted} | set(others.values()))
        table = as_table(X)
        found = self._found(table, places)
        n_rows = int(table.shape[0])
        days = DayReader()
        calls = {
            i: (self.variables[i].cells, (found[self.places[i]], found.get(others.get(i)), days))
            for i in wanted
        }
        needed_cells = _call_for_each(calls)
        missing = _all_missing(n_rows)
        cells = [needed_cells.get(i, missing) for i in range(len(self.variables))]
        made = np.empty((n_rows, len(self.homes)))
        if len(needed_cells) < len(cells):
            made[:] = self._blank
        for i, read in needed_cells.items():
            block = self.variables[i].coded(read)
            made[:, self.firsts[i] : self.firsts[i] + block.shape[1]] = block
        shared = self._shared(cells) if needed is None else ()
        return CodedRows(made, self, tuple(cells), shared)

    @cached_property
    def _blank(self) -> FloatArray:
        """The coded columns of a row without any value, (n_columns,)."""
        none = _all_missing(1)
        return np.hstack([variable.coded(none) for variable in self.variables])[0]

    def _shared(self, cells: Sequence[Cells]) -> tuple[Shared, ...]:
        """Return the categories encoded by class shares, for rows that are trained on."""
        if not any(variable.shares for variable in self.variables):
            return ()
        folds = fold_of_rows(np.column_stack([read.numbers for read in cells]))
        return tuple(
            Shared.of(read.numbers, folds, int(self.columns_of(i)[0]), variable)
            for i, (variable, read) in enumerate(zip(self.variables, cells, strict=True))
            if variable.shares
        )

    def siblings(self, variables: Collection[int]) -> list[int]:
        """Return variables with all other parts of their columns: those of a date."""
        places = {self.places[i] for i in variables}
        return [i for i, place in enumerate(self.places) if place in places]

    def _found(self, table: Any, places: Sequence[int]) -> dict[int | None, pd.Series]:
        """Return the columns at ``places`` of the table; one error names all absent ones."""
        names = names_of(table)
        if names is None or not self.named:
            if table.shape[1] != len(self.names):
                raise ValueError(
                    f"X has {table.shape[1]} features, but the tree is expecting "
                    f"{len(self.names)} features as input."
                )
            columns = columns_at(table, places)
            return {j: columns[j].rename(self.names[j]) for j in places}
        at = {name: j for j, name in enumerate(names)}
        absent = [self.names[j] for j in places if self.names[j] not in at]
        if absent:
            close = nearest(absent[0], names) if len(absent) == 1 else None
            hint = f"did you mean {close}?" if close else ""
            which = "column" if len(absent) == 1 else "columns"
            verb = "is" if len(absent) == 1 else "are"
            listed = listed_columns([shown(name, 24) for name in absent])
            hint = hint or "give a table with the columns that the tree was trained on."
            raise ValueError(f"{which} {listed} {verb} missing; {hint}")
        columns = columns_at(table, [at[self.names[j]] for j in places], names)
        return {j: columns[at[self.names[j]]] for j in places}


def _call_for_each(
    calls: Mapping[int, tuple[Callable[..., Any], tuple[Any, ...]]], most_errors: int = 3
) -> dict[int, Any]:
    """Return the result of each call; errors are joined.

    One ``ValueError`` joins the first ``most_errors`` errors; a single one is raised as it is.
    """
    results: dict[int, Any] = {}
    errors: list[ValueError] = []
    for key, (function, arguments) in calls.items():
        try:
            results[key] = function(*arguments)
        except ValueError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    said = [str(error).rstrip(".") for error in errors]
    if len(said) > most_errors:
        said[most_errors:] = [f"and {len(said) - most_errors} columns more"]
    if said:
        raise ValueError("; ".join(said) + ".")
    return results


def _all_missing(n_rows: int) -> Cells:
    return Cells(np.full(n_rows, np.nan), np.ones(n_rows, dtype=bool), np.zeros(n_rows, dtype=bool))


def learn(
    X: Any,
    labels: NDArray[np.int64],
    classes: NDArray[Any],
    weight: FloatArray,
    feature_types: Mapping[Any, str] | None = None,
) -> CodedRows:
    """Learn the coding of a training table and return its coded rows.

    Parameters
    ----------
    X : table
    labels : array of int, shape (n_rows,)
        Positions in ``classes``.
    classes : array of shape (n_classes,)
    weight : array of shape (n_rows,)
        Sample weights. Rows of weight zero are coded but do not influence the coding.
    feature_types : mapping, optional
        Kinds of columns, by name or position: "number", "category", "ordered" or "ordered: low <
        mid < high", "date", "date: hour, weekday" or "date: since signup", "keep" (the inferred
        kind, and the column is used even if it looks useless) or "drop".
    """
    names, columns = table_columns(X)
    column_names = [f"x{j}" for j in range(len(columns))] if names is None else names
    hints = _hints(feature_types, column_names)
    columns = [
        column if hints.get(j) not in (None, KEEP, NUMBER) else _as_numbers(column)
        for j, column in enumerate(columns)
    ]
    if not hints and (names is None or all(map(_is_plain, columns))):
        # A purely numeric table is used as it is; without names no column can look like an
        # identifier.
        hints = {j: KEEP for j, column in enumerate(columns) if kind_of(column) == NUMBER}
    rows = weight / min(1.0, float(weight[weight > 0].mean()))
    named = [column.rename(name) for column, name in zip(columns, column_names, strict=True)]
    by_name = dict(zip(column_names, named, strict=True))
    calls = {
        j: (learn_variables, (column_names[j], named[j], rows, hints.get(j), by_name))
        for j in range(len(columns))
        if hints.get(j) != DROP
    }
    found = dict.fromkeys(range(len(columns)), DROP) | _call_for_each(calls)
    seen = [(j, v) for j, made in found.items() if not isinstance(made, str) for v in made]
    left = [(column_names[j], why) for j, why in found.items() if isinstance(why, str)]
    unusable = [
        (column_names[j], why)
        for j, why in found.items()
        if isinstance(why, str) and why != DROP and hints.get(j) != KEEP
    ]
    if not seen:
        listed = listed_columns([f"{shown(name, 20)} ({why})" for name, why in left])
        raise ValueError(f"X has no column that a tree can use: {listed}.")
    if unusable:
        warn_user(ColumnsLeftOut(unusable))
    coding = Coding(
        tuple(column_names),
        tuple(v for _, v in seen),
        tuple(j for j, _ in seen),
        tuple(left),
        names is not None,
    )
    days = DayReader()
    cells = [v.cells(named[j], by_name.get(v.since), days) for j, v in seen]
    return _with_shares(coding, cells, labels, classes, weight)


def bent_matrix(
    X: FloatArray, names: Sequence[str] | None, n_knots: int, weight: FloatArray
) -> CodedRows | None:
    """Return a matrix of numbers with the hinges of its columns; None if no column bends.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
        Without missing values. Many rows keep their precision.
    names : sequence of str or None
        Names of the columns, if they have any.
    n_knots : int
    weight : array of shape (n_rows,)
    """
    if len(X) <= ROWS.double_precision:
        X = X.astype(float, copy=False)
    counted = weight > 0
    some = slice(None) if np.all(counted) else counted
    weight = weight[some]
    knots: list[tuple[float, ...]] = []
    middles = np.empty(X.shape[1])
    for j in range(X.shape[1]):  # one sorted column at a time
        column = Ordered.of(X[some, j].astype(float, copy=False), weight)
        knots.append(knots_of(column, n_knots))
        middles[j] = column.quantile(0.5)
    if not any(knots):
        return None
    called = [f"x{j}" for j in range(X.shape[1])] if names is None else names
    plain = Coding.of_numbers(called, middles, names is not None)
    return CodedRows(X, plain).with_knots(knots, held=len(X) <= ROWS.row_sums)


def _as_numbers(column: pd.Series) -> pd.Series:
    """Return a column of numeric texts as floats (parsed once), any other column unchanged."""
    numbers = plain_numbers(column)
    return column if numbers is None else pd.Series(numbers, column.index, name=column.name)


def _is_plain(column: pd.Series) -> bool:
    """Whether a column is numeric and has no missing values."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return kind_of(column) == NUMBER and not column.isna().any()
    return kind_of(column) == NUMBER and not np.any(distinct(column)[0] < 0)


def _with_shares(
    coding: Coding,
    cells: list[Cells],
    labels: NDArray[np.int64],
    classes: NDArray[Any],
    weight: FloatArray,
) -> CodedRows:
    """Return the coded rows; learn the class shares of categories of many levels.

    Training rows get out-of-fold shares, rows of weight zero the shares of all training rows.
    """
    folds = None
    variables, blocks, shared = list(coding.variables), [], []
    shown_classes = (1,) if len(classes) == 2 else tuple(range(len(classes)))
    counted = weight > 0
    for i, (variable, read) in enumerate(zip(variables, cells, strict=True)):
        if not needs_shares(variable):
            blocks.append(variable.coded(read))
            continue
        if folds is None:
            folds = fold_of_rows(np.column_stack([part.numbers for part in cells]))
        variable = replace(variable, classes=tuple(str(classes[k]) for k in shown_classes))
        first = sum(block.shape[1] for block in blocks)
        one = Shared.of(read.numbers, folds, first, variable)
        variables[i] = replace(
            variable,
            shares=tuple(tuple(map(float, line)) for line in one.table(labels, weight)),
        )
        block = variables[i].coded(read)
        block[counted, : len(shown_classes)] = one.held_out(labels, weight)[counted]
        blocks.append(block)
        shared.append(one)
    made = replace(coding, variables=tuple(variables))
    X = np.ascontiguousarray(np.hstack(blocks))
    return CodedRows(X, made, tuple(cells), tuple(shared))


def _hints(feature_types: Mapping[Any, str] | None, names: Sequence[str]) -> dict[int, str]:
    """Return the checked ``feature_types`` by column position."""
    if feature_types is None:
        return {}
    if not isinstance(feature_types, Mapping):
        raise ParameterError(
            "feature_types",
            feature_types,
            f"must map columns to what they are, got {shown(feature_types)}.",
        )
    hints: dict[int, str] = {}
    for column, kind in feature_types.items():
        refuse_kind(column, kind)
        if isinstance(column, str) and column in names:
            hints[names.index(column)] = kind
        elif isinstance(column, int | np.integer) and 0 <= column < len(names):
            hints[int(column)] = kind
    unknown = [c for c in feature_types if not (isinstance(c, int | np.integer) or c in names)]
    unknown += [
        c for c in feature_types if isinstance(c, int | np.integer) and not 0 <= c < len(names)
    ]
    if unknown:
        close = nearest(unknown[0], names)
        hint = f"did you mean {close}?" if close else "name columns of X."
        listed = listed_columns([shown(c, 40) for c in unknown])
        raise ParameterError(
            "feature_types",
            feature_types,
            f"names {listed}, which is not a column of X; {hint}",
            ("of X",),
        )
    return hints


def refuse_kind(column: Any, kind: Any, said_by: str = "feature_types") -> None:
    """Raise ``ValueError`` if ``kind``, which the argument ``said_by`` gives, is none."""
    if Hint.of(kind) is None:
        raise ParameterError(
            said_by,
            kind,
            f"says that column {shown(column)} is {shown(kind)}; choose "
            f"{', '.join(HINTS[:-1])} or {HINTS[-1]}{_more(kind)}.",
        )


def _more(kind: Any) -> str:
    """Return what an order or the parts of a date look like, for a kind that begins so."""
    if isinstance(kind, str) and kind in PARTS:
        return f"; a part of a date is named as in '{DATE}: {kind}'"
    if isinstance(kind, str) and kind.startswith(DATE):
        return f", with parts as in 'date: hour, month' ({', '.join(PARTS)}, since a column)"
    if isinstance(kind, str) and kind.startswith(ORDERED):
        return ", with levels as in 'ordered: low < mid < high'"
    return ""


def column_groups(
    coding: Coding | None, names: Sequence[str], given: Any
) -> NDArray[np.intp] | None:
    """Return the group number of each column of a problem, or None if all groups are singletons.

    Parameters
    ----------
    coding : Coding or None
        None if the columns of the problem are those of the table.
    names : sequence of str
        Columns of the table.
    given : sequence of sequences of names or positions, False, or None
        Columns of the table that are selected together. False: no groups, not even for the columns
        of one variable.
    """
    if given is False:
        return None
    homes = np.arange(len(names))
    for number, group in enumerate(_checked(given, names)):
        homes[group] = len(names) + number
    if coding is not None:
        homes = homes[np.array(coding.places, dtype=np.intp)[coding.homes]]
    _, groups = np.unique(homes, return_inverse=True)
    return None if len(np.unique(groups)) == len(groups) else groups


def _checked(given: Any, names: Sequence[str]) -> list[list[int]]:
    """Return the groups as positions of columns; raise ``ValueError`` for unknown columns."""
    if given is None:
        return []
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence | np.ndarray):
        raise ParameterError("groups", given, f"must list groups of columns, got {shown(given)}.")
    places = {name: j for j, name in enumerate(names)}
    found: list[list[int]] = []
    unknown: list[Any] = []
    for group in given:
        if isinstance(group, str) or not isinstance(group, Sequence | np.ndarray):
            raise ParameterError(
                "groups", group, f"must hold lists of columns, got {shown(group)}."
            )
        known = [(column, _place(column, places)) for column in group]
        unknown += [column for column, place in known if place is None]
        found.append([place for _, place in known if place is not None])
    if unknown:
        listed = listed_columns([shown(column, 20) for column in unknown])
        close = nearest(unknown[0], names) if isinstance(unknown[0], str) else None
        hint = f"did you mean {close}?" if close else "name columns of X."
        raise ParameterError(
            "groups", unknown, f"names {listed}, which is not a column of X; {hint}", ("of X",)
        )
    every = [place for group in found for place in group]
    twice = next((place for i, place in enumerate(every) if place in every[:i]), None)
    if twice is not None:
        raise ParameterError(
            "groups", given, f"names column {shown(names[twice])} twice; name it once."
        )
    return found


def _place(column: Any, places: Mapping[str, int]) -> int | None:
    if isinstance(column, str):
        return places.get(column)
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        return int(column) if 0 <= column < len(places) else None
    return None
