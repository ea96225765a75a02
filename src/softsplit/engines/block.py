"""The engine of a restricted problem: the fixed part of the tree is collapsed to numbers per row.

``GateCache`` holds the gates and leaf masses of a tree and updates those of branches that have
moved. ``CollapsedRows``, an engine, computes from it the quantities of block_pass.py for one block:

    factor[t]      product of the fixed gates above the free branch t
    share[leaf]    product of the fixed gates between a leaf and the next free branch above it;
                   the leaf belongs to that side of the branch

With a table ``W[group, leaf]`` the base of a side is the sum of share[leaf] W[group, leaf] over its
leaves. Rows that reach no free branch are dropped: the lower a branch, the fewer rows reach it.
Construction costs one multiplication per row for each fixed gate above or below the block; after
that no row is routed through a fixed branch again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import Sums
from softsplit.engines.block_pass import BlockRows, block_pass
from softsplit.engines.compiled import (
    NO_GATES,
    NO_ROWS,
    NOTHING,
    CompiledRows,
    InMemory,
    Passes,
    room_for_curvature,
)
from softsplit.engines.gram import Metric
from softsplit.engines.outer import IDENTITY
from softsplit.engines.samples import OfSamples, Samples
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.tree.parameters import Block, Topology, TreeParameters
from softsplit.tree.routing import gate_probabilities, leaf_probabilities, split_scores

MEMOISED = 4
"""Results of ``evaluate`` that are kept: measuring a tree asks for the same one repeatedly."""

LEAST_REACH = 1e-12
"""A row that reaches the free branches with a lower probability is dropped."""


@dataclass
class GateCache:
    """The gates and leaf masses of the current tree.

    Attributes
    ----------
    rows : CompiledRows
    steepness : float
    left, right : arrays (n_branches, n_rows)
        Gate probabilities.
    mass : array (n_groups, n_leaves)
        Weight of each group that reaches each leaf.
    """

    rows: CompiledRows
    steepness: float
    left: FloatArray
    right: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, parameters: TreeParameters, rows: CompiledRows, steepness: float) -> Self:
        samples = rows.samples
        scores = split_scores(parameters, samples.features)
        left, right = gate_probabilities(scores, steepness)
        weighted = leaf_probabilities(scores, steepness) * samples.weights
        mass = np.add.reduceat(weighted, samples.starts[:-1], axis=1).T
        return cls(rows, steepness, left, right, np.ascontiguousarray(mass))

    @property
    def topology(self) -> Topology:
        return Topology.with_branches(len(self.left))

    def renew(
        self, parameters: TreeParameters, branches: tuple[int, ...], mass: FloatArray
    ) -> None:
        """Update to a tree that differs at ``branches`` only and has the leaf masses ``mass``."""
        if branches:
            columns = list(branches)
            scores = (parameters.weights[:, columns].T / parameters.n_features) @ (
                self.rows.samples.features
            )
            scores -= parameters.thresholds[columns, None]
            self.left[columns], self.right[columns] = gate_probabilities(scores, self.steepness)
        self.mass = mass


class _Side(NamedTuple):
    """The leaves of one side of a free branch, and their shares."""

    leaves: NDArray[np.int64]  # (n_leaves_here,)
    shares: FloatArray  # (n_leaves_here, n_rows)


@compiled
def _add_up(side, table, starts, base):  # type: ignore[no-untyped-def]
    """base_i = sum_l share_li table[group(i), l]."""
    base[:] = 0.0
    for position in range(side.leaves.size):
        share = side.shares[position]
        for k in range(starts.size - 1):
            value = table[k, side.leaves[position]]
            for i in range(starts[k], starts[k + 1]):
                base[i] += value * share[i]


@compiled
def _deliver(side, arriving, starts, mass):  # type: ignore[no-untyped-def]
    """mass[k, l] = sum of share_li arriving_i over the rows i of group k."""
    for position in range(side.leaves.size):
        share = side.shares[position]
        for k in range(starts.size - 1):
            total = 0.0
            for i in range(starts[k], starts[k + 1]):
                total += share[i] * arriving[i]
            mass[k, side.leaves[position]] = total


@dataclass(frozen=True)
class CollapsedRows(OfSamples, InMemory):
    """The rows of a block, with the fixed part of the tree collapsed to numbers per row.

    Trees must agree with that of the cache outside the block; outer function and steepness must be
    those of the construction. ``n_rows``, ``group_totals`` and the like are those of all rows.

    Attributes
    ----------
    whole : CompiledRows
        All rows.
    reaching : Samples
        Those that reach a free branch.
    branches : int array (n_free,)
        The free branches in heap order.
    parents, on_left, factors
        As in ``BlockRows``.
    sides : one pair (left, right) per free branch
    fixed_mass : array (n_groups, n_leaves)
        Mass of the leaves that no free branch leads to; zero for the others.
    """

    whole: CompiledRows
    reaching: Samples
    steepness: float
    branches: NDArray[np.int64]
    parents: NDArray[np.int64]
    on_left: NDArray[np.bool_]
    factors: FloatArray
    sides: tuple[tuple[_Side, _Side], ...]
    fixed_mass: FloatArray
    _recent: dict[bytes, Sums] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, cache: GateCache, block: Block) -> CollapsedRows:
        """Return the rows of ``block`` around the tree of ``cache``."""
        topology, samples = cache.topology, cache.rows.samples
        # 1. The forest: the next free branch above each, and the gates between.
        branches = np.array(sorted(set(block.branches)), dtype=np.int64)
        place = {int(t): position for position, t in enumerate(branches)}
        parents, on_left = np.full(len(branches), -1), np.zeros(len(branches), dtype=bool)
        paths: list[list[FloatArray]] = []
        for position, t in enumerate(branches):
            gates: list[FloatArray] = []
            for step in reversed(topology.ancestors(int(t))):
                if step.branch in place:
                    parents[position], on_left[position] = place[step.branch], step.goes_left
                    break
                gates.append((cache.left if step.goes_left else cache.right)[step.branch])
            paths.append(gates)
        # 2. Rows that reach a free branch, with the product of the fixed gates above each.
        rows = _reaching(samples.n_rows, [g for g, s in zip(paths, parents, strict=True) if s < 0])
        kept = samples if rows is None else samples.part(rows)
        factors = np.empty((len(branches), kept.n_rows))
        for position, gates in enumerate(paths):
            factors[position] = _product(gates, rows, kept.n_rows)
            if parents[position] < 0:
                factors[position] *= kept.weights
        # 3. The leaves that no further free branch leads to: their shares, and the mass of the
        # leaves below no free branch at all.
        sides = tuple(
            (
                _side(cache, 2 * int(t) + 1, place, rows, kept.n_rows),
                _side(cache, 2 * int(t) + 2, place, rows, kept.n_rows),
            )
            for t in branches
        )
        fixed = cache.mass.copy()
        for t in branches:
            fixed[:, list(topology.leaves_below(int(t)))] = 0.0
        return cls(
            cache.rows, kept, cache.steepness, branches, parents, on_left, factors, sides, fixed
        )

    @property
    def samples(self) -> Samples:  # type: ignore[override]
        return self.whole.samples

    @property
    def n_features(self) -> int:
        return self.whole.n_features

    def metric(self) -> Metric:
        """Return the diagonal metric: blocks are solved by Newton steps, and inverting a matrix for
        each block would cost more than it saves."""
        return Metric(NO_ROWS, self.whole.samples.gram.diagonal)

    def sample(self, limit: int | None = None) -> Samples:
        return self.whole.sample(limit)

    def reweighed(self, seed: int, power: float) -> CollapsedRows:
        shares = np.random.default_rng(seed).standard_exponential(self.reaching.n_rows) ** power
        factors = np.where((self.parents < 0)[:, None], self.factors * shares, self.factors)
        return replace(self, factors=factors, _recent={})

    def of_group(self, k: int) -> CompiledRows:  # type: ignore[override]
        return self.whole.of_group(k)

    def block_rows(
        self, cost_table: FloatArray, leaf_values: FloatArray | None = None
    ) -> BlockRows:
        """Return the rows with the bases of a loss table and, if given, of the leaf values."""
        cost_left, cost_right = self.bases(cost_table)
        if leaf_values is None:
            rate_left, rate_right = np.zeros_like(cost_left), np.zeros_like(cost_left)
            constants = np.zeros(len(cost_table))
        else:
            rate_left, rate_right = self.bases(leaf_values)
            constants = np.sum(self.fixed_mass * leaf_values, axis=1)
        return BlockRows(
            self.reaching.features, self.reaching.starts, self.group_totals, self.parents,
            self.on_left, self.factors, cost_left, cost_right, rate_left, rate_right,
            float(np.sum(self.fixed_mass * cost_table)), constants,
        )  # fmt: skip

    def bases(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the bases of the left and right sides, each of shape (n_free, n_rows)."""
        left, right = np.empty_like(self.factors), np.empty_like(self.factors)
        for position, (one, other) in enumerate(self.sides):
            _add_up(one, table, self.reaching.starts, left[position])
            _add_up(other, table, self.reaching.starts, right[position])
        return left, right

    def evaluate(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        """Return the sums over all rows; the derivative by a fixed branch is zero.

        The latest results are memoised.
        """
        self._check(outer, steepness)
        key = splits[self.branches].tobytes() + np.ascontiguousarray(table).tobytes()
        sums = self._recent.get(key)
        if sums is None:
            while len(self._recent) >= MEMOISED:
                self._recent.pop(next(iter(self._recent)), None)
            sums = self._recent[key] = self._evaluate(splits, table)
        return sums

    def forget(self) -> None:
        """Drop the memoised results."""
        self._recent.clear()

    def _evaluate(self, splits: FloatArray, table: FloatArray) -> Sums:
        scores = self.scores(splits)
        mass = self.leaf_mass(scores)
        none = np.zeros(len(table))
        value = block_pass(
            scores, scores, self.block_rows(table), self.steepness, 1.0, none, np.empty_like(none)
        )
        by_split = np.zeros_like(splits)
        by_split[self.branches, :-1] = np.dot(self.reaching.features, scores.T).T / self.n_features
        by_split[self.branches, -1] = -np.sum(scores, axis=1)
        return Sums(float(value), by_split, mass, mass)

    def scores(self, splits: FloatArray) -> FloatArray:
        """Return the scores of the free branches, shape (n_free, n_rows)."""
        free = splits[self.branches]
        # Fortran order gives the same bits as a product with an array of (n_features, n_free).
        scaled = np.asfortranarray(free[:, :-1]) / self.n_features
        scores: FloatArray = np.dot(scaled, self.reaching.features)
        scores -= free[:, -1:]
        return scores

    def passes(self, n_branches: int, n_leaves: int, outer: int, nonlinear: bool = False) -> Passes:
        self._check(outer, self.steepness)
        unset, each = np.zeros((self.n_groups, n_leaves)), self.factors.shape
        return Passes(
            rows=self.block_rows(unset, unset), table=unset, leaf_values=unset,
            steepness=self.steepness, outer=outer, scores=np.empty(each), slopes=np.empty(each),
            rate_slopes=NO_ROWS, outer_curvature=NOTHING, mass=unset,
            correct_mass=np.empty(self.n_groups),
            price=np.zeros(self.n_groups), priced=unset, gates=NO_GATES, room=NO_ROWS,
            **room_for_curvature(each[1], self.n_features),
        )  # fmt: skip

    def with_table(
        self, passes: Passes, table: FloatArray, leaf_values: FloatArray, steepness: float
    ) -> Passes:
        """Return ``passes`` for a table; bases of unchanged leaf values are not computed again."""
        self._check(passes.outer, steepness)
        if np.array_equal(leaf_values, passes.leaf_values):
            return passes._replace(rows=passes.rows._replace(factors=self.factors))
        rows = self.block_rows(table, leaf_values)
        return passes._replace(rows=rows, table=table, leaf_values=np.array(leaf_values))

    def mass(self, passes: Passes) -> FloatArray:
        return self.leaf_mass(passes.scores)

    def _check(self, outer: int, steepness: float) -> None:
        if outer != IDENTITY or steepness != self.steepness:
            raise ValueError(
                "rows with cached gates have an answer for the expected cost at the steepness of "
                "the cache only; restrict the problem without a cache."
            )

    def leaf_mass(self, scores: FloatArray) -> FloatArray:
        """Return the leaf masses for scores of the free branches, shape (n_groups, n_leaves)."""
        # Downwards, each free branch after the one above it; the mass of its own leaves on the way.
        left, right = gate_probabilities(scores, self.steepness)
        sides_reach: list[tuple[FloatArray, FloatArray]] = []  # (left, right) of each free branch
        mass = self.fixed_mass.copy()
        for position, pair in enumerate(self.sides):
            reach, above = self.factors[position], self.parents[position]
            if above >= 0:
                reach = reach * sides_reach[above][0 if self.on_left[position] else 1]
            sides_reach.append((reach * left[position], reach * right[position]))
            for side, arriving in zip(pair, sides_reach[-1], strict=True):
                _deliver(side, arriving, self.reaching.starts, mass)
        return mass


def _reaching(n_rows: int, paths: list[list[FloatArray]]) -> NDArray[np.intp] | None:
    """Return the rows that reach a topmost free branch; None if all do."""
    if any(not gates for gates in paths):
        return None
    reach = np.zeros(n_rows)
    for gates in paths:
        reach += _product(gates, None, n_rows)
    rows = np.flatnonzero(reach > LEAST_REACH)
    return None if len(rows) == n_rows else rows


def _product(gates: list[FloatArray], rows: NDArray[np.intp] | None, n_rows: int) -> FloatArray:
    result = np.ones(n_rows)
    for gate in gates:
        result *= gate if rows is None else gate[rows]
    return result


def _side(
    cache: GateCache,
    node: int,
    place: dict[int, int],
    rows: NDArray[np.intp] | None,
    n_rows: int,
) -> _Side:
    """Return the leaves under ``node`` that no further free branch leads to, with their shares."""
    n_branches = len(cache.left)
    leaves: list[int] = []
    shares: list[FloatArray] = []

    def collect(here: int, share: FloatArray) -> None:
        if here >= n_branches:
            leaves.append(here - n_branches)
            shares.append(share)
        elif here not in place:
            left, right = cache.left[here], cache.right[here]
            collect(2 * here + 1, share * (left if rows is None else left[rows]))
            collect(2 * here + 2, share * (right if rows is None else right[rows]))

    collect(node, np.ones(n_rows))
    stacked = np.array(shares) if shares else np.zeros((0, n_rows))
    return _Side(np.array(leaves, dtype=np.int64), stacked)
