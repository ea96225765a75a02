"""A run of the decomposition: its state, and a trace with one row per macro-iteration.

``DecompositionRun`` holds the current tree, what is cached of it, and what a step may change.
``EvaluationSet`` are rows whose accuracy it watches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.engines.block import GateCache
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import IDENTITY
from softsplit.engines.samples import Samples
from softsplit.problem.leaves import InfeasibleLeafStep
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import FEASIBLE, Budget, Solution, Solver, Start, Status
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Block, TreeParameters
from softsplit.tree.routing import mixed_values

ACCEPTED = 0.1 * FEASIBLE
"""Largest violation of a tree that counts as feasible: interior points meet equations to this."""


LEAST_DECREASE = 1e-9
"""Decrease in cost units: a step that gains less is rounding."""


@dataclass(frozen=True)
class EvaluationSet:
    """Rows and their classes.

    Handed to ``SoftTreeClassifier`` inside a solver, X and y are in the user's units and labels. A
    solver that is called by itself takes X scaled as its problem is, and class indices.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)

    def adapted(
        self, transform: Callable[[Any], FloatArray], classes: NDArray[Any]
    ) -> EvaluationSet:
        """The same in the units of the solver; a label that training has not seen becomes -1."""
        try:
            rows = transform(self.X)
        except (TypeError, ValueError) as error:
            raise ValueError(f"an EvaluationSet does not fit the training rows: {error}") from None
        labels = self._labels(len(rows)).tolist()
        index = {label: k for k, label in enumerate(classes.tolist())}
        numbers = np.array([index.get(label, -1) for label in labels])
        if np.all(numbers < 0):
            raise ValueError(
                f"no label of an EvaluationSet is a class of y; it has {labels[0]!r}, "
                f"y has {classes.tolist()[0]!r}."
            )
        return EvaluationSet(rows, numbers)

    def check(self, n_features: int) -> None:
        """Refuse rows that a solver cannot look at, in one sentence."""
        try:
            rows = np.asarray(self.X, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("X of an EvaluationSet must be an array of numbers.") from None
        if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] != n_features:
            raise ValueError(
                f"X of an EvaluationSet must have rows of {n_features} features, as in training, "
                f"got an array of shape {rows.shape}."
            )
        if not np.all(np.isfinite(rows)):
            raise ValueError("X of an EvaluationSet holds NaN or infinity; drop those rows.")
        if self._labels(len(rows)).dtype.kind not in "iu":
            raise ValueError("y of an EvaluationSet must hold class indices for a bare solver.")

    def _labels(self, n_rows: int) -> NDArray[Any]:
        labels = np.asarray(self.y)
        if labels.shape != (n_rows,):
            raise ValueError(
                f"y of an EvaluationSet must hold one label for each of its {n_rows} rows, got an "
                f"array of shape {labels.shape}."
            )
        return labels

    def accuracy(self, parameters: TreeParameters, steepness: float) -> float:
        features = np.asarray(self.X, dtype=np.float64).T
        called = np.argmax(mixed_values(parameters, features, steepness), axis=0)
        return float(np.mean(called == np.asarray(self.y)))


def training_accuracy(parameters: TreeParameters, samples: Samples, steepness: float) -> float:
    """Share of the training weight that is classified correctly."""
    called = np.argmax(mixed_values(parameters, samples.features, steepness), axis=0)
    right = called == samples.labels
    return float(np.sum(samples.weights[right]) / np.sum(samples.weights))


@dataclass(frozen=True)
class TraceRow:
    """The run after a macro-iteration; number 0 is the start or the initialisation.

    Attributes
    ----------
    macro_iteration : int
    objective : float
        Of the whole problem, without a proximal term.
    violation : float
        Largest violation of a constraint.
    train_accuracy, test_accuracy : float
        The second is NaN unless the solver was given rows to watch.
    cpu_seconds, seconds : float
        Spent so far on solving, by the processor and by the clock; looking at accuracies is not
        counted. IPOPT under a time limit runs in a process of its own; its processor time is
        counted, the start of that process is not.
    n_iter : int
        Iterations of the inner solver so far.
    steps, accepted : int
        Blocks solved in this macro-iteration, and those that lowered the objective.
    """

    macro_iteration: int
    objective: float
    violation: float
    train_accuracy: float
    test_accuracy: float
    cpu_seconds: float
    seconds: float
    n_iter: int
    steps: int
    accepted: int


@dataclass(frozen=True)
class DecompositionTrace:
    """All rows of a run; ``initialised`` says whether row 0 comes after an initialisation."""

    rows: tuple[TraceRow, ...]
    initialised: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> TraceRow:
        return self.rows[index]

    def to_frame(self) -> pd.DataFrame:
        return pd.DataFrame([asdict(row) for row in self.rows])


@dataclass(frozen=True)
class TracedSolution(Solution):
    """A solution with the trace of the run that found it."""

    trace: DecompositionTrace = field(default_factory=lambda: DecompositionTrace(()))


@dataclass
class Stopwatch:
    """Processor and wall time of one thread, with pauses; that of its children is added."""

    cpu_seconds: float = 0.0
    seconds: float = 0.0
    child_cpu_seconds: float = 0.0
    _cpu: float = field(default_factory=time.thread_time)
    _wall: float = field(default_factory=time.perf_counter)

    def pause(self) -> None:
        self.cpu_seconds += time.thread_time() - self._cpu
        self.seconds += time.perf_counter() - self._wall

    def add_child(self, cpu_seconds: float) -> None:
        """Count what another process has spent."""
        self.child_cpu_seconds += cpu_seconds
        self.cpu_seconds += cpu_seconds

    def resume(self) -> None:
        self._cpu, self._wall = time.thread_time(), time.perf_counter()


@dataclass(frozen=True)
class History:
    """The run so far: a row and a tree for every macro-iteration, the start included."""

    problem: TrainingProblem
    rows: Sequence[TraceRow]
    trees: Sequence[TreeParameters]


@dataclass
class DecompositionRun:
    """The state of a run. ``tree`` is at every moment the best so far."""

    problem: TrainingProblem
    budget: Budget
    tree: TreeParameters
    watch: EvaluationSet | None = None
    n_iter: int = 0
    rows: list[TraceRow] = field(default_factory=list)
    trees: list[TreeParameters] = field(default_factory=list)
    clock: Stopwatch = field(default_factory=Stopwatch)

    def __post_init__(self) -> None:
        problem = self.problem
        self.cache = self._gates()
        self.objective = problem.objective(self.tree)
        self.violation = problem.violation(self.tree).largest

    def _gates(self) -> GateCache | None:
        """The gates of the tree, where its rows and its loss let fixed branches be left out."""
        problem = self.problem
        if not isinstance(problem.rows, CompiledRows) or problem.loss.outer != IDENTITY:
            return None
        return GateCache.of(self.tree, problem.rows, problem.steepness)

    @property
    def feasible(self) -> bool:
        return self.violation <= ACCEPTED

    @property
    def exhausted(self) -> bool:
        return self.budget.exhausted or self._iterations_left == 0

    @property
    def _iterations_left(self) -> int | None:
        limit = self.budget.max_iter
        return None if limit is None else max(0, limit - self.n_iter)

    def inner_budget(self, max_iter: int | None) -> Budget:
        """A share of the run's budget: at most ``max_iter`` iterations."""
        limits = [n for n in (max_iter, self._iterations_left) if n is not None]
        remaining = None if self.budget.time_limit is None else self.budget.remaining
        return Budget(
            max_iter=min(limits, default=None),
            tol=self.budget.tol,
            time_limit=remaining,
            cancel=self.budget.cancel,
        )

    def whole(self, solver: Solver, rule: str, max_iter: int) -> None:
        """The initialisation: some iterations on the whole problem, kept if they are better."""
        solution = solver.solve(self.problem, Start(self.tree, rule), self.inner_budget(max_iter))
        self._note(solution)
        if self._better(solution):
            self.tree = solution.parameters
            self.__post_init__()

    def step(self, solver: Solver, block: Block, proximal: float, max_iter: int | None) -> bool:
        """Solve one block; take over the tree if it is feasible and lower, and say so."""
        # 1. The block alone, around the tree with its known gates.
        part = self.problem.restrict(block, self.tree, proximal=proximal, cache=self.cache)
        solution = solver.solve(part, Start(self.tree), self.inner_budget(max_iter))
        self._note(solution)
        # 2. A tree that is not lower is not taken: interior points may well be higher.
        if not self._better(solution):
            return False
        self.tree, self.objective = solution.parameters, solution.objective
        self.violation = solution.violation
        if self.cache is not None:
            self.cache.renew(self.tree, block.branches, part.evaluate_cost(self.tree).mass)
        return True

    def _note(self, solution: Solution) -> None:
        self.n_iter += solution.n_iter
        self.clock.add_child(solution.child_cpu_seconds)
        if solution.status is Status.INTERRUPTED:
            self.budget.stop()

    def _better(self, solution: Solution) -> bool:
        """Feasibility first, and then the objective: an inner solver may return a worse tree."""
        if not self.feasible:
            return solution.violation < self.violation
        least = LEAST_DECREASE * self.problem.cost_unit
        return solution.violation <= ACCEPTED and solution.objective < self.objective - least

    def record(self, steps: int, accepted: int) -> None:
        """Add a row to the trace, off the clock."""
        self.clock.pause()
        problem, tree = self.problem, self.tree
        watched = float("nan")
        if self.watch is not None:
            watched = self.watch.accuracy(tree, problem.steepness)
        row = TraceRow(
            macro_iteration=len(self.rows),
            objective=problem.objective(tree),
            violation=self.violation,
            train_accuracy=training_accuracy(tree, problem.samples, problem.steepness),
            test_accuracy=watched,
            cpu_seconds=self.clock.cpu_seconds,
            seconds=self.clock.seconds,
            n_iter=self.n_iter,
            steps=steps,
            accepted=accepted,
        )
        self.rows.append(row)
        self.trees.append(tree)
        self.clock.resume()

    @property
    def history(self) -> History:
        return History(self.problem, self.rows, self.trees)


def best_start(problem: TrainingProblem, trees: Sequence[TreeParameters]) -> TreeParameters:
    """The best of the given trees; where one is infeasible its leaves are chosen anew."""
    pinned = [problem.pin(tree) for tree in trees]
    candidates = [
        tree if problem.violation(tree).largest <= ACCEPTED else with_better_leaves(problem, tree)
        for tree in pinned
    ]
    ranks = [
        (max(problem.violation(tree).largest, ACCEPTED), problem.objective(tree))
        for tree in candidates
    ]
    return candidates[min(range(len(ranks)), key=ranks.__getitem__)]


def with_better_leaves(problem: TrainingProblem, tree: TreeParameters) -> TreeParameters:
    """The tree after a leaf step, or as it is where no leaves are feasible."""
    try:
        return problem.best_leaves(tree)
    except InfeasibleLeafStep:
        return tree
