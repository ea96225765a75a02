"""Problems with classes that overlap, and short ways to run the native solver on them."""

from __future__ import annotations

import numpy as np

from softsplit.engines.compiled import CompiledRows
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import PenaltyPair, exponential
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import BasinHoppingSolver, Budget
from softsplit.solvers.active_set.state import EVALUATE_ONLY
from softsplit.solvers.basin_hopping.budget import IterationBudget
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.starts.rules import draw_hops, draw_start
from softsplit.solvers.stopping import EndPoints
from softsplit.tree.parameters import Topology


def make_problem(
    seed=0,
    rows=80,
    features=4,
    classes=3,
    depth=2,
    surrogate=None,
    local=0.0,
    global_=0.0,
    rate=0.1,
):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, rows - classes)])
    X = rng.uniform(size=(rows, features)) + 0.4 * rng.uniform(size=(classes, features))[y]
    return TrainingProblem(
        CompiledRows.from_arrays(X / 1.4, y, classes),
        Topology(depth),
        ExpectedCost.uniform(classes),
        PenaltyPair.of(surrogate or exponential(), local, global_),
        np.full(classes, rate),
    )


def make_engine(problem):
    return DescentRun(problem, IterationBudget(Budget(), 10_000))


def solve(problem, seed=0, rule="groups", **budget):
    start = draw_start(rule, problem, np.random.default_rng(seed))
    return BasinHoppingSolver().solve(problem, start, Budget(**budget))


def cheapest_leaves(problem, theta, leaf_values):
    """The cheapest leaf classes with every class covered, whatever the class rates."""
    engine = make_engine(problem)
    engine.descend(theta, leaf_values, EVALUATE_ONLY)
    return engine.cheapest_leaves(leaf_values)


def make_draws(seed=7):
    """What the hops of a search need, one after the other."""
    return draw_hops(np.random.default_rng(seed))


class SoMany(EndPoints):
    """Ends of descents of which there are to be so many hops, whatever they find."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    @property
    def unlikely(self):
        return self.n_hops >= self.count


def solved_point(problem, seed=0):
    """theta and leaf classes of a tree that was trained from a random start."""
    tree = solve(problem, seed, rule="points").parameters
    return tree.splits, tree.leaf_values


def sparse_of(engine):
    """Both penalties of an engine at their strengths, as compiled functions take them."""
    return engine.added()[0].sparse
