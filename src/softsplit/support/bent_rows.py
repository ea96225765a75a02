"""Compiled passes over rows that bend: their hinges are computed on the way, and never held.

Cell j of a row of ``values`` (n_rows, n_values) is

    x_j = max(v - shift_j, floor_j),     v the value at homes_j

in the precision of the values: a hinge has its knot as shift and the floor 0, a value itself the
shift 0 and the floor -infinity (``Recipe``). Arrays of columns that do not bend are read likewise.

A hash of a row, with 64 bits and the constants of SplitMix64, is

    h = seed,  then for each cell:  h = (h xor bits of the cell) * factor,  h = h xor (h >> 29)

and the rows of the smallest hashes are a sample that does not depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled, compiled_plainly
from softsplit.support.hinged_table import HingedTable
from softsplit.support.parallel import in_threads, n_threads

AT_ONCE = 65_536
"""Rows that a thread takes at a time."""


class Recipe(NamedTuple):
    """How columns are made of values; arrays of shape (n_columns,)."""

    homes: NDArray[np.intp]
    shifts: FloatArray  # in the precision of the values, like the floors
    floors: FloatArray

    @classmethod
    def of(cls, homes: NDArray[np.intp], knots: FloatArray, kind: Any) -> Recipe:
        """The recipe of columns with these knots, -infinity for values themselves."""
        bent = knots > -np.inf
        shifts, floors = np.where(bent, knots, 0.0), np.where(bent, 0.0, -np.inf)
        return cls(np.asarray(homes, dtype=np.intp), shifts.astype(kind), floors.astype(kind))


def read(X: NDArray[Any] | HingedTable) -> tuple[FloatArray, Recipe]:
    """Return the values of rows and the recipe of their columns."""
    if isinstance(X, HingedTable):
        return fixed(X.values), Recipe.of(X.homes, X.knots, X.dtype)
    none = np.full(X.shape[1], -np.inf)
    return fixed(X), Recipe.of(np.arange(X.shape[1]), none, X.dtype)


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: numba would compile for writeable and read-only arrays each."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def by_pieces(n_rows: int, work: Callable[[slice], None]) -> None:
    """Call ``work`` with all rows, some at a time, in threads where they are many."""
    pieces = [slice(low, min(low + AT_ONCE, n_rows)) for low in range(0, n_rows, AT_ONCE)]
    in_threads(work, pieces, n_threads(None, n_rows) if len(pieces) > 1 else 1, lambda: None)


def hashes(X: NDArray[Any] | HingedTable) -> NDArray[np.uint64]:
    """Return the hash of each row."""
    values, recipe = read(X)
    made = np.empty(len(values), dtype=np.uint64)
    by_pieces(len(values), lambda some: row_hashes(values[some], *recipe, made[some]))
    return made


def sampled_rows(X: FloatArray, counted: NDArray[np.bool_], limit: int) -> Any:
    """Return an index of about ``limit`` distinct rows of those that are ``counted``, or of all.

    Copies of a row are taken together.
    """
    if np.count_nonzero(counted) <= limit:
        return slice(None) if np.all(counted) else counted
    found = hashes(X)
    kept, size = found[counted], limit
    while True:  # until so many are distinct
        smallest = kept if size >= len(kept) else np.partition(kept, size)[:size]
        smallest = np.unique(smallest)
        if len(smallest) >= limit or size >= len(kept):
            break
        size *= 4
    return counted & (found <= smallest[min(limit, len(smallest)) - 1])


def exact_means(
    X: FloatArray | HingedTable,
    frame: tuple[FloatArray, FloatArray],
    centre: FloatArray,
    weight: FloatArray,
    unit: float,
    total: float,
    *,
    squared: bool,
) -> FloatArray:
    """Return the weighted mean of ((x - low) / span - centre), or of its square, for each column.

    Terms are rounded to multiples of 1 / unit, so that sums are exact in any order; ``frame`` holds
    low and span.
    """
    values, recipe = read(X)
    weight, whole = fixed(weight), bool(np.all(weight == np.rint(weight)))
    sums = np.zeros((-(-len(values) // AT_ONCE), len(recipe.homes)))

    def add(some: slice) -> None:
        exact_sums(
            values[some], *recipe, *frame, centre, unit, squared, weight[some], whole,
            sums[some.start // AT_ONCE],
        )  # fmt: skip

    by_pieces(len(values), add)
    return np.asarray(sums.sum(axis=0) / (unit * total))


@compiled
def row_hashes(values, homes, shifts, floors, made):  # type: ignore[no-untyped-def]
    """Write the hash of each row."""
    cell = np.empty(1)
    bits = cell.view(np.uint64)
    for i in range(len(values)):
        state = np.uint64(0x9E3779B97F4A7C15)
        for j in range(len(homes)):
            cell[0] = max(values[i, homes[j]] - shifts[j], floors[j])
            if bits[0] == np.uint64(0x8000000000000000):
                bits[0] = np.uint64(0)  # -0.0 and 0.0 are the same number
            state = (state ^ bits[0]) * np.uint64(0xBF58476D1CE4E5B9)
            state ^= state >> np.uint64(29)
        made[i] = state


@compiled_plainly
def exact_sums(  # type: ignore[no-untyped-def]
    values, homes, shifts, floors, low, span, centre, unit, squared, weight, whole, sums
):
    """Add the rounded terms of ``exact_means``."""
    for i in range(len(values)):
        for j in range(len(homes)):
            x = np.float64(max(values[i, homes[j]] - shifts[j], floors[j]))
            term = (x - low[j]) / span[j] - centre[j]
            if squared:
                term = term * term
            if whole:
                sums[j] += weight[i] * np.rint(unit * term)
            else:
                sums[j] += np.rint(weight[i] * (unit * term))


@compiled_plainly
def make_line(column, rows, shift, floor, low, span, line):  # type: ignore[no-untyped-def]
    """Write (x - low) / span of chosen ``rows`` of one column."""
    for i in range(len(rows)):
        x = np.float64(max(column[rows[i]] - shift, floor))
        line[i] = (x - low) / span + 0.0  # -0.0 becomes 0.0
