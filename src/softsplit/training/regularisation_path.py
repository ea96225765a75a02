"""Neighbouring problems solved one after the other, each from the trees of the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import (
    Budget,
    Path,
    Solution,
    Solver,
    Start,
    Status,
    refuse_unsupported,
)
from softsplit.support.parallel import one_blas_thread
from softsplit.training.multistart import (
    best_solution,
    distinct,
    hop,
    multistart,
    numbered_start,
)
from softsplit.training.observer import Observer


@dataclass(frozen=True)
class PathOptions:
    """How paths of strengths are finished."""

    late_seconds: float = 0.3
    """Seconds for which known trees are still measured after the time of a path is over."""

    paths_per_finalist: int = 5
    """For each strength the best path is finished, and one more for each so many paths."""


OPTIONS = PathOptions()


def solve_path(
    problems: Sequence[TrainingProblem],
    solver: Solver,
    *,
    keep: int = 3,
    n_starts: int = 10,
    seed: int = 0,
    budget: Budget | None = None,
    n_jobs: int | None = None,
    observer: Observer | None = None,
    thorough: bool = True,
    tight: bool = True,
) -> list[Solution]:
    """Solve neighbouring problems one after the other, each from the best trees of the last.

    The first is solved by multistart; of its solutions the ``keep`` best of different objective
    go on, each as the start of the next problem, followed by a search. The problems may differ
    in their penalties only, so that the last tree is feasible for the next one. On the way back
    every problem is tried from the tree of its other neighbour. The best solution of each problem
    is returned; if the budget runs out or the user interrupts, those of the problems that were
    reached. Without ``thorough`` there is neither search nor way back: trees of many paths are to
    be compared, and each path must be cheap. Where a solver follows whole paths by itself, trees
    end ``tight`` if they are to be kept.
    """
    budget, observer = budget or Budget(), observer or Observer()
    if solver.follows(problems[0]):
        return _follow(problems, solver, n_starts, seed, budget, observer, tight)
    first = multistart(
        problems[0],
        solver,
        n_starts=n_starts,
        seed=seed,
        budget=budget,
        n_jobs=n_jobs,
        observer=observer,
    )
    if thorough:
        best = hop(problems[0], solver, first, seed=seed, budget=budget, observer=observer)
    else:
        best = best_solution(first, budget)
    front = distinct([best, *first], keep)
    path = [front[0]]
    with budget.interruptible():  # between two solves, or in a solver that does not expect it
        observer.point_ended(problems[0], front[0])
        for problem in problems[1:]:
            if budget.exhausted:
                break
            with one_blas_thread():
                found = [solver.solve(problem, Start(s.parameters), budget) for s in front]
            if thorough:
                found.append(_as_it_is(problem, path[-1], budget))
            if any(solution.status is Status.INTERRUPTED for solution in found):
                budget.stop()
            if thorough:
                best = hop(problem, solver, found, seed=seed, budget=budget)
            elif any(s.status.usable for s in found) or budget.exhausted:
                best = best_solution(found, budget)
            else:  # no tree so sparse meets the rates: what was found before can be compared
                break
            front = distinct([best, *(s for s in found if s.status.usable)], keep)
            path.append(best)
            observer.point_ended(problem, best)
        for i in range(len(path) - 2, -1, -1) if thorough else ():
            if budget.exhausted:
                break
            with one_blas_thread():
                other = solver.solve(problems[i], Start(path[i + 1].parameters), budget)
            path[i] = best_solution([path[i], other])
    return path


def _follow(
    problems: Sequence[TrainingProblem],
    solver: Solver,
    n_starts: int,
    seed: int,
    budget: Budget,
    observer: Observer,
    tight: bool,
) -> list[Solution]:
    """The same with a solver that follows the whole path from each start.

    Paths are compared before the last digits of their trees, which take longest; for each problem
    the best few are finished. To leave time for that, no start is begun in the second half of a
    time limit.
    """
    refuse_unsupported(solver, problems[0])
    paths: list[tuple[Path, list[Solution]]] = []
    observer.starting(n_starts)
    with one_blas_thread():
        with budget.interruptible(paths):
            for number, child in enumerate(np.random.SeedSequence(seed).spawn(n_starts)):
                late = tight and budget.remaining < budget.elapsed
                if paths and (late or budget.exhausted):
                    break
                start = numbered_start(problems[0], solver, number, child)
                path = solver.path(problems[0], start, budget)
                paths.append((path, path.trees(problems, tight=False)))
        length = len(paths[0][1])
        # What a start that was cut short has reached is no better than what is there.
        whole = [(path, trees) for path, trees in paths if len(trees) == length]
        best: list[Solution] = []
        ended = np.inf
        for at, problem in enumerate(problems[:length]):
            if budget.exhausted:  # who has pressed Ctrl-C does not wait for thousands of points
                ended = min(ended, budget.now())
                if budget.now() - ended > OPTIONS.late_seconds:
                    break
            ranked = sorted(whole, key=lambda pair: pair[1][at].objective)
            some = [
                (path, trees[at])
                for path, trees in ranked[: 1 + len(paths) // OPTIONS.paths_per_finalist]
            ]
            best.append(_last_digits(problem, some, budget) if tight else some[0][1])
        if tight and not budget.exhausted:
            _share_trees(problems, best, budget)
    if tight and len(paths) < n_starts:
        best = [replace(solution, status=_cut_short(budget)) for solution in best]
    for problem, solution in zip(problems, best, strict=False):
        observer.point_ended(problem, solution)
    return best


def _cut_short(budget: Budget) -> Status:
    return Status.INTERRUPTED if budget.stopped else Status.TIME_LIMIT


def _last_digits(
    problem: TrainingProblem, some: Sequence[tuple[Path, Solution]], budget: Budget
) -> Solution:
    """The best of the first trees of some paths after their last descents.

    Where there is no time for that, the first as it is.
    """
    tree = some[0][1]
    found: list[Solution] = []
    with budget.interruptible():
        for path, _ in some:
            if not budget.exhausted:
                found += path.trees([problem], tight=True)
    if budget.exhausted and not any(one.objective <= tree.objective for one in found):
        return replace(_as_it_is(problem, tree, budget), status=_cut_short(budget))
    return best_solution(found, budget)


def _share_trees(problems: Sequence[TrainingProblem], best: list[Solution], budget: Budget) -> None:
    """No problem is left with a tree that is worse there than that of a neighbour."""
    forward = [(i, i - 1) for i in range(1, len(best))]
    for here, there in forward + [(b, a) for a, b in reversed(forward)]:
        if problems[here].objective(best[there].parameters) < best[here].objective:
            best[here] = _as_it_is(problems[here], best[there], budget)


def _as_it_is(problem: TrainingProblem, known: Solution, budget: Budget) -> Solution:
    """A tree that is known from a neighbouring problem, or roughly, measured on this one."""
    return Solution.measure(
        problem,
        known.parameters,
        Status.ACCEPTABLE,
        tol=budget.tol,
        n_iter=0,
        seconds=0.0,
        solver=known.solver,
        message="as it was known",
    )
