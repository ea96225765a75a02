"""Random training problems for the tests of the mathematical core."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import BY_NAME, PenaltyPair, exponential, inverse_power, power
from softsplit.problem.problem import TrainingProblem
from softsplit.tree.parameters import Topology, TreeParameters

SURROGATES = [
    *(make() for name, (make, _) in BY_NAME.items() if name != "count"),
    exponential(8.0),
    power(1.0, 1e-3),
    inverse_power(1.0, 1e-2),
]
"""Every surrogate, and more than one setting of those that have parameters.

The one list of the tests: a surrogate with a name is put under every check.
"""

SCOPES = {"local": (0.7, 0.0), "global": (0.0, 1.3), "both": (0.4, 0.9)}
"""Local and global strength for each use of the penalties."""


def surrogate_id(surrogate):
    return f"{surrogate.name}-{surrogate.first:g}-{surrogate.second:g}"


@dataclass(frozen=True)
class Rows:
    """Training rows as a caller has them."""

    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray

    @property
    def samples(self) -> Samples:
        return Samples.from_arrays(self.X, self.y, int(self.y.max()) + 1, self.sample_weight)


@dataclass(frozen=True)
class Case:
    """A problem, the rows that it was made of and a tree to look at."""

    rows: Rows
    problem: TrainingProblem
    tree: TreeParameters


def random_rows(rng, n_rows=20, n_features=3, n_classes=2, weighted=True) -> Rows:
    """Rows in [0, 1] with every class present."""
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes)])
    weight = rng.uniform(0.2, 3.0, n_rows) if weighted else np.ones(n_rows)
    return Rows(rng.uniform(size=(n_rows, n_features)), rng.permutation(y), weight)


def random_leaf_classes(rng, n_classes, n_leaves):
    """Columns that are distributions, with no entry near zero."""
    return 0.7 * rng.dirichlet(np.ones(n_classes), size=n_leaves).T + 0.3 / n_classes


def random_tree(rng, n_features, n_classes, depth) -> TreeParameters:
    """A tree anywhere in the box."""
    topology = Topology(depth)
    return TreeParameters(
        rng.uniform(-1, 1, (n_features, topology.n_branches)),
        rng.uniform(-0.3, 0.3, topology.n_branches),
        random_leaf_classes(rng, n_classes, topology.n_leaves),
    )


def random_costs(rng, n_classes):
    """A different cost for every pair of classes, none for a right answer."""
    return rng.uniform(0.2, 2.0, (n_classes, n_classes)) * (1 - np.eye(n_classes))


def classes_for(depth):
    return {1: 2, 2: 3}.get(depth, 4)


def random_case(
    seed, depth, steepness=5.0, penalties=None, loss=None, rates=0.0, n_rows=20
) -> Case:
    """A problem with weights and unequal costs, and a tree anywhere in the box."""
    rng = np.random.default_rng([seed, depth])
    n_classes = classes_for(depth)
    rows = random_rows(rng, n_rows, n_classes=n_classes)
    problem = TrainingProblem(
        rows=CompiledRows(rows.samples),
        topology=Topology(depth),
        loss=ExpectedCost(random_costs(rng, n_classes)) if loss is None else loss,
        penalties=PenaltyPair.of(exponential(), 0.3, 0.8) if penalties is None else penalties,
        minimum_rates=np.full(n_classes, rates),
        steepness=steepness,
    )
    return Case(rows, problem, random_tree(rng, 3, n_classes, depth))


def sensitive_case(seed, depth, steepness, penalties=None, loss=None, rates=0.0, n_rows=20) -> Case:
    """As ``random_case``, but with every gate far from saturated, however steep it is.

    The rows lie close together and the thresholds put the splits between them, so that the
    weights may be large while steepness * score stays below 3.
    """
    case = random_case(seed, depth, steepness, penalties, loss, rates, n_rows)
    rng = np.random.default_rng([seed, depth, 1])
    centre = rng.uniform(0.2, 0.8, 3)
    width = min(1.0, 4.0 / steepness)
    rows = replace(case.rows, X=centre + width * (case.rows.X - 0.5))
    sizes = rng.permuted(np.linspace(0.2, 0.95, case.tree.weights.size))
    signs = rng.choice([-1.0, 1.0], case.tree.weights.shape)
    weights = signs * sizes.reshape(case.tree.weights.shape)
    offset = rng.uniform(-1, 1, len(case.tree.thresholds)) / steepness
    tree = replace(case.tree, weights=weights, thresholds=centre @ weights / 3 + offset)
    return Case(rows, replace(case.problem, rows=CompiledRows(rows.samples)), tree)
