"""Training of a prepared problem: its settings, the run, and its outcome.

train(prepared, run, observer) -> Outcome
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.compiled import CompiledRows
from softsplit.formulations import formulation_of, settings
from softsplit.problem.problem import TrainingProblem
from softsplit.settings.checks import truth
from softsplit.settings.parameter import checked
from softsplit.settings.table import RunParameters
from softsplit.solvers.base import (
    Budget,
    Solution,
    Solver,
    Start,
    Status,
    refuse_unsupported,
)
from softsplit.solvers.elimination.working_set import widened
from softsplit.support.arguments import drawn_seed
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import counted
from softsplit.support.parallel import n_threads
from softsplit.support.row_budgets import ROWS
from softsplit.training.best import NoFeasibleTreeError
from softsplit.training.decisions import ALIKE, MARGINS, SINGLE_MARGIN, decided_by_mixture
from softsplit.training.fitted_tree import fitted_tree
from softsplit.training.multistart import multistart, search_around
from softsplit.training.observer import Observer
from softsplit.training.precompile import load_order, make_ready
from softsplit.training.preparation import Prepared
from softsplit.training.progress import ConsoleProgress
from softsplit.training.progressive_sampling import progressive_sampling, sample_sizes
from softsplit.tree.scaling import scaled_rows

RESERVED = 0.15
"""Most of a time limit that is kept for what follows training: the walk of the tree, importances,
the summary of the table."""

CheckRows = Callable[[Any], FloatArray]
"""Validates rows of the user's that need not be training rows."""


# What is added to why training was cut short.
NO_QUESTION_YET = "; the tree asks no question yet"


@dataclass(frozen=True)
class Run:
    """Solver, starts, seed and budget of a training; the clock of the budget is running."""

    solver: Solver
    n_starts: int
    n_jobs: int | None
    seed: int
    budget: Budget

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Run:
        """Check the parameters of an estimator and return its run, before any work is done."""
        native = formulation_of(parameters["loss"]).solver
        solver = settings.make_solver(parameters["solver"], native)
        given = checked(RunParameters, parameters)
        if given["effort"] != 1.0:
            solver = solver.with_effort(given["effort"])
        if given["time_limit"] is not None:
            load_order()
        return cls(
            solver=solver,
            n_starts=given["n_starts"],
            n_jobs=given["n_jobs"],
            seed=drawn_seed("random_state", given["random_state"]),
            budget=Budget(given["max_iter"], given["tol"], given["time_limit"]),
        )

    def adapted(self, prepared: Prepared, check: CheckRows) -> Run:
        """Return the run with rows that the user gave to the solver scaled and coded."""

        def scaled(X: Any) -> FloatArray:
            return scaled_rows(prepared.scaling, check(X))

        return replace(self, solver=self.solver.adapted(scaled, prepared.classes))

    def workers(self, n_rows: int, n_tasks: int, n_cells: int = 0) -> int:
        """Tasks that run side by side (``n_threads``).

        Where ``n_cells``, the cells of the table times the classes, are many, tasks take seconds
        however few the rows are.
        """
        rows = None if n_cells > ROWS.parallel_cells else n_rows
        return max(1, min(n_threads(self.n_jobs, rows), n_tasks))

    def ready(self, problem: TrainingProblem | None = None, *, smooth: bool = True) -> Run:
        """Compile the code of the solver and return the run with its clock set back.

        Called after all input was checked: on a new installation compiling takes seconds. The
        ``problem`` is given where starts are made on samples of its rows, if these are many;
        ``smooth`` says whether penalties may have slopes.
        """
        began, limit = self.budget.now(), self.budget.time_limit
        prepared = began - self.budget.began
        summed = None if problem is None else _summed(problem, self.solver)
        make_ready(self.solver, timed=limit is not None, summed=summed, smooth=smooth)
        spent = self.budget.now() - began
        if limit is not None:  # keeping a tree takes about as long as preparing the rows
            limit -= min(prepared, RESERVED * limit)
        budget = replace(self.budget, time_limit=limit, began=self.budget.began + spent)
        return replace(self, budget=budget)


def _summed(problem: TrainingProblem, solver: Solver) -> type[np.floating[Any]] | None:
    """The precision of rows in memory that are summed piece by piece; None where none are."""
    rows = problem.rows
    if not isinstance(rows, CompiledRows):
        return None
    if rows.n_rows <= ROWS.row_sums and not sample_sizes(problem, solver):
        return None
    return np.float32 if rows.samples.features.dtype == np.float32 else np.float64


class End(Enum):
    """Why training ended."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    TIME_LIMIT = "time_limit"
    MAX_ITER = "max_iter"

    @classmethod
    def of(cls, status: Status) -> End:
        """Return the end that belongs to the status of a single run."""
        return cls[status.name] if status.name in cls.__members__ else cls.COMPLETE


@dataclass(frozen=True)
class Outcome:
    """Result of a training.

    Attributes
    ----------
    best : Solution
    starts : tuple of Solution
        One for each start that was run; ``best`` may be better than the best of them.
    n_wanted : int
        Number of starts asked for.
    end : End
    """

    best: Solution
    starts: tuple[Solution, ...]
    n_wanted: int
    end: End

    @classmethod
    def of(cls, best: Solution, starts: Sequence[Solution], run: Run) -> Outcome:
        """Return the outcome; its end follows from the budget, the starts and the best status."""
        end = End.of(best.status)
        if run.budget.stopped:
            end = End.INTERRUPTED
        elif len(starts) < run.n_starts:
            end = End.TIME_LIMIT
        return cls(best, tuple(starts), run.n_starts, end)

    @classmethod
    def alone(cls, solution: Solution) -> Outcome:
        """Return the outcome of a single solution."""
        return cls(solution, (solution,), 1, End.of(solution.status))

    @property
    def warning(self) -> str | None:
        """Why training was cut short, for the user; None if it was not."""
        if (cut := self._cut_short()) is None or np.any(self.best.parameters.weights):
            return cut
        return f"{cut}{NO_QUESTION_YET}"

    def _cut_short(self) -> str | None:
        made = len(self.starts)
        if self.end is End.INTERRUPTED:
            return f"interrupted; the best of {made} starts so far is kept"
        if made < self.n_wanted:
            made_of = f"{made} of {counted(self.n_wanted, 'start')}"
            return f"the time limit was reached after {made_of}; raise time_limit for all of them"
        return None if self.end is End.COMPLETE else self.best.status.value


def train(prepared: Prepared, run: Run, observer: Observer | None = None) -> Outcome:
    """Return the best tree of many starts, after a search around the best of them.

    Where rows are many, starts and search see samples of them (progressive_sampling.py). Of a wide
    sparse table columns may join in the end (``joined``).
    """
    observer, structures = observer or Observer(), prepared.structures()
    if len(structures) == 1:
        best, starts = _best_of_starts(prepared, run, observer)
    else:
        best, starts = _best_structure(structures, run, observer)
    return Outcome.of(decided(prepared, joined(prepared, best, run), run), starts, run)


def decided(prepared: Prepared, trained: Solution, run: Run) -> Solution:
    """Return ``trained``, or the same tree trained under tighter bounds of rates.

    Expected rates of ``trained`` hold the requirements; its decisions, by the walk or of a tree
    with one class on each leaf, may miss them, or hold them by a walk that gives up much. Of some
    margins of the bounds (``decisions.MARGINS``) the tree is kept whose decisions hold the
    requirements and are right most often on the training rows.
    """
    problem, limits = prepared.structure_of(trained).problem, prepared.problem.rate_limits
    by_mixture = prepared.settings.decision != "walk" and not prepared.assigned
    if limits is None or by_mixture or not trained.status.usable:
        return trained

    def right_by_mixture(solution: Solution) -> float:
        known = solution.parameters, problem.steepness, limits
        said = decided_by_mixture(*known, np.eye(problem.n_groups))
        return float(said[np.arange(len(said)), limits.labels].sum())

    def judged(solution: Solution) -> tuple[bool, float]:
        tree = fitted_tree(prepared, solution, run.solver.zero_threshold)
        hold = all(one.decisions_hold for one in tree.rates)
        if tree.walk is None:
            return hold, right_by_mixture(solution)
        counts, classes = tree.walk.counts, tree.walk.classes
        return hold, float(np.sum(counts[classes, np.arange(len(classes))]))

    best, rank = trained, judged(trained)
    alike = rank[1] >= ALIKE * right_by_mixture(trained)
    if rank[0] and (alike or not np.any(trained.kkt.multipliers[problem.n_groups :])):
        return trained  # the walk holds the requirements and gives up little, or no bound binds
    for part in run.budget.while_left(MARGINS):
        tighter = replace(problem, rate_limits=limits.tightened(part, SINGLE_MARGIN))
        other = run.solver.solve(tighter, Start(trained.parameters), run.budget)
        if other.status.usable and judged(other) > rank:
            best, rank = other, judged(other)
    return replace(best, search=trained.search, screening=trained.screening)


def _best_structure(
    structures: Sequence[Prepared], run: Run, observer: Observer
) -> tuple[Solution, list[Solution]]:
    """Return the best tree over problems with other classes on the leaves, which share starts."""
    some = replace(run, n_starts=-(-run.n_starts // len(structures)))
    solutions: list[Solution] = []
    starts: list[Solution] = []
    error: NoFeasibleTreeError | None = None
    for prepared in run.budget.while_left(structures, at_least=1):
        try:
            best, ends = _best_of_starts(prepared, some, observer)
        except NoFeasibleTreeError as none:
            error = none
            continue
        solutions.append(best)
        starts += ends
    if error is not None and not solutions:
        raise error
    return min(solutions, key=lambda one: (not one.status.usable, one.objective)), starts


def joined(prepared: Prepared, solution: Solution, run: Run) -> Solution:
    """Return ``solution`` after columns from outside the working set of the rows have joined.

    Of rows without such columns it is ``solution`` itself.
    """

    def fresh(problem: TrainingProblem) -> Solution | None:
        with suppress(NoFeasibleTreeError):
            again = replace(prepared, problem=problem)
            return _best_of_starts(again, replace(run, n_starts=1), Observer())[0]
        return None

    return widened(prepared.problem, solution, run.solver, run.budget, fresh)


def _best_of_starts(
    prepared: Prepared, run: Run, observer: Observer
) -> tuple[Solution, list[Solution]]:
    """Return the best tree after the search, and the ends of the starts."""
    problem = prepared.problem
    settings: dict[str, Any] = {"seed": run.seed, "budget": run.budget, "observer": observer}
    sizes = sample_sizes(problem, run.solver)
    starts: list[Solution] = []
    try:
        if sizes:
            refuse_unsupported(run.solver, problem)
            best, starts = progressive_sampling(
                problem, run.solver, sizes, n_starts=run.n_starts, n_jobs=run.n_jobs, **settings
            )
        else:
            starts = multistart(
                problem, run.solver, n_starts=run.n_starts, n_jobs=run.n_jobs, **settings
            )
            best = search_around(problem, run.solver, starts, **settings)
    except NoFeasibleTreeError as error:
        if run.budget.exhausted or not starts:
            raise
        raise _name_rates(error, problem, starts, prepared.classes) from None
    return best, starts


def _name_rates(
    error: NoFeasibleTreeError,
    problem: TrainingProblem,
    solutions: list[Solution],
    classes: NDArray[Any],
) -> ValueError:
    """Return an error that names the class whose minimum rate was not reached, if one was not."""
    closest = min(solutions, key=lambda solution: solution.violation)
    limits, short = problem.rate_limits, problem.shortfalls(closest.parameters)
    if limits is not None and np.argmax(short) >= problem.n_groups:
        line = int(np.argmax(short)) - problem.n_groups
        return NoFeasibleTreeError(
            f"no start met the requirement on the {limits.requirement_of(line).name} (the closest "
            f"missed it by {short.max():.3g}); widen its bound, or raise depth or n_starts."
        )
    rates = problem.rates(closest.parameters)
    worst = int(np.argmax(problem.minimum_rates - rates))
    if problem.minimum_rates[worst] <= rates[worst]:
        return error
    return NoFeasibleTreeError(
        f"no start met min_class_rate {problem.minimum_rates[worst]:g} for class "
        f"{classes.tolist()[worst]!r} (the closest reached {rates[worst]:.3g}); lower "
        "min_class_rate, or raise depth or n_starts."
    )


@contextmanager
def watched(verbose: Any, budget: Budget, n_points: int = 0) -> Iterator[Observer]:
    """Yield the observer of a fit or of a path of ``n_points``: the console if ``verbose``."""
    if not truth("verbose", verbose):
        yield Observer()
        return
    progress = ConsoleProgress(budget, n_points)
    with progress.shown():
        yield progress
