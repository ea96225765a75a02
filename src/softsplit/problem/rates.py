"""Constraints on expected rates: how often a tree says a class on some rows.

With row weights v_i, leaf probabilities P_il and class probabilities c_kl of the leaves,

    rate of class k on the rows S      r_k(S) = sum_{i in S} v_i sum_l P_il c_kl / sum_{i in S} v_i

A requirement bounds one rate, low <= r_k(S) <= high, or the difference of any two of several,
|r_k(S) - r_k(S')| <= high. A minimum rate of a class is the first (S: the rows of that class), and
so is any ``RateConstraint``; a fairness bound is the second (S, S': the groups of a column).

Rows fall into *cells* g, such that each S is a union of cells, and the rows of a cell are of one
class. With M_gl the weight of cell g that reaches leaf l, all rates are linear in

    J_gk = sum_l M_gl c_kl                                 weight of cell g that is said to be k
    sum_gk B_qgk J_gk >= b_q                               one line q for each side of a bound

An engine with cells in the place of classes gives M, and the derivative by the splits of
sum_q m_q sum_gk B_qgk J_gk is that of its sums with the table W = P c, P_gk = sum_q m_q B_qgk; the
derivative by c is P' M.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import RowEngine, SomeColumns, Sums, with_columns
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import IDENTITY
from softsplit.engines.samples import Samples
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters


class RateGroup(NamedTuple):
    """Rows of a requirement: a name, and the cells that they are."""

    name: str
    cells: tuple[int, ...]


@dataclass(frozen=True)
class RateRequirement:
    """Bounds of the rates of a class on groups of rows.

    Attributes
    ----------
    name : str
        For the user, such as "parity of sex".
    of : int
        Position of the class.
    groups : tuple of RateGroup
    low, high : float
        Bounds of the rate of a single group. Of several groups ``high`` bounds the difference of
        any two rates, and ``low`` is not used.
    margin : float
        By how much training tightens the bounds, so that decisions meet them too.
    """

    name: str
    of: int
    groups: tuple[RateGroup, ...]
    low: float = -np.inf
    high: float = np.inf
    margin: float = 0.0

    @property
    def compares(self) -> bool:
        """Whether the rates of several groups are compared."""
        return len(self.groups) > 1

    def among(self, cells: Sequence[int]) -> RateRequirement | None:
        """Return the requirement for rows of ``cells`` only, numbered anew.

        None if nothing is left to require: no row of the group, or fewer than two groups.
        """
        at = {cell: n for n, cell in enumerate(cells)}
        groups = [
            RateGroup(name, tuple(at[cell] for cell in own if cell in at))
            for name, own in self.groups
        ]
        held = tuple(group for group in groups if group.cells)
        if not held or (self.compares and len(held) < 2):
            return None
        return replace(self, groups=held)


def minimum_rate(k: np.intp | int, labels: NDArray[np.intp], low: float) -> RateRequirement:
    """The minimum rate of class ``k``, as a requirement on cells of these classes."""
    cells = tuple(np.flatnonzero(labels == k).tolist())
    return RateRequirement("min_class_rate", int(k), (RateGroup("", cells),), low)


class RateLine(NamedTuple):
    """One linear constraint of a requirement: ``signs`` . rates of all groups >= ``least``."""

    signs: FloatArray
    least: float
    requirement: int


@dataclass(frozen=True)
class RateLimits:
    """The requirements on the rates of one training problem.

    Attributes
    ----------
    rows : RowEngine
        The training rows, with their cells in the place of classes.
    labels : array of int, shape (n_cells,)
        Class of the rows of each cell.
    requirements : tuple of RateRequirement
    n_groups : int
    """

    rows: RowEngine
    labels: NDArray[np.intp]
    requirements: tuple[RateRequirement, ...]
    n_groups: int

    @cached_property
    def _groups(self) -> list[tuple[int, int]]:
        """All (requirement, group)."""
        return [
            (n, g)
            for n, required in enumerate(self.requirements)
            for g in range(len(required.groups))
        ]

    @cached_property
    def of_groups(self) -> FloatArray:
        """Coefficients of J in the rate of each group, (n_rate_groups, n_cells, n_groups)."""
        totals = self.rows.group_totals
        shares = np.zeros((len(self._groups), len(totals), self.n_groups))
        for share, (n, g) in zip(shares, self._groups, strict=True):
            required = self.requirements[n]
            cells = list(required.groups[g].cells)
            share[cells, required.of] = 1.0 / totals[cells].sum()
        return shares

    @cached_property
    def _lines(self) -> list[RateLine]:
        lines: list[RateLine] = []
        for number, required in enumerate(self.requirements):
            own = [at for at, (n, _) in enumerate(self._groups) if n == number]
            signs = np.eye(len(self._groups))[own]
            # Of several groups every ordered pair: rate_a - rate_b >= margin - high.
            if required.compares:
                pairs = [(a, b) for a in signs for b in signs if not np.array_equal(a, b)]
                lines += [
                    RateLine(a - b, required.margin - required.high, number) for a, b in pairs
                ]
                continue
            if np.isfinite(required.low):
                lines.append(RateLine(signs[0], required.low + required.margin, number))
            if np.isfinite(required.high):
                lines.append(RateLine(-signs[0], required.margin - required.high, number))
        return lines

    @cached_property
    def signs(self) -> FloatArray:
        """Factors of the rates of the groups in each line, (n_lines, n_rate_groups)."""
        return np.array([line.signs for line in self._lines]).reshape(-1, len(self._groups))

    def with_minimum(self, minimum: FloatArray) -> RateLimits:
        """Return the limits with the minimum rates of the classes, (n_groups,), among them."""
        own = tuple(
            minimum_rate(k, self.labels, float(minimum[k])) for k in np.flatnonzero(minimum)
        )
        return replace(self, requirements=(*self.requirements, *own))

    def tightened(self, part: float, most: float) -> RateLimits:
        """Return the limits with differences bounded by 1 - ``part`` of their bounds.

        Bounds of single rates move by ``part`` of ``most``, and no further than to their middle.
        """
        tighter = []
        for required in self.requirements:
            room = (
                required.high
                if required.compares
                else min(most, 0.5 * (required.high - required.low))
            )
            room = room if required.compares else min(room, 1.0 - required.low, required.high)
            tighter.append(replace(required, margin=part * room))
        return replace(self, requirements=tuple(tighter))

    def with_margin(self, margin: float) -> RateLimits:
        """Return the limits with bounds that are tighter by ``margin``."""
        return replace(
            self,
            requirements=tuple(replace(required, margin=margin) for required in self.requirements),
        )

    @property
    def asked(self) -> RateLimits:
        """The limits without margins."""
        return self.with_margin(0.0)

    @cached_property
    def grains(self) -> FloatArray:
        """The share of one row in the smallest group of each requirement, (n_requirements,): rates
        of decisions have such steps."""
        totals = self.rows.group_totals
        smallest = [
            min(totals[list(group.cells)].sum() for group in required.groups)
            for required in self.requirements
        ]
        return self.rows.mean_weight / np.array(smallest, dtype=float)

    @cached_property
    def line_grains(self) -> FloatArray:
        """The same for each line, (n_lines,)."""
        return self.grains[[line.requirement for line in self._lines]]

    @cached_property
    def coefficients(self) -> FloatArray:
        """B, shape (n_lines, n_cells, n_groups)."""
        return np.tensordot(self.signs, self.of_groups, axes=1)

    @cached_property
    def least(self) -> FloatArray:
        """b, shape (n_lines,)."""
        return np.array([line.least for line in self._lines], dtype=float)

    @cached_property
    def room(self) -> FloatArray:
        """Half of what lies between each line and the opposite one, (n_lines,); inf if none."""
        room = np.full(len(self), np.inf)
        for q, signs in enumerate(self.signs):
            for other in np.flatnonzero(np.all(self.signs == -signs, axis=1)):
                room[q] = min(room[q], max(0.0, -0.5 * (self.least[q] + self.least[other])))
        return room

    def __len__(self) -> int:
        """Number of linear constraints."""
        return len(self._lines)

    def with_columns(self, columns: NDArray[np.intp]) -> tuple[SomeColumns, NDArray[np.intp]]:
        """The rows with at least ``columns``, and the positions of these, as ``with_columns``."""
        if not isinstance(self.rows, CompiledRows) or len(columns) in (0, self.rows.n_features):
            return with_columns(self.rows, columns)
        cells = self.rows.samples
        samples = replace(cells, features=np.ascontiguousarray(cells.features[columns]))
        return CompiledRows(samples), np.arange(len(columns))

    def on_sample(self, limit: int) -> tuple[Samples, RateLimits]:
        """Return about ``limit`` rows by class, stratified by cells, and the limits on these.

        Cells are in the order of their classes, so that the rows of a class are adjacent.
        """
        few = self.rows.sample(limit).with_totals(self.rows.group_totals)
        first = np.searchsorted(self.labels, np.arange(self.n_groups + 1))
        totals = np.add.reduceat(few.group_totals, first[:-1])
        by_group = replace(few, starts=few.starts[first], group_totals=totals)
        return by_group, replace(self, rows=CompiledRows(few))

    def on_leaves(self, mass: FloatArray) -> FloatArray:
        """Coefficients of the lines in c_kl at M = ``mass``, (n_lines, n_groups, n_leaves)."""
        return np.einsum("qgk,gl->qkl", self.coefficients, mass)

    def requirement_of(self, line: int) -> RateRequirement:
        """The requirement that a linear constraint belongs to."""
        return self.requirements[self._lines[line].requirement]

    def mass(self, parameters: TreeParameters, steepness: float) -> FloatArray:
        """M: weight of each cell that reaches each leaf, (n_cells, n_leaves)."""
        table = np.zeros((len(self.labels), parameters.leaf_values.shape[1]))
        return self.rows.evaluate(parameters.splits, table, IDENTITY, steepness).mass

    def shortfalls(self, said: FloatArray) -> FloatArray:
        """b less what J = ``said`` (n_cells, n_groups) gives, (n_lines,): positive if violated."""
        lines = self.coefficients.reshape(len(self), -1)
        return self.least - lines @ said.ravel()

    def prices(self, multipliers: FloatArray) -> FloatArray:
        """P: what a unit of J_gk is worth at these multipliers, (n_cells, n_groups)."""
        return np.tensordot(multipliers, self.coefficients, axes=1)

    def priced(
        self, parameters: TreeParameters, steepness: float, multipliers: FloatArray
    ) -> tuple[Sums, FloatArray]:
        """Sums of sum_q multiplier_q sum_gk B_qgk J_gk, and its derivative by the leaves."""
        prices = self.prices(multipliers)
        table = prices @ parameters.leaf_values
        sums = self.rows.evaluate(parameters.splits, table, IDENTITY, steepness)
        return sums, prices.T @ sums.mass

    def group_rates(self, number: int, said: FloatArray) -> FloatArray:
        """Rates of the groups of requirement ``number`` at J = ``said``, (n_rate_groups,)."""
        required, totals = self.requirements[number], self.rows.group_totals
        cells = [list(group.cells) for group in required.groups]
        return np.array([said[own, required.of].sum() / totals[own].sum() for own in cells])

    def per_requirement(self, multipliers: FloatArray) -> FloatArray:
        """Sum of the multipliers of each requirement: the loss per unit of its bound."""
        totals = np.zeros(len(self.requirements))
        np.add.at(totals, [line.requirement for line in self._lines], multipliers)
        return totals
