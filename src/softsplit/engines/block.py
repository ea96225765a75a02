"""What is fixed in a restricted problem, worked out once: numbers per row for the free branches.

``GateCache`` holds the gates of a tree and its leaf masses, and renews only what belongs to
branches that have moved. ``CollapsedRows``, an engine, takes from it the quantities of
block_pass.py for one block:

    factor[t]      product of the fixed gates above the free branch t
    share[leaf]    product of the fixed gates between a leaf and the next free branch above it;
                   the leaf is said to belong to a side of that branch

With a table ``W[class, leaf]`` the base of a side is the sum of share[leaf] W[class, leaf] over its
leaves. Rows that reach no free branch are left out altogether: the lower a branch, the fewer rows
matter to it. Building costs one multiplication per row for each fixed gate above or below the
block; after that no row is routed through a fixed branch again.
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
from softsplit.engines.samples import Samples
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.tree.parameters import Block, Topology, TreeParameters
from softsplit.tree.routing import gate_probabilities, leaf_probabilities, split_scores

RECENT = 4
UNREACHED = 1e-12
"""A row that reaches the free branches with less than this part of its weight is left out."""


@dataclass
class GateCache:
    """Gates and leaf masses of the current tree.

    Attributes
    ----------
    rows : CompiledRows
    steepness : float
    left, right : arrays (n_branches, n_rows)
        Gate probabilities.
    mass : array (n_classes, n_leaves)
        Weight of each class that reaches each leaf.
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
        """Follow a tree in which only ``branches`` have moved; ``mass`` is that of the new tree."""
        if branches:
            columns = list(branches)
            scores = (parameters.weights[:, columns].T / parameters.n_features) @ (
                self.rows.samples.features
            )
            scores -= parameters.thresholds[columns, None]
            self.left[columns], self.right[columns] = gate_probabilities(scores, self.steepness)
        self.mass = mass


class _Side(NamedTuple):
    """The leaves that belong to one side of a free branch, with their shares."""

    leaves: NDArray[np.int64]  # (n_leaves_here,)
    shares: FloatArray  # (n_leaves_here, n_rows)


@compiled
def _add_up(side, table, starts, base):  # type: ignore[no-untyped-def]
    """base = sum_l share_l table[class, l] of every row."""
    base[:] = 0.0
    for position in range(side.leaves.size):
        share = side.shares[position]
        for k in range(starts.size - 1):
            value = table[k, side.leaves[position]]
            for i in range(starts[k], starts[k + 1]):
                base[i] += value * share[i]


@compiled
def _deliver(side, arriving, starts, mass):  # type: ignore[no-untyped-def]
    """mass[class, l] = sum of share_l times what arrives at the side."""
    for position in range(side.leaves.size):
        share = side.shares[position]
        for k in range(starts.size - 1):
            total = 0.0
            for i in range(starts[k], starts[k + 1]):
                total += share[i] * arriving[i]
            mass[k, side.leaves[position]] = total


@dataclass(frozen=True)
class CollapsedRows(InMemory):
    """The rows of a block: everything fixed in the tree is reduced to numbers per row.

    It takes trees that agree with that of the cache outside the block, and only the outer function
    and the steepness that the numbers were worked out for. Facts are those of all rows.

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
    fixed_mass : array (n_classes, n_leaves)
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
        """The block around the tree of the cache."""
        topology, samples = cache.topology, cache.rows.samples
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
        rows = _reaching(samples.n_rows, [g for g, s in zip(paths, parents, strict=True) if s < 0])
        kept = samples if rows is None else samples.part(rows)
        factors = np.empty((len(branches), kept.n_rows))
        for position, gates in enumerate(paths):
            factors[position] = _product(gates, rows, kept.n_rows)
            if parents[position] < 0:
                factors[position] *= kept.weights
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
    def samples(self) -> Samples:
        return self.whole.samples

    @property
    def n_rows(self) -> int:
        return self.whole.n_rows

    @property
    def n_features(self) -> int:
        return self.whole.n_features

    @property
    def n_classes(self) -> int:
        return self.whole.n_classes

    @property
    def class_totals(self) -> FloatArray:
        return self.whole.class_totals

    @property
    def mean_weight(self) -> float:
        return self.whole.mean_weight

    @property
    def few(self) -> Samples:
        return self.whole.few

    def metric(self) -> Metric:
        """Only the diagonal: Newton steps come first here, and a matrix for each block would cost
        more than it saves."""
        return Metric(NO_ROWS, self.whole.samples.gram.diagonal)

    def sample(self, limit: int | None = None) -> Samples:
        return self.whole.sample(limit)

    def reweighed(self, seed: int, power: float) -> CollapsedRows:
        shares = np.random.default_rng(seed).standard_exponential(self.reaching.n_rows) ** power
        factors = np.where((self.parents < 0)[:, None], self.factors * shares, self.factors)
        return replace(self, factors=factors, _recent={})

    def of_class(self, k: int) -> CompiledRows:
        return self.whole.of_class(k)

    def block_rows(
        self, cost_table: FloatArray, leaf_classes: FloatArray | None = None
    ) -> BlockRows:
        """Bases for the table of a loss; with leaf classes, for the class rates too."""
        cost_left, cost_right = self.bases(cost_table)
        if leaf_classes is None:
            rate_left, rate_right = np.zeros_like(cost_left), np.zeros_like(cost_left)
            constants = np.zeros(len(cost_table))
        else:
            rate_left, rate_right = self.bases(leaf_classes)
            constants = np.sum(self.fixed_mass * leaf_classes, axis=1)
        return BlockRows(
            self.reaching.features, self.reaching.starts, self.class_totals, self.parents,
            self.on_left, self.factors, cost_left, cost_right, rate_left, rate_right,
            float(np.sum(self.fixed_mass * cost_table)), constants,
        )  # fmt: skip

    def bases(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bases of the left and right sides of the free branches, (n_free, n_rows) each."""
        left, right = np.empty_like(self.factors), np.empty_like(self.factors)
        for position, (one, other) in enumerate(self.sides):
            _add_up(one, table, self.reaching.starts, left[position])
            _add_up(other, table, self.reaching.starts, right[position])
        return left, right

    def evaluate(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        """As for all rows; the derivative by a fixed branch is zero.

        The last few answers are kept: what measures a tree asks for the same numbers again and
        again.
        """
        self._check(outer, steepness)
        key = splits[self.branches].tobytes() + np.ascontiguousarray(table).tobytes()
        found = self._recent.get(key)
        if found is None:
            while len(self._recent) >= RECENT:
                self._recent.pop(next(iter(self._recent)), None)
            found = self._recent[key] = self._evaluate(splits, table)
        return found

    def forget(self) -> None:
        """Drop the answers that are kept."""
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
        """Scores of the free branches, (n_free, n_rows)."""
        free = splits[self.branches]
        # In this order in memory the products have the bits of those with (n_features, n_free).
        scaled = np.asfortranarray(free[:, :-1]) / self.n_features
        scores: FloatArray = np.dot(scaled, self.reaching.features)
        scores -= free[:, -1:]
        return scores

    def passes(self, n_branches: int, n_leaves: int, outer: int, bent: bool = False) -> Passes:
        self._check(outer, self.steepness)
        unset, each = np.zeros((self.n_classes, n_leaves)), self.factors.shape
        return Passes(
            rows=self.block_rows(unset, unset), table=unset, leaf_classes=unset,
            steepness=self.steepness, outer=outer, scores=np.empty(each), slopes=np.empty(each),
            rate_slopes=NO_ROWS, outer_curvature=NOTHING, mass=unset,
            correct_mass=np.empty(self.n_classes), price=np.zeros(self.n_classes), priced=unset,
            gates=NO_GATES, room=NO_ROWS,
            **room_for_curvature(each[1], self.n_features),
        )  # fmt: skip

    def asked(
        self, passes: Passes, table: FloatArray, leaf_classes: FloatArray, steepness: float
    ) -> Passes:
        """Bases of the same leaves are kept, as stages ask for each several times."""
        self._check(passes.outer, steepness)
        if np.array_equal(leaf_classes, passes.leaf_classes):
            return passes._replace(rows=passes.rows._replace(factors=self.factors))
        rows = self.block_rows(table, leaf_classes)
        return passes._replace(rows=rows, table=table, leaf_classes=np.array(leaf_classes))

    def mass(self, passes: Passes) -> FloatArray:
        return self.leaf_mass(passes.scores)

    def _check(self, outer: int, steepness: float) -> None:
        if outer != IDENTITY or steepness != self.steepness:
            raise ValueError(
                "rows with cached gates have an answer for the expected cost at the steepness of "
                "the cache only; restrict the problem without a cache."
            )

    def leaf_mass(self, scores: FloatArray) -> FloatArray:
        """Leaf masses for the given scores of the free branches, (n_classes, n_leaves)."""
        left, right = gate_probabilities(scores, self.steepness)
        gone: list[tuple[FloatArray, FloatArray]] = []
        mass = self.fixed_mass.copy()
        for position, pair in enumerate(self.sides):
            reach, above = self.factors[position], self.parents[position]
            if above >= 0:
                reach = reach * gone[above][0 if self.on_left[position] else 1]
            gone.append((reach * left[position], reach * right[position]))
            for side, arriving in zip(pair, gone[-1], strict=True):
                _deliver(side, arriving, self.reaching.starts, mass)
        return mass


def _reaching(n_rows: int, paths: list[list[FloatArray]]) -> NDArray[np.intp] | None:
    """Rows that reach a topmost free branch; None if all do."""
    if any(not gates for gates in paths):
        return None
    reach = np.zeros(n_rows)
    for gates in paths:
        reach += _product(gates, None, n_rows)
    rows = np.flatnonzero(reach > UNREACHED)
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
    """Leaves under ``node`` that no further free branch leads to, with their shares."""
    n_branches = len(cache.left)
    leaves: list[int] = []
    shares: list[FloatArray] = []

    def walk(here: int, share: FloatArray) -> None:
        if here >= n_branches:
            leaves.append(here - n_branches)
            shares.append(share)
        elif here not in place:
            left, right = cache.left[here], cache.right[here]
            walk(2 * here + 1, share * (left if rows is None else left[rows]))
            walk(2 * here + 2, share * (right if rows is None else right[rows]))

    walk(node, np.ones(n_rows))
    stacked = np.array(shares) if shares else np.zeros((0, n_rows))
    return _Side(np.array(leaves, dtype=np.int64), stacked)
