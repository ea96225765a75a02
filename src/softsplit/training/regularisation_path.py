"""Regularisation paths: problems that differ in their strengths, solved with warm starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
from softsplit.support.parallel import n_threads, one_blas_thread
from softsplit.training.best import best_solution, distinct
from softsplit.training.multistart import multistart, numbered_start, search_around
from softsplit.training.observer import Observer

LATE_SECONDS = 0.3
"""Seconds for which known trees are still measured after the time of a path is over."""

PATHS_PER_FINALIST = 5
"""For each strength the best path is finished, and one more for each so many paths."""


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
    """Solve problems in order, each from the best trees of the one before.

    The first problem is solved by multistart. Its ``keep`` best solutions of different objective
    start the next problem, followed by a search, and so on. The problems differ in their penalties
    only, so that a tree that is feasible for one is feasible for all. A second pass, backwards,
    tries every problem from the tree of its other neighbour.

    1. Multistart on the first problem, and a search around its best trees.
    2. For each further problem descents from the best trees before it, that tree as it is, and a
       search.
    3. Backwards, for each problem a descent from the tree of the next one.

    Return the best solution of each problem; if the budget ends, of those that were reached.
    Without ``thorough`` there is neither search nor second pass, for paths that are only compared.
    A solver that follows whole paths (``Solver.follows``) does so instead; its trees descend to
    their last digits if ``tight``.
    """
    budget, observer = budget or Budget(), observer or Observer()
    if solver.follows(problems[0]):
        return _follow(problems, solver, n_starts, seed, budget, observer, tight)
    # 1. the first problem
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
        best = search_around(
            problems[0], solver, first, seed=seed, budget=budget, observer=observer
        )
    else:
        best = best_solution(first, budget, problem=problems[0])
    front = distinct([best, *first], keep)
    path = [front[0]]
    with (
        budget.interruptible()
    ):  # Ctrl-C between two solves, or in a solver that does not handle it
        observer.point_ended(problems[0], front[0])
        # 2. the others, forwards
        for problem in budget.while_left(problems[1:]):
            # a. From the best trees of the problem before; a search adds to them.
            with one_blas_thread():
                solutions = [solver.solve(problem, Start(s.parameters), budget) for s in front]
            if thorough:
                solutions.append(_as_it_is(problem, path[-1], budget))
            # b. The best tree; the path ends where none as sparse meets the rates.
            if any(solution.status is Status.INTERRUPTED for solution in solutions):
                budget.stop()
            if thorough:
                best = search_around(problem, solver, solutions, seed=seed, budget=budget)
            elif any(s.status.usable for s in solutions):
                best = best_solution(solutions, budget, problem=problem)
            else:  # no tree this sparse meets the rates: keep what was found before
                break
            # c. The best trees, which lead on.
            front = distinct([best, *(s for s in solutions if s.status.usable)], keep)
            path.append(best)
            observer.point_ended(problem, best)
        # 3. backwards
        backwards = range(len(path) - 2, -1, -1) if thorough else ()
        for i in budget.while_left(backwards):
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
    """``solve_path`` with a solver that follows the whole path from each start.

    Paths are compared before the last digits of their trees, which take longest; for each problem
    only the best few are finished. To leave time for that, no start begins in the second half of a
    time limit.

    1. Each start leads to a path, and its trees are compared as they are.
    2. For each problem the trees of the best paths descend to their last digits.
    3. Neighbours share trees, and a run that was cut short says so.
    """
    refuse_unsupported(solver, problems[0])
    paths: list[tuple[Path, list[Solution]]] = []
    observer.starting(n_starts)
    with one_blas_thread():
        with budget.interruptible(paths):
            # 1. paths
            children = np.random.SeedSequence(seed).spawn(n_starts)
            for number, child in enumerate(budget.while_left(children, at_least=1)):
                if paths and tight and budget.remaining < budget.elapsed:
                    break
                start = numbered_start(problems[0], solver, number, child)
                path = solver.path(problems[0], start, budget)
                paths.append((path, path.trees(problems, tight=False)))
                observer.part_ended()
        length = len(paths[0][1])
        # A start that was cut short has fewer trees than the others, and is not compared.
        whole = [(path, trees) for path, trees in paths if len(trees) == length]
        # 2. last digits
        best: list[Solution] = []
        ended = np.inf
        observer.working("finishing the trees of the path", length if tight else 0)
        for at, problem in enumerate(problems[:length]):
            if budget.exhausted:  # after Ctrl-C, do not measure thousands of points
                ended = min(ended, budget.now())
                if budget.now() - ended > LATE_SECONDS:
                    break
            ranked = sorted(whole, key=lambda pair: pair[1][at].objective)
            some = [
                (path, trees[at]) for path, trees in ranked[: 1 + len(paths) // PATHS_PER_FINALIST]
            ]
            best.append(_last_digits(problem, some, budget) if tight else some[0][1])
            observer.part_ended()
        # 3. neighbours
        if tight:
            _share_trees(problems, best, budget)
    if tight and len(paths) < n_starts:
        best = [replace(solution, status=_cut_short(budget)) for solution in best]
    for problem, solution in zip(problems, best, strict=False):
        observer.point_ended(problem, solution)
    return best


def solve_each(
    problems: Sequence[TrainingProblem],
    solver: Solver,
    *,
    n_starts: int,
    seed: int,
    budget: Budget,
    n_jobs: int | None = None,
) -> list[Solution]:
    """Solve each problem as ``multistart`` solves it alone, with the solver's paths in common.

    For a solver that follows whole paths: the tree of a start at one strength is the same whichever
    other strengths are asked for. Return fewer solutions if the budget ends.
    """
    refuse_unsupported(solver, problems[0])
    trees: dict[int, list[Solution]] = {}

    def run(job: tuple[int, np.random.SeedSequence]) -> None:
        start = numbered_start(problems[0], solver, *job)
        trees[job[0]] = solver.path(problems[0], start, budget).trees(problems, tight=True)

    jobs = list(enumerate(np.random.SeedSequence(seed).spawn(n_starts)))
    with budget.interruptible(trees), one_blas_thread():
        workers = min(n_threads(n_jobs, problems[0].rows.n_rows), n_starts)
        budget.in_threads(run, jobs, workers, at_least=1)
    lists = [trees[number] for number in sorted(trees)]
    length = len(problems) if len(lists) == n_starts else 0
    length = max(1, min([length, *map(len, lists)]))
    return [
        search_around(
            problem,
            solver,
            [one[at] for one in lists if len(one) > at],
            seed=seed,
            budget=budget,
        )
        for at, problem in enumerate(problems[:length])
    ]


def _cut_short(budget: Budget) -> Status:
    return Status.INTERRUPTED if budget.stopped else Status.TIME_LIMIT


def _last_digits(
    problem: TrainingProblem, some: Sequence[tuple[Path, Solution]], budget: Budget
) -> Solution:
    """Finish the trees of some paths for ``problem`` and return the best.

    Where no time is left, return the first tree as it is.
    """
    tree = some[0][1]
    better: list[Solution] = []
    with budget.interruptible():
        for path, _ in budget.while_left(some):
            better += path.trees([problem], tight=True)
    if budget.exhausted and not any(one.objective <= tree.objective for one in better):
        return replace(_as_it_is(problem, tree, budget), status=_cut_short(budget))
    return best_solution(better, budget, problem=problem)


def _share_trees(problems: Sequence[TrainingProblem], best: list[Solution], budget: Budget) -> None:
    """Replace the tree of a problem by that of a neighbour where the latter is better there."""
    forward = [(i, i - 1) for i in range(1, len(best))]
    pairs = forward + [(b, a) for a, b in reversed(forward)]
    for here, there in budget.while_left(pairs):
        known, problem = best[there].parameters, problems[here]
        if problem.allows(known) and problem.objective(known) < best[here].objective:
            best[here] = _as_it_is(problems[here], best[there], budget)


def _as_it_is(problem: TrainingProblem, known: Solution, budget: Budget) -> Solution:
    """Measure a known tree on this problem, without a descent."""
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
