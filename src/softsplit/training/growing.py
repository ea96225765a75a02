"""Few rows first: starts race on samples that grow, and the best tree is finished on all rows.

All starts are made on the first sample, the best few of them again on the next, which is larger,
and so on; a search follows on the last one, which may be all rows, and the best tree of all, or the
best few, descend on all rows to their last digits. Each of these steps has an even
part of the time that is left; a start that it cuts short is compared with its tree of the sample
before, on the rows of this one. Samples are the first rows of each class in canonical
order, which are as good as random, and their weights add up to those of all rows, so that
objectives are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution, Solver, Start
from softsplit.support.parallel import n_threads, one_blas_thread
from softsplit.training.multistart import distinct, hop, multistart
from softsplit.training.observer import Observer

PROMOTED = (5, 3)
"""Starts that are made again on the second sample, and on the third."""

FINISHED = 3
"""Trees that are finished where starts were compared on all rows only, roughly; one less for each
sample on which they were compared before."""

ROUGH = 1e-3
"""Tolerance on samples: the last digits there are not those of all rows."""


def samples_for(problem: TrainingProblem, solver: Solver) -> Sequence[int]:
    """Sizes of the samples on which a solver looks for trees; none where it takes all rows at once.

    The last one may be that of all rows.
    """
    return solver.sample_sizes(problem) if problem.block is None else ()


def grow(
    problem: TrainingProblem,
    solver: Solver,
    sizes: Sequence[int],
    *,
    n_starts: int,
    seed: int | np.random.SeedSequence,
    budget: Budget,
    n_jobs: int | None = None,
    observer: Observer | None = None,
) -> tuple[Solution, list[Solution]]:
    """The best tree on all rows, and where each start has ended, on the largest sample it saw.

    Where rows are more than the last sample and ``n_jobs`` is None, all cores are used.
    """
    many = problem.rows.n_rows > sizes[-1]
    observer, threads = observer or Observer(), n_threads(n_jobs) if many else n_jobs
    rough = replace(budget, tol=max(budget.tol, ROUGH), rough=True)
    found: dict[int, Solution] = {}
    numbers = list(range(n_starts))
    if n_starts <= PROMOTED[0]:
        sizes = sizes[-1:]
    for stage, size in enumerate(sizes):
        if stage:
            ranked = sorted(set(numbers) & set(found), key=lambda number: _rank(found[number]))
            numbers = sorted(ranked[: PROMOTED[stage - 1]])
        few = problem.on_sample(size) if size < problem.rows.n_rows else problem
        part = _part(rough, len(sizes) - stage + 2)
        ends = multistart(
            few, solver, n_starts=n_starts, seed=seed, budget=part, n_jobs=threads,
            observer=observer if size == sizes[0] else None, numbers=numbers,
        )  # fmt: skip
        made = dict(zip(numbers, ends, strict=False))
        if part.exhausted:  # trees of fewer rows may have come further, or be all there is
            for number in set(numbers) & set(found):
                known = replace(found[number], objective=few.objective(found[number].parameters))
                made[number] = min(made.get(number, known), known, key=_rank)
        found |= made
        if budget.exhausted:
            break
    last = [found[number] for number in numbers if number in found]
    best = hop(few, solver, last, seed=seed, budget=_part(rough, 2), observer=observer)
    whole = [finished(problem, solver, best, budget, n_jobs)]
    for other in distinct(last, FINISHED - stage)[1:] if few is problem else ():
        if not budget.exhausted:
            whole.append(finished(problem, solver, other, budget, n_jobs))
    best = replace(min(whole, key=_rank), search=best.search)
    return best, [found[number] for number in sorted(found)]


def _rank(solution: Solution) -> tuple[bool, float]:
    return not solution.status.usable, solution.objective


def _part(budget: Budget, count: int) -> Budget:
    """A budget for one of so many steps that share the time that is left."""
    if budget.time_limit is None:
        return budget
    return replace(budget, time_limit=budget.elapsed + budget.remaining / count)


def finished(
    problem: TrainingProblem,
    solver: Solver,
    found: Solution,
    budget: Budget,
    n_jobs: int | None = None,
) -> Solution:
    """Where a tree that was found on a sample leads on all rows, with all threads on them."""
    rows = problem.rows
    if hasattr(rows, "in_threads"):
        problem = replace(problem, rows=rows.in_threads(n_threads(n_jobs)))
    with one_blas_thread():
        return solver.solve(problem, Start(found.parameters), budget)
