"""Progressive sampling: starts compete on samples that grow, and the best are finished on all rows.

Samples grow as in Provost, Jensen and Oates (1999), and the starts that go on to the next one are
chosen as in successive halving (Jamieson and Talwalkar 2016): all starts are made on the first
sample, the best few of them again on the next, and so on. A search follows on the last sample,
which may be all rows, and the best tree, or the best few, descend on all rows to their last digits.
Each of these phases gets an even part of the time that is left; a start that it cuts short is
compared with its tree of the sample before, on the rows of this one. Samples are the first rows of
each class in canonical order, which are as good as random, and their weights add up to those of all
rows, so that objectives are comparable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution, Solver, Start
from softsplit.support.parallel import n_threads, one_blas_thread
from softsplit.training.best import distinct
from softsplit.training.multistart import multistart, numbered_start, search_around
from softsplit.training.observer import Observer
from softsplit.tree.parameters import TreeParameters

PROMOTED = 4, 2
"""Starts that are made again on the second sample, and on the third."""

FINISHED = 3
"""Trees that are finished where starts were compared, roughly, on all rows only; one less for each
sample on which they were compared before."""

ROUGH_TOL = 1e-3
"""Tolerance on samples: the last digits there are not those of all rows."""

GROWN_ROWS, GROWN_PART = 0.4, 1.5
"""Where the time limit cut all starts short in their races, one tree is grown level by level on
this part of the first sample, in the time that is left divided by ``GROWN_PART``."""


def sample_sizes(problem: TrainingProblem, solver: Solver) -> Sequence[int]:
    """Sizes of the samples on which ``solver`` compares starts; none where it takes all rows.

    The last one may be that of all rows.
    """
    return solver.sample_sizes(problem) if problem.block is None else ()


def progressive_sampling(
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
    """Return the best tree on all rows, and the end of each start on the largest sample it saw.

    1. The starts that are left run on a sample, each phase in its part of the time.
    2. Where time cut them short, trees of the sample before take part.
    3. If no tree of the first sample asks anything, one is grown in the time that is left.
    4. A search around the best on the last sample, and the best trees descend on all rows.
    """
    observer = observer or Observer()
    threads = n_threads(n_jobs)  # starts take seconds here, however few the rows are
    rough = replace(budget, tol=max(budget.tol, ROUGH_TOL), rough=True)
    kept: dict[int, Solution] = {}
    numbers = list(range(n_starts))
    if n_starts <= PROMOTED[0]:
        sizes = sizes[-1:]
    for rung, size in enumerate(budget.while_left(sizes, at_least=1)):
        if rung:
            ranked = sorted(set(numbers) & set(kept), key=lambda number: _rank(kept[number]))
            numbers = sorted(ranked[: PROMOTED[rung - 1]])
            observer.working(f"the best {len(numbers)} of {n_starts} starts on {size:,} rows")
        # 1. starts
        few = problem.on_sample(size) if size < problem.rows.n_rows else problem
        part = _part(rough, len(sizes) - rung + 2)
        ends = multistart(
            few, solver, n_starts=n_starts, seed=seed, budget=part, n_jobs=threads,
            observer=observer if size == sizes[0] else None, numbers=numbers,
            promoted=_trees(kept) if solver.eliminates else None,
        )  # fmt: skip
        trees = dict(zip(numbers, ends, strict=False))
        # 2. trees of fewer rows may have come further, or be all there is
        cut = part.exhausted
        if cut:
            for number in set(numbers) & set(kept):
                known = replace(kept[number], objective=few.objective(kept[number].parameters))
                trees[number] = min(trees.get(number, known), known, key=_rank_of_cut)
        kept |= trees
        # 3. one tree instead of races that were all cut short
        nowhere = cut and not any(map(_asks, kept.values()))
        if rung == 0 and nowhere and solver.follows(few) and not budget.exhausted:
            observer.working("growing one tree in the time that is left")
            fewer = problem.on_sample(int(GROWN_ROWS * few.rows.n_rows))
            child = np.random.SeedSequence(seed).spawn(1)[0] if isinstance(seed, int) else seed
            start = numbered_start(fewer, solver, 0, child, grown=True)
            path = solver.path(fewer, start, _part(rough, GROWN_PART), compared=True)
            grown = path.trees([fewer], tight=False)[0]
            kept[0] = replace(grown, objective=few.objective(grown.parameters))
            numbers = [0]
    # 4. search, last digits
    last = [kept[number] for number in numbers if number in kept]
    best = search_around(few, solver, last, seed=seed, budget=_part(rough, 2), observer=observer)
    observer.working("finishing the best tree on all rows")
    whole = [finished_on_all_rows(problem, solver, best, budget, n_jobs)]
    others = distinct(last, FINISHED - rung)[1:] if few is problem else []
    for other in budget.while_left(others):
        whole.append(finished_on_all_rows(problem, solver, other, budget, n_jobs))
    best = replace(min(whole, key=_rank), search=best.search)
    return best, [kept[number] for number in sorted(kept)]


def _trees(solutions: Mapping[int, Solution]) -> dict[int, TreeParameters]:
    """Trees of starts that ask something, from which they go on."""
    return {number: one.parameters for number, one in solutions.items() if _asks(one)}


def _rank_of_cut(solution: Solution) -> tuple[bool, bool, float]:
    """Of trees that were cut short, one that looks at a feature comes before the constant tree."""
    return (not _asks(solution), *_rank(solution))


def _asks(solution: Solution) -> bool:
    """Whether a tree looks at any feature."""
    return bool(np.any(solution.parameters.weights))


def _rank(solution: Solution) -> tuple[bool, float]:
    return not solution.status.usable, solution.objective


def _part(budget: Budget, count: float) -> Budget:
    """Return a budget for one of ``count`` phases that share the time that is left."""
    if budget.time_limit is None:
        return budget
    return replace(budget, time_limit=budget.elapsed + budget.remaining / count)


def finished_on_all_rows(
    problem: TrainingProblem,
    solver: Solver,
    tree: Solution,
    budget: Budget,
    n_jobs: int | None = None,
) -> Solution:
    """Return ``tree``, a tree of a sample, after its descent on all rows, with all threads.

    Where no time is left it stays as it is, measured on all rows.
    """
    rows = problem.rows
    if hasattr(rows, "in_threads"):
        problem = replace(problem, rows=rows.in_threads(n_threads(n_jobs, rows.n_rows)))
    with one_blas_thread():
        if budget.exhausted:
            return Solution.measure(
                problem, tree.parameters, budget.verdict, tol=budget.tol, n_iter=tree.n_iter,
                seconds=tree.seconds, solver=tree.solver, message=tree.message,
            )  # fmt: skip
        return solver.solve(problem, Start(tree.parameters), budget)
