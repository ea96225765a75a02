"""A table as columns of a training problem: learned once, then the same for every table.

learn(X, labels, ...) -> CodedRows      the training table, with the coding it has led to
coding.code(X)        -> CodedRows      any other table

``column_groups`` gives the columns that are selected together: those of a variable, and the user's
groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, warn_user
from softsplit.variables.contents import distinct, n_rows_of, plain_numbers, table_columns
from softsplit.variables.kinds import DROP, HINTS, KEEP, kind_of, learn_variable, needs_shares
from softsplit.variables.shares import Shared, fold_of_rows
from softsplit.variables.variable import NUMBER, Cells, Variable

LISTED = 8
"""Columns that a sentence names."""
MOST_PROBLEMS = 3
"""Columns of which a sentence says what is wrong with them."""


class ColumnsLeftOut(UserWarning):
    """Columns of a table that no tree can use, named with the reasons.

    Attributes
    ----------
    columns : tuple of (str, str)
        Names and reasons.
    """

    def __init__(self, columns: Sequence[tuple[str, str]], advice: str = "") -> None:
        super().__init__(columns, advice)
        self.columns = tuple(columns)
        self.advice = (
            advice or f"name its kind, such as feature_types={{{columns[0][0]!r}: 'keep'}}"
        )

    def advising(self, advice: str) -> str:
        """The sentence with other advice."""
        which = "column" if len(self.columns) == 1 else "columns"
        verb = "is" if len(self.columns) == 1 else "are"
        told = told_columns([f"{shown(name, 20)} ({why})" for name, why in self.columns])
        one = "it" if len(self.columns) == 1 else "one"
        return f"{which} {told} {verb} left out; to use {one} all the same, {advice}."

    def __str__(self) -> str:
        return self.advising(self.advice)


def told_columns(named: Sequence[str]) -> str:
    """As many as a reader takes in."""
    more = len(named) - LISTED
    return ", ".join(named[:LISTED]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class CodedRows:
    """Rows of a table as a training problem has them.

    Attributes
    ----------
    X : array of shape (n_rows, n_columns)
    coding : Coding
    cells : tuple of Cells
        What was read for each variable.
    shared : tuple of Shared
        Of training rows: the categories that class shares stand for.
    """

    X: FloatArray
    coding: Coding
    cells: tuple[Cells, ...] = ()
    shared: tuple[Shared, ...] = ()

    def __len__(self) -> int:
        return len(self.X)

    def part(self, rows: NDArray[Any]) -> CodedRows:
        """Some of the rows."""
        return CodedRows(
            self.X[rows],
            self.coding,
            tuple(cell.part(rows) for cell in self.cells),
            tuple(one.part(rows) for one in self.shared),
        )


@dataclass(frozen=True)
class Coding:
    """Variables of a table, and how they become columns.

    Attributes
    ----------
    names : tuple of str
        The columns of the table in order; x0, x1, ... if they have no names.
    variables : tuple of Variable
    places : tuple of int
        Which column of the table each variable is.
    left_out : tuple of (str, str)
        Columns that are no variables, and why.
    named : bool
        Whether columns are found by their names, and not by their places.
    """

    names: tuple[str, ...]
    variables: tuple[Variable, ...]
    places: tuple[int, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    named: bool = True

    def __getstate__(self) -> dict[str, Any]:
        """What was worked out is left out of pickles and copies."""
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
        """The coding of a table of plain numbers without gaps: columns as they are, or some."""
        chosen = range(len(names)) if places is None else places
        found = tuple(
            Variable(names[j], NUMBER, float(m)) for j, m in zip(chosen, middles, strict=True)
        )
        return cls(tuple(names), found, tuple(chosen), (), named)

    @property
    def plain(self) -> bool:
        """Whether columns of numbers stay as they are, all of them."""
        simple = all(v.kind == NUMBER and not v.gaps for v in self.variables)
        return simple and not self.left_out and len(self.variables) == len(self.names)

    @property
    def n_candidates(self) -> int:
        """Columns of the table that a tree could use: all that were not left out.

        They are more than the variables where a wide sparse matrix has lent only some of them.
        """
        return len(self.names) - len(self.left_out)

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """What each column says."""
        return tuple(name for variable in self.variables for name in variable.column_names)

    @cached_property
    def opposites(self) -> tuple[str, ...]:
        """What holds where an indicator is 0."""
        return tuple(name for variable in self.variables for name in variable.opposites)

    @cached_property
    def indicators(self) -> NDArray[np.bool_]:
        """Of every column, whether it is 1 where something holds and else 0."""
        return np.array([flag for v in self.variables for flag in v.indicators], dtype=bool)

    @cached_property
    def homes(self) -> NDArray[np.intp]:
        """The variable of every column."""
        return np.repeat(np.arange(len(self.variables)), [v.n_columns for v in self.variables])

    def columns_of(self, variable: int) -> NDArray[np.intp]:
        """The columns of a variable."""
        return np.flatnonzero(self.homes == variable)

    def code(self, X: Any, needed: Collection[int] | None = None) -> CodedRows:
        """The rows of a table; of variables that are not ``needed`` columns may be absent."""
        wanted = range(len(self.variables)) if needed is None else sorted(needed)
        names, columns = table_columns(X, [self.places[i] for i in wanted])
        found = self._found(names, columns, wanted)
        n_rows = n_rows_of(X, columns)
        needed_cells = _each({i: (self.variables[i].cells, (found[i],)) for i in found})
        cells = [needed_cells.get(i, _nothing(n_rows)) for i in range(len(self.variables))]
        blocks = [v.coded(c) for v, c in zip(self.variables, cells, strict=True)]
        X = np.hstack(blocks) if blocks else np.zeros((n_rows, 0))
        return CodedRows(np.ascontiguousarray(X), self, tuple(cells), self._shared(cells))

    def _shared(self, cells: Sequence[Cells]) -> tuple[Shared, ...]:
        """The categories that class shares stand for, as of rows to be trained on."""
        if not any(variable.shares for variable in self.variables):
            return ()
        folds = fold_of_rows(np.column_stack([read.numbers for read in cells]))
        return tuple(
            Shared.of(read.numbers, folds, int(self.columns_of(i)[0]), variable)
            for i, (variable, read) in enumerate(zip(self.variables, cells, strict=True))
            if variable.shares
        )

    def _found(
        self, names: list[str] | None, columns: list[pd.Series], wanted: Collection[int]
    ) -> dict[int, pd.Series]:
        """The columns of the wanted variables, all that are absent named at once."""
        if names is None or not self.named:
            if len(columns) != len(self.names):
                raise ValueError(
                    f"X has {len(columns)} features, but the tree is expecting {len(self.names)} "
                    "features as input."
                )
            return {i: columns[self.places[i]].rename(self.variables[i].name) for i in wanted}
        at = {name: j for j, name in enumerate(names)}
        absent = [self.variables[i].name for i in wanted if self.variables[i].name not in at]
        if absent:
            close = get_close_matches(absent[0], names, n=1)
            hint = f"did you mean {shown(close[0])}?" if close and len(absent) == 1 else ""
            which = "column" if len(absent) == 1 else "columns"
            verb = "is" if len(absent) == 1 else "are"
            told = told_columns([shown(name, 24) for name in absent])
            hint = hint or "give a table with the columns that the tree was trained on."
            raise ValueError(f"{which} {told} {verb} not there; {hint}")
        return {i: columns[at[self.variables[i].name]] for i in wanted}


def _each(asked: Mapping[int, tuple[Callable[..., Any], tuple[Any, ...]]]) -> dict[int, Any]:
    """The answers for all columns, or all that is wrong with them in one message."""
    answers, wrong = {}, []
    for place, (ask, arguments) in asked.items():
        try:
            answers[place] = ask(*arguments)
        except ValueError as error:
            wrong.append(str(error).rstrip("."))
    if len(wrong) > MOST_PROBLEMS:
        wrong[MOST_PROBLEMS:] = [f"and {len(wrong) - MOST_PROBLEMS} columns more"]
    if wrong:
        raise ValueError("; ".join(wrong) + ".")
    return answers


def _nothing(n_rows: int) -> Cells:
    return Cells(np.full(n_rows, np.nan), np.ones(n_rows, dtype=bool), np.zeros(n_rows, dtype=bool))


def learn(
    X: Any,
    labels: NDArray[np.int64],
    classes: NDArray[Any],
    weight: FloatArray,
    feature_types: Mapping[Any, str] | None = None,
) -> CodedRows:
    """The coding of a training table, and its rows.

    Parameters
    ----------
    X : table
    labels : array of int, shape (n_rows,)
        Positions in ``classes``.
    classes : array of shape (n_classes,)
    weight : array of shape (n_rows,)
        Rows of weight zero are coded, and have no part in what is learned.
    feature_types : mapping, optional
        What columns are, by their names or places: "number", "category", "date", "keep" (as it
        is seen, and not to be left out) or "drop".
    """
    names, columns = table_columns(X)
    called = [f"x{j}" for j in range(len(columns))] if names is None else names
    hints = _hints(feature_types, called)
    columns = [
        column if hints.get(j) not in (None, KEEP, NUMBER) else _as_numbers(column)
        for j, column in enumerate(columns)
    ]
    if not hints and (names is None or all(map(_is_plain, columns))):
        # Plain numbers are taken as they are; without names nothing tells what they count.
        hints = {j: KEEP for j, column in enumerate(columns) if kind_of(column) == NUMBER}
    rows = weight / min(1.0, float(weight[weight > 0].mean()))
    named = [column.rename(name) for column, name in zip(columns, called, strict=True)]
    asked = {
        j: (learn_variable, (called[j], named[j], rows, hints.get(j)))
        for j in range(len(columns))
        if hints.get(j) != DROP
    }
    found = dict.fromkeys(range(len(columns)), DROP) | _each(asked)
    seen = [(j, v) for j, v in found.items() if isinstance(v, Variable)]
    left = [(called[j], why) for j, why in found.items() if isinstance(why, str)]
    said = [
        (called[j], why)
        for j, why in found.items()
        if isinstance(why, str) and why != DROP and hints.get(j) != KEEP
    ]
    if not seen:
        told = told_columns([f"{shown(name, 20)} ({why})" for name, why in left])
        raise ValueError(f"X has no column that a tree can use: {told}.")
    if said:
        warn_user(ColumnsLeftOut(said))
    coding = Coding(
        tuple(called),
        tuple(v for _, v in seen),
        tuple(j for j, _ in seen),
        tuple(left),
        names is not None,
    )
    cells = [v.cells(named[j]) for j, v in seen]
    return _with_shares(coding, cells, labels, classes, weight)


def _as_numbers(column: pd.Series) -> pd.Series:
    """A column of texts that are numbers as numbers: they are then looked at once."""
    numbers = plain_numbers(column)
    return column if numbers is None else pd.Series(numbers, column.index, name=column.name)


def _is_plain(column: pd.Series) -> bool:
    """Whether a column holds numbers, and no gaps."""
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
    """The coded rows; categories of many levels learn the class shares of their levels."""
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
    """What the user says of columns, by their places; all that is wrong in one sentence."""
    if feature_types is None:
        return {}
    if not isinstance(feature_types, Mapping):
        raise ValueError(
            f"feature_types must map columns to what they are, got {shown(feature_types)}."
        )
    hints: dict[int, str] = {}
    for column, kind in feature_types.items():
        if not isinstance(kind, str) or kind not in HINTS:
            raise ValueError(
                f"feature_types says that column {shown(column)} is {shown(kind)}; choose "
                f"{', '.join(HINTS[:-1])} or {HINTS[-1]}."
            )
        if isinstance(column, str) and column in names:
            hints[names.index(column)] = kind
        elif isinstance(column, int | np.integer) and 0 <= column < len(names):
            hints[int(column)] = kind
    unknown = [c for c in feature_types if not (isinstance(c, int | np.integer) or c in names)]
    unknown += [
        c for c in feature_types if isinstance(c, int | np.integer) and not 0 <= c < len(names)
    ]
    if unknown:
        close = get_close_matches(str(unknown[0]), names, n=1)
        hint = f"did you mean {shown(close[0])}?" if close else "name columns of X."
        told = told_columns([shown(c, 40) for c in unknown])
        raise ValueError(f"feature_types names {told}, which is no column of X; {hint}")
    return hints


def column_groups(
    coding: Coding | None, names: Sequence[str], given: Any
) -> NDArray[np.intp] | None:
    """The group of every column of a problem, by number; None if each is one of its own.

    Parameters
    ----------
    coding : Coding or None
        None: the columns of the table are those of the problem.
    names : sequence of str
        Columns of the table.
    given : sequence of sequences of names or positions, False, or None
        Columns of the table that are selected together. False: no column with another, not even
        those of one variable.
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
    """The groups by positions of columns; all that is wrong in one sentence."""
    if given is None:
        return []
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence | np.ndarray):
        raise ValueError(f"groups must list groups of columns, got {shown(given)}.")
    places = {name: j for j, name in enumerate(names)}
    found: list[list[int]] = []
    unknown: list[Any] = []
    for group in given:
        if isinstance(group, str) or not isinstance(group, Sequence | np.ndarray):
            raise ValueError(f"groups must hold lists of columns, got {shown(group)}.")
        known = [(column, _place(column, places)) for column in group]
        unknown += [column for column, place in known if place is None]
        found.append([place for _, place in known if place is not None])
    if unknown:
        told = told_columns([shown(column, 20) for column in unknown])
        raise ValueError(f"groups names {told}, which is no column of X; name columns of X.")
    every = [place for group in found for place in group]
    twice = next((place for i, place in enumerate(every) if place in every[:i]), None)
    if twice is not None:
        raise ValueError(f"groups names column {shown(names[twice])} twice; name it once.")
    return found


def _place(column: Any, places: Mapping[str, int]) -> int | None:
    if isinstance(column, str):
        return places.get(column)
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        return int(column) if 0 <= column < len(places) else None
    return None
