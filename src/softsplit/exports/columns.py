"""The columns of a table as the exported program reads and codes them.

This is the one place that knows ``Variable``. Levels and truth values are finite: their coded
columns are tabulated by ``Variable.coded`` itself. Numbers and dates are coded by formulas, whose
hinges are recognised by what ``hinges`` makes of values on both sides of a knot.
"""

from __future__ import annotations

import numpy as np

from softsplit.exports.expressions import Column, Expression, Name, Op, if_, looked_up, minus
from softsplit.support.messages import shown
from softsplit.variables import Cells, Variable
from softsplit.variables.curves import hinges
from softsplit.variables.variable import BOOLEAN, DATE, NUMBER


def column_of(variable: Variable, place: int) -> Column:
    """The column of a variable."""
    if variable.levels:
        return Column(place, variable.name, "text", variable.levels)
    if variable.kind == BOOLEAN:
        return Column(place, variable.name, "truth")
    if variable.kind == NUMBER:
        return Column(place, variable.name, "number")
    if variable.kind == DATE:
        return Column(place, variable.name, "day", form=variable.form)
    raise _unknown(variable)


def coded(variable: Variable, cell: Name) -> list[Expression]:
    """The coded columns of a variable, in their order, from its cell."""
    if variable.levels or variable.kind == BOOLEAN:
        found = _tabulated(variable, cell)
    else:
        gap = Op("missing", (cell,))
        value = if_(gap, float(variable.middle), minus(cell, float(variable.origin)))
        found = [value, *(_hinge(variable, n, cell) for n in range(variable.n_hinges))]
        found += [if_(gap, 1.0, 0.0)] * variable.gaps
    if len(found) != variable.n_columns:
        raise _unknown(variable)
    return found


def _tabulated(variable: Variable, cell: Name) -> list[Expression]:
    """Columns of a variable of finitely many values: missing, unlisted, and its levels."""
    count = len(variable.levels) or 2
    numbers = np.concatenate([[np.nan, np.nan], np.arange(count, dtype=float)])
    place = np.arange(count + 2)
    table = variable.coded(Cells(numbers, place == 0, place == 1))
    return [looked_up(cell, column) for column in table.T.tolist()]


def _hinge(variable: Variable, n: int, cell: Name) -> Expression:
    """A hinge of a number, from its cell; that of a missing value is a number."""
    knot = float(variable.knots[n % len(variable.knots)])
    step = 2.0 * max(1.0, abs(knot))
    ends = np.array([knot - step, knot + step])
    below, above = hinges(ends, variable.knots)[:, n].tolist()
    at_gap = float(hinges(np.array([variable.middle]), variable.knots)[0, n])
    past = minus(cell, knot)
    if (below, above) == (0.0, ends[1] - knot):
        made: Expression = Op("max", (past, 0.0))
    elif (below, above) == (ends[0], knot):
        made = Op("min", (cell, knot))
    elif (below, above) == (knot - ends[0], 0.0):
        made = Op("max", (minus(knot, cell), 0.0))
    else:
        raise _unknown(variable)
    return if_(Op("missing", (cell,)), at_gap, made)


def _unknown(variable: Variable) -> ValueError:
    return ValueError(
        f"column {shown(variable.name)} ({variable.kind}) is coded in a way that exports do not "
        "know; use save_model or export_onnx instead."
    )
