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
from softsplit.support.bent_rows import sampled_rows
from softsplit.support.hinged_table import HingedTable
from softsplit.support.row_budgets import ROWS
from softsplit.variables.columns import Columns, missing_columns
from softsplit.variables.contents import as_table, columns_at, names_of
from softsplit.variables.curves import hinges, learn_knots
from softsplit.variables.dates import part_name
from softsplit.variables.lookup import Lookup
from softsplit.variables.shares import Shared, fold_of_rows
from softsplit.variables.variable import NUMBER, Cells, DayReader, Variable


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
        """Return training rows whose numbers bend at ``n_knots`` knots, learned from these rows.

        Many rows are sampled for it.
        """
        some = sampled_rows(self.X, weight > 0, ROWS.knots)
        coding, few, weight = self.coding, self.X[some], weight[some]
        knots: list[tuple[float, ...]] = []
        for i, variable in enumerate(coding.variables):
            columns = coding.columns_of(i)
            if variable.kind != NUMBER:
                knots.append(())
                continue
            known = few[:, columns[-1]] == 0 if variable.has_missing else slice(None)
            knots.append(learn_knots(few[known, columns[0]], weight[known], n_knots))
        return self.with_knots(knots, held=False)

    def with_knots(self, knots: Sequence[tuple[float, ...]], *, held: bool = True) -> CodedRows:
        """Return the rows with other knots for each variable; all else is as it was.

        Where hinges need not be ``held``, X of large tables is a ``HingedTable``.
        """
        # 1. The values alone, without the hinges that they had.
        old = self.coding
        if all(v.knots == tuple(k) for v, k in zip(old.variables, knots, strict=True)):
            return self
        coding = old.with_knots(knots)
        values = self.X[:, ~old.hinges] if np.any(old.hinges) else self.X
        # 2. New hinges, held or computed where they are read.
        X: Any = coding.hinged(values)
        held = held or ROWS.holds_hinges(len(self.X), len(coding.column_names))
        if held or not coding.bends:
            X = np.empty((len(self.X), len(coding.column_names)), dtype=self.X.dtype)
            X[:, ~coding.hinges] = values
            coding.fill_hinges(X)
        # 3. Class shares have moved with the columns before them.
        places = np.flatnonzero(~coding.hinges)[np.cumsum(~old.hinges) - 1]
        shared = tuple(replace(one, first=int(places[one.first])) for one in self.shared)
        return CodedRows(X, coding, self.cells, shared, self.apart)

    def coded_as(self, coding: Coding | None) -> CodedRows:
        """Return the rows with the knots or look-ups of another coding of the same variables.

        None: those of training, without either.
        """
        old = self.coding
        coding = old.with_lookups({}) if coding is None else coding
        names = [variable.name for variable in old.variables]
        if coding is old or names != [variable.name for variable in coding.variables]:
            return self
        if coding.pointed or old.pointed or coding.kinds != old.kinds:
            X = coding.recoded(self.X, old, self.cells)
            shared = coding.shared_levels(self.cells) if self.shared and not coding.pointed else ()
            return CodedRows(X, coding, self.cells, shared, self.apart)
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
        variables = tuple(
            Variable(names[j], NUMBER, float(m)) for j, m in zip(chosen, middles, strict=True)
        )
        return cls(tuple(names), variables, tuple(chosen), (), named)

    @property
    def plain(self) -> bool:
        """Whether the coding is the identity on all columns of the table."""
        return self.of_matrices and not self.bends and not self.pointed

    @cached_property
    def of_matrices(self) -> bool:
        """Whether the table is a matrix of numbers: none has an indicator, or is left out."""
        simple = all(v.kind == NUMBER and not v.has_missing for v in self.variables)
        return simple and not self.left_out and len(self.variables) == len(self.names)

    @cached_property
    def bends(self) -> bool:
        """Whether some number has knots."""
        return any(variable.n_hinges for variable in self.variables)

    @property
    def kinds(self) -> list[str]:
        """The kind of each variable."""
        return [variable.kind for variable in self.variables]

    @cached_property
    def pointed(self) -> bool:
        """Whether some columns are look-ups."""
        return any(variable.lookups for variable in self.variables)

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

    def with_lookups(self, lookups: Mapping[int, Sequence[Lookup]]) -> Coding:
        """Return the coding in whole points: the columns of some variables are their look-ups."""
        variables = [
            replace(variable, lookups=tuple(lookups.get(i, ())), knots=())
            for i, variable in enumerate(self.variables)
        ]
        return replace(self, variables=tuple(variables))

    def recoded(self, X: Any, trained: Coding, cells: Sequence[Cells] = ()) -> FloatArray:
        """Return rows that ``trained`` coded in the columns of this coding.

        Both are codings of the same variables; ``cells`` are those of the rows, which are needed
        where ``trained`` has look-ups. In points columns that are no look-ups are zero.
        """
        coded: FloatArray = np.zeros((len(self.homes), len(X))).T
        for i, variable in enumerate(self.variables):
            if self.pointed and not variable.lookups:
                continue
            old = np.zeros(0) if cells else np.asarray(X[:, trained.columns_of(i)])
            own = cells[i] if cells else trained.variables[i].decoded(old)
            if variable.kind != trained.variables[i].kind:  # numbers that are taken as levels
                own = variable.cells_of_numbers(own)
            coded[:, self.columns_of(i)] = variable.coded(own)
        return coded

    def lookup_at(self, column: int) -> Lookup | None:
        """Return the look-up that a column is, None for other columns."""
        home = int(self.homes[column])
        lookups = self.variables[home].lookups
        return lookups[column - self.firsts[home]] if lookups else None

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
            if variable.n_hinges:
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
        coded: FloatArray = np.zeros((len(self.homes), len(X))).T
        for i in sorted(set(self.homes[used].tolist())):
            knots, first = self.variables[i].knots, self.firsts[i]
            if self.variables[i].lookups:
                numbers = np.asarray(X[:, self.places[i]], dtype=float)
                for j, lookup in enumerate(self.variables[i].lookups, first):
                    if used[j]:
                        coded[:, j] = lookup.values(numbers)
                continue
            values = coded[:, first]
            values[:] = X[:, self.places[i]]
            for n, knot in enumerate(knots, first + 1):
                if used[n]:
                    np.maximum(np.subtract(values, knot, out=coded[:, n]), 0.0, out=coded[:, n])
        none = np.zeros(len(X), dtype=bool)
        cells = tuple(Cells(X[:, place], none, none) for place in self.places)  # no copies
        return CodedRows(coded, self, cells)

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
        # 1. The columns of the table that are needed; absent ones are named at once.
        table = as_table(X)
        columns = self._columns(table, places)
        # 2. Their cells; a column of dates is read once for all its parts.
        days = DayReader()
        calls = {
            i: (
                self.variables[i].cells,
                (columns[self.places[i]], columns.get(others.get(i)), days),
            )
            for i in wanted
        }
        cells_by_variable = call_for_each(calls)
        missing = Cells.of(np.full(int(table.shape[0]), np.nan))
        cells = [cells_by_variable.get(i, missing) for i in range(len(self.variables))]
        # 3. Their columns in the problem; variables that are not needed have no value.
        coded = np.empty((int(table.shape[0]), len(self.homes)))
        if len(cells_by_variable) < len(cells):
            coded[:] = self._blank
        for i, read in cells_by_variable.items():
            block = self.variables[i].coded(read)
            coded[:, self.firsts[i] : self.firsts[i] + block.shape[1]] = block
        shared = self.shared_levels(cells) if needed is None else ()
        return CodedRows(coded, self, tuple(cells), shared)

    @cached_property
    def _blank(self) -> FloatArray:
        """The coded columns of a row without any value, (n_columns,)."""
        none = Cells.of(np.full(1, np.nan))
        return np.hstack([variable.coded(none) for variable in self.variables])[0]

    def shared_levels(self, cells: Sequence[Cells]) -> tuple[Shared, ...]:
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

    def _columns(self, table: Any, places: Sequence[int]) -> dict[int | None, pd.Series]:
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
            advice = "give a table with the columns that the tree was trained on."
            raise ValueError(missing_columns(absent, names, advice))
        columns = columns_at(table, [at[self.names[j]] for j in places], names)
        return {j: columns[at[self.names[j]]] for j in places}


def call_for_each(
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
    sentences = [str(error).rstrip(".") for error in errors]
    if len(sentences) > most_errors:
        sentences[most_errors:] = [f"and {len(sentences) - most_errors} columns more"]
    if sentences:
        raise ValueError("; ".join(sentences) + ".")
    return results


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
    for number, group in enumerate(() if given is None else Columns(names).groups(given)):
        homes[group] = len(names) + number
    if coding is not None:
        homes = homes[np.array(coding.places, dtype=np.intp)[coding.homes]]
    _, groups = np.unique(homes, return_inverse=True)
    return None if len(np.unique(groups)) == len(groups) else groups
