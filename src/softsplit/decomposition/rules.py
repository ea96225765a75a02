"""Rules of a decomposition: which nodes move, and when a run ends.

Working-set rules say which branches and leaves move in each step of a macro-iteration.

    SingleBranches    S-NB-DEC: every branch once, in random order, with all leaves
    Alternating       C-NB-DEC: all branches without leaves (part by part of a fixed partition),
                      then all leaves without branches
    Subtrees          ours: whole subtrees of a given height, from the lowest up, with all leaves
    LargestViolation  ours: one branch at a time with all leaves, the one furthest from stationary
                      first, and those that are nearly stationary not at all

A rule takes a ``View`` of the run at the beginning of a macro-iteration and lists its blocks.

Stopping rules are asked after every macro-iteration; the first that is met ends the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from softsplit.decomposition.trace import EvaluationSet, History
from softsplit.problem.optimality import branch_stationarity, kkt
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import FEASIBLE
from softsplit.support.arguments import positive_integer, positive_number
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, unfit
from softsplit.tree.parameters import Block, Topology, TreeParameters


@dataclass(frozen=True)
class View:
    """What a rule may look at.

    ``stuck`` says that the last macro-iteration lowered nothing: a rule that leaves branches out
    must then list them all, since the run ends if that lowers nothing either.
    """

    problem: TrainingProblem
    tree: TreeParameters
    rng: np.random.Generator
    stuck: bool = False

    @property
    def topology(self) -> Topology:
        return self.problem.topology


class WorkingSets(Protocol):
    """Lists the blocks of one macro-iteration, in order."""

    def blocks(self, view: View) -> list[Block]: ...


@dataclass(frozen=True)
class SingleBranches:
    """S-NB-DEC: each branch once per macro-iteration, in random order; all leaves every time."""

    def blocks(self, view: View) -> list[Block]:
        order = view.rng.permutation(view.topology.n_branches)
        return [_with_all_leaves(view.topology, (int(t),)) for t in order]


@dataclass(frozen=True)
class Alternating:
    """C-NB-DEC: the branches, part by part, and then the leaves.

    Parameters
    ----------
    partition : tuple of tuples of int, optional
        Parts of the branches, the same in every macro-iteration; one part if not given.
    """

    partition: tuple[tuple[int, ...], ...] | None = None

    def blocks(self, view: View) -> list[Block]:
        whole = tuple(range(view.topology.n_branches))
        parts = (whole,) if self.partition is None else self.partition
        if sorted(t for part in parts for t in part) != list(whole):
            raise ValueError(
                f"partition must name every branch from 0 to {len(whole) - 1} once, got {parts}."
            )
        leaves = tuple(range(view.topology.n_leaves))
        return [*(Block(tuple(part), ()) for part in parts), Block((), leaves)]


@dataclass(frozen=True)
class Subtrees:
    """Disjoint subtrees of up to ``height`` levels that cover the tree, the lowest first.

    Branches of one subtree depend on each other more than on the rest, and under a global penalty
    two that share the largest coefficient of a feature can lower it only together. Few samples
    reach a low subtree, so that a block of several branches costs little there. The height of the
    topmost one is drawn anew each time, so that every branch moves with its parent now and then.
    """

    height: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.height, int) or self.height < 1:
            raise unfit("height", self.height, "must be a positive integer")

    def blocks(self, view: View) -> list[Block]:
        depth = view.topology.depth
        first = min(int(view.rng.integers(1, self.height + 1)), depth)
        levels = [0, *range(first, depth, self.height)]
        blocks = []
        for top, below in pairwise([*levels, depth]):
            for root in _descendants(0, top):
                branches = [t for d in range(below - top) for t in _descendants(root, d)]
                blocks.append(_with_all_leaves(view.topology, tuple(branches)))
        return blocks[::-1]


@dataclass(frozen=True)
class LargestViolation:
    """One branch at a time, in the order of its first-order residual.

    Parameters
    ----------
    share : float
        Branches whose residual is below this part of the largest one are left out, unless the
        macro-iteration before lowered nothing.
    """

    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise unfit("share", self.share, "must lie in [0, 1]")

    def blocks(self, view: View) -> list[Block]:
        residuals = branch_stationarity(view.problem, view.tree)
        least = 0.0 if view.stuck else self.share * np.max(residuals)
        order = np.argsort(-residuals, kind="stable")
        chosen = [int(t) for t in order if residuals[t] >= least]
        return [_with_all_leaves(view.topology, (t,)) for t in chosen]


def _with_all_leaves(topology: Topology, branches: tuple[int, ...]) -> Block:
    return Block(branches, tuple(range(topology.n_leaves)))


def _descendants(node: int, levels: int) -> range:
    """Nodes ``levels`` below ``node``."""
    first = (node + 1) * 2**levels - 1
    return range(first, first + 2**levels)


class StoppingRule(Protocol):
    """Says when a run has gone far enough.

    A rule that looks at rows of the user's may have two methods more: ``check(problem)``, called
    before a run, and ``adapted(transform, classes)``, which returns the rule for a training
    problem; see ``ValidationAccuracy``.
    """

    def reached(self, history: History) -> bool: ...


@runtime_checkable
class Chooser(Protocol):
    """A stopping rule that also says which tree of the run to return instead of the last."""

    def chosen(self, history: History) -> int: ...


@dataclass(frozen=True)
class MacroIterations:
    """Stop after so many macro-iterations."""

    count: int

    def __post_init__(self) -> None:
        positive_integer("count of MacroIterations", self.count)

    def reached(self, history: History) -> bool:
        return history.rows[-1].macro_iteration >= self.count


@dataclass(frozen=True)
class ProcessorTime:
    """Stop after the macro-iteration in which so many CPU seconds are spent.

    The ``time_limit`` of the estimator also stops in the middle of one.
    """

    cpu_seconds: float

    def __post_init__(self) -> None:
        positive_number("cpu_seconds of ProcessorTime", self.cpu_seconds)

    def reached(self, history: History) -> bool:
        return history.rows[-1].cpu_seconds >= self.cpu_seconds


@dataclass(frozen=True)
class Residual:
    """Stop where the KKT residual of the whole problem is at most ``tol`` cost units."""

    tol: float = 1e-4

    def __post_init__(self) -> None:
        positive_number("tol of Residual", self.tol)

    def reached(self, history: History) -> bool:
        problem = history.problem
        return kkt(problem, history.trees[-1]).residual <= self.tol * problem.cost_unit


@dataclass(frozen=True)
class ValidationAccuracy:
    """Stop when the accuracy on other rows has not risen for ``patience`` macro-iterations.

    The feasible tree with the best accuracy is returned, the earliest among equals; while none is
    feasible, the one that violates the constraints least.

    Parameters
    ----------
    rows : EvaluationSet
    patience : int
    """

    rows: EvaluationSet
    patience: int = 3

    def __post_init__(self) -> None:
        if not isinstance(self.rows, EvaluationSet):
            raise ValueError(
                "rows of ValidationAccuracy must be an EvaluationSet(X, y), got "
                f"{shown(self.rows)}."
            )
        positive_integer("patience of ValidationAccuracy", self.patience)

    def reached(self, history: History) -> bool:
        return len(history.trees) - 1 - self.chosen(history) >= self.patience

    def chosen(self, history: History) -> int:
        return int(np.argmax([self._merit(history.problem, tree) for tree in history.trees]))

    def _merit(self, problem: TrainingProblem, tree: TreeParameters) -> float:
        violation = problem.violation(tree).largest
        return -violation if violation > FEASIBLE else self.rows.accuracy(tree, problem.steepness)

    def check(self, problem: TrainingProblem) -> None:
        self.rows.check(problem.n_features)

    def adapted(
        self, transform: Callable[[Any], FloatArray], classes: NDArray[Any]
    ) -> ValidationAccuracy:
        return replace(self, rows=self.rows.adapted(transform, classes))
