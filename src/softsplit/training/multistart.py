"""Multistart: solve a problem from many starts, then search around the best trees.

Randomness enters here and nowhere else. Start ``i`` draws from the i-th child of one seed sequence,
so its result depends on the seed and on ``i`` alone, not on ``n_starts`` or ``n_jobs``. Where the
solver explores structures with its first starts, later starts put the classes on the same leaves as
the best of them.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import (
    PROMOTED,
    Budget,
    Solution,
    Solver,
    Start,
    Status,
    refuse_unsupported,
)
from softsplit.solvers.starts.rules import draw_hops, draw_like, draw_start
from softsplit.solvers.stopping import GIVEN_UP, EndPoints, Stop
from softsplit.support.arrays import FloatArray
from softsplit.support.parallel import n_threads, n_workers, one_blas_thread
from softsplit.training.best import best_solution, cheapest_to_measure, distinct, varied
from softsplit.training.observer import Observer
from softsplit.tree.parameters import TreeParameters

logger = logging.getLogger(__name__)


HOP_KEY = 2**31
"""Spawn key of the hops' random numbers: beyond any number of starts."""


FRONT_SIZE = 5
"""Solutions of different objective from which perturbations start."""


class StartJob(NamedTuple):
    """A start to run; with ``leaves``, it puts the classes on the same leaves as that tree.

    A ``promoted`` one begins at that tree.
    """

    number: int
    child: np.random.SeedSequence
    rule: str
    leaves: FloatArray | None = None
    promoted: TreeParameters | None = None


def multistart(
    problem: TrainingProblem,
    solver: Solver,
    *,
    n_starts: int = 10,
    seed: int | np.random.SeedSequence = 0,
    budget: Budget | None = None,
    n_jobs: int | None = None,
    observer: Observer | None = None,
    numbers: Sequence[int] | None = None,
    promoted: Mapping[int, TreeParameters] | None = None,
) -> list[Solution]:
    """Run ``solver`` from ``n_starts`` starts and return one Solution each, in their order.

    With ``numbers``, run only the starts with these numbers; those that are ``promoted`` go on from
    their trees of fewer rows. The time limit of ``budget`` covers
    all starts together; those that would begin after it are not run, except the first.
    """
    refuse_unsupported(solver, problem)
    budget = budget or Budget()
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    children = _children(sequence, n_starts)
    chosen = range(n_starts) if numbers is None else numbers
    # Monotone effects on the expected cost fix the classes of all leaves.
    fixed = problem.order is not None and problem.anchor is not None
    leaves = problem.anchor.leaf_values if fixed and problem.anchor is not None else None
    known = promoted or {}
    jobs = [
        StartJob(i, children[i], solver.start_rule(problem, i), leaves, known.get(i))
        for i in chosen
    ]
    explorers = len(jobs)
    if numbers is None:
        explorers = solver.n_exploring(problem) or explorers
    observer = observer or Observer()
    observer.starting(len(jobs))
    first, rest = jobs[:explorers], jobs[explorers:]
    ends = _run_jobs(problem, solver, first, budget, n_jobs, observer)
    if not rest:
        return ends
    with budget.interruptible():
        rest = _following(rest, ends)
        ends = ends + _run_jobs(problem, solver, rest, budget, n_jobs, observer)
    return ends


def _following(rest: Sequence[StartJob], ends: Sequence[Solution]) -> list[StartJob]:
    """Return the later starts with the structure of the best first one, if any was usable."""
    usable = [solution for solution in ends if solution.status.usable]
    if not usable:
        return list(rest)
    leaves = min(usable, key=lambda solution: solution.objective).parameters.leaf_values
    return [job._replace(leaves=leaves) for job in rest]


def _run_jobs(
    problem: TrainingProblem,
    solver: Solver,
    jobs: Sequence[StartJob],
    budget: Budget,
    n_jobs: int | None,
    observer: Observer,
) -> list[Solution]:
    """Run starts in this thread, in threads or in processes; return their ends in order."""
    finished: dict[int, Solution] = {}
    at_least = sum(job.number == 0 for job in jobs)  # the first of all starts is always made

    def keep(job: StartJob, solution: Solution | None) -> None:
        if solution is not None:
            finished[job.number] = solution
            _tell(observer, job, solution)
            if solution.status is Status.INTERRUPTED:
                budget.stop()

    def run(job: StartJob) -> None:
        keep(job, _run_start(problem, solver, job, budget))

    if solver.releases_gil:
        workers = max(1, min(n_threads(n_jobs, problem.rows.n_rows), len(jobs)))
    else:
        workers = n_workers(n_jobs, len(jobs))
    with one_blas_thread(), budget.interruptible(finished):
        if workers == 1 or solver.releases_gil:
            budget.in_threads(run, jobs, workers, at_least)
        else:
            _in_processes(problem, solver, jobs, budget, workers, keep)
    return [finished[number] for number in sorted(finished)]


def _in_processes(
    problem: TrainingProblem,
    solver: Solver,
    jobs: Sequence[StartJob],
    budget: Budget,
    workers: int,
    keep: Callable[[StartJob, Solution | None], None],
) -> None:
    """Run starts in processes; ends are kept as they come, so that none waits for a slow one."""
    parallel = Parallel(n_jobs=workers, prefer="processes", return_as="generator_unordered")
    ends = parallel(delayed(_run_numbered)(problem, solver, job, budget) for job in jobs)
    try:
        for job, solution in ends:
            keep(job, solution)
    except KeyboardInterrupt:
        with warnings.catch_warnings():  # joblib warns that it drops the rest
            warnings.simplefilter("ignore")
            ends.close()
        raise


def _children(sequence: np.random.SeedSequence, count: int) -> list[np.random.SeedSequence]:
    """Return the first ``count`` children of a seed sequence, the same at every call."""
    fresh = np.random.SeedSequence(sequence.entropy, spawn_key=sequence.spawn_key)
    return fresh.spawn(count)


def _run_numbered(
    problem: TrainingProblem, solver: Solver, job: StartJob, budget: Budget
) -> tuple[StartJob, Solution | None]:
    too_late = job.number > 0 and budget.exhausted
    return job, None if too_late else _run_start(problem, solver, job, budget)


def _run_start(problem: TrainingProblem, solver: Solver, job: StartJob, budget: Budget) -> Solution:
    start = _drawn(problem, solver, job)
    if solver.releases_gil:
        return solver.solve(problem, start, budget)
    else:  # possibly in another process, which has its own limit of BLAS threads
        with one_blas_thread():
            return solver.solve(problem, start, budget)


def numbered_start(
    problem: TrainingProblem,
    solver: Solver,
    index: int,
    child: np.random.SeedSequence,
    *,
    grown: bool = False,
) -> Start:
    """Draw the start with this number from its own random numbers.

    With ``grown`` the solver grows a tree, and falls back to the drawn one if its budget ends.
    """
    job = StartJob(index, child, solver.start_rule(problem, index))
    if not grown:
        return _drawn(problem, solver, job)
    return replace(_drawn(problem, solver, job, candidates=0), rule="grown")


def _drawn(
    problem: TrainingProblem, solver: Solver, job: StartJob, candidates: int | None = None
) -> Start:
    rng = np.random.default_rng(job.child)
    if job.promoted is not None:
        start = Start(job.promoted, PROMOTED)
    elif job.leaves is None:
        further = solver.n_candidates(problem) if candidates is None else candidates
        start = draw_start(job.rule, problem, rng, further)
    else:
        start = draw_like(problem, rng, job.leaves)
    return replace(start, seed=int(job.child.generate_state(1)[0]))


def _tell(observer: Observer, job: StartJob, solution: Solution) -> None:
    observer.start_ended(job.number + 1, job.rule, solution)
    logger.info(
        "start %d (%s): objective %.6g, %s, %.3g s",
        job.number + 1,
        job.rule,
        solution.objective,
        solution.status.name,
        solution.seconds,
    )


def search_around(
    problem: TrainingProblem,
    solver: Solver,
    solutions: Sequence[Solution],
    *,
    seed: int | np.random.SeedSequence = 0,
    budget: Budget | None = None,
    observer: Observer | None = None,
) -> Solution:
    """Return the best of ``solutions`` after a search around the best few, if the solver searches.

    ``Solution.search`` of the result says what was found and why the search stopped.
    """
    budget = budget or Budget()
    tie = budget.tol * problem.cost_unit
    best = cheapest_to_measure(problem, solutions, best_solution(solutions, budget, tie, problem))
    ends = EndPoints(resolution=tie)
    explorers = solver.n_exploring(problem)
    for number, solution in enumerate(solutions):
        ended = ends.follower_ended if 0 < explorers <= number else ends.start_ended
        ended(solution.objective if solution.status.usable else GIVEN_UP)
    if not budget.exhausted and solver.searches:
        ends.least = solver.least_chance(problem) / len(solutions)
        best = _searched(problem, solver, solutions, best, ends, seed, budget, observer)
    return replace(best, search=ends.summary())


def _searched(
    problem: TrainingProblem,
    solver: Solver,
    solutions: Sequence[Solution],
    best: Solution,
    ends: EndPoints,
    seed: int | np.random.SeedSequence,
    budget: Budget,
    observer: Observer | None,
) -> Solution:
    """Return ``best``, or a better tree that the search around the best few finds."""
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    # The spawn key lies beyond those of all starts, so that no start shares these random numbers.
    key = (*sequence.spawn_key, HOP_KEY)
    rng = np.random.default_rng(np.random.SeedSequence(sequence.entropy, spawn_key=key))
    front = varied(distinct([s for s in solutions if s.status.usable], len(solutions)), FRONT_SIZE)
    # A search of no steps is not reported.
    watching = observer if observer and not ends.unlikely else Observer()
    with budget.interruptible():  # outside the perturbations, which see to it themselves
        watching.searching()
        with one_blas_thread():
            better = solver.improve(problem, front, draw_hops(rng), ends, budget, watching.hopped)
        if better.objective < best.objective - budget.tol * problem.cost_unit:
            best = better
        watching.search_ended(replace(best, search=ends.summary()))
        return best
    ends.stop = Stop.INTERRUPTED
    return best
