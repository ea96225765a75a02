"""Paths of trees along strengths: on the rows of a fold, and from trees of folds on all rows.

Strengths are fractions of a unit (strengths.py). A solver that follows paths gives the trees of all
strengths from one start; otherwise strengths are solved from weak to strong with warm starts and
without a search, so that many paths can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softsplit.engines.compiled import CompiledRows
from softsplit.formulations import formulation_of
from softsplit.formulations.model_settings import ModelSettings
from softsplit.problem.problem import TrainingProblem
from softsplit.selection.scoreboard import Candidate
from softsplit.selection.strengths import Pair, shared, strength_unit, strengths_at
from softsplit.solvers.base import Budget, Path, Solution, Solver, Start, refuse_unsupported
from softsplit.support.row_budgets import ROWS
from softsplit.training.best import NoFeasibleTreeError, best_solution
from softsplit.training.multistart import numbered_start
from softsplit.training.preparation import Prepared, prepare
from softsplit.training.progressive_sampling import finished_on_all_rows, sample_sizes
from softsplit.training.regularisation_path import solve_path
from softsplit.training.rows import EngineRows, Rows
from softsplit.training.run import Run
from softsplit.tree.parameters import TreeParameters

FOLLOWED = 1
"""Trees of folds with the lowest objective on all rows that are trained further where rows are
many, in addition to a grown one: on magic, pendigits, shuttle and covertype the second-best always
ended with a higher objective than the best."""


def problems_along(
    prepared: Prepared, shares: Pair, fractions: Sequence[float], ridges: Sequence[float] = ()
) -> list[TrainingProblem]:
    """Return the problem at each fraction and, with ``ridges``, for each of them."""
    problem = prepared.problem
    unit = strength_unit(problem)
    scaled = [problem.row_unit * ridge for ridge in ridges] or [problem.ridge]
    penalties = [problem.penalties.with_strengths(*shared(shares, f * unit)) for f in fractions]
    return [replace(problem, penalties=pair, ridge=ridge) for pair in penalties for ridge in scaled]


def fold_paths(
    prepared: Prepared,
    run: Run,
    shallower: Sequence[Path] = (),
    *,
    compared: bool = True,
    grown: int = 0,
) -> list[Path]:
    """Return a path from each start of a run.

    ``shallower`` are the paths of a smaller depth on the same rows, whose trees the starts grow.
    The first ``grown`` starts use the rule "grown": no other start competes with the grown tree.
    """
    problem, solver = prepared.problem, run.solver
    refuse_unsupported(solver, problem)
    children = np.random.SeedSequence(run.seed).spawn(run.n_starts)
    paths: list[Path] = []
    for number, child in enumerate(children):
        start = numbered_start(problem, solver, number, child, grown=number < grown)
        if number < len(shallower):
            start = replace(start, shallower=shallower[number].winner)
        paths.append(solver.path(problem, start, run.budget, compared=compared))
    return paths


def best_trees(
    paths: Sequence[Path], problems: Sequence[TrainingProblem], budget: Budget
) -> list[Solution]:
    """Return the best tree of several paths for each problem, for comparison only."""
    per_path = [path.trees(problems, tight=False) for path in paths]
    if any(len(one) < len(problems) for one in per_path):
        return max(per_path, key=len)  # the budget has ended
    return [
        best_solution(trees, budget, problem=problem)
        for problem, *trees in zip(problems, *per_path, strict=True)
    ]


def best_path(
    paths: Sequence[Path],
    problem: TrainingProblem,
    budget: Budget,
    workers: int = 1,
    *,
    tight: bool = True,
) -> Solution:
    """Return the tree of the path with the lowest objective, finished if ``tight``.

    Once the budget is exhausted, no further path is followed.
    """
    objectives: dict[int, float] = {0: np.inf}

    def follow(number: int) -> None:
        objectives[number] = paths[number].trees([problem], tight=False)[0].objective

    with budget.interruptible():  # the best of those followed by then is kept
        budget.in_threads(follow, range(len(paths)), workers)
    return paths[min((value, number) for number, value in objectives.items())[1]].trees(
        [problem], tight=tight
    )[0]


def with_ridge(prepared: Prepared, candidate: Candidate) -> Prepared:
    """Return the problem with the ridge of a candidate."""
    if not candidate.formulation.tunes_ridge:
        return prepared
    problem = prepared.problem
    return replace(prepared, problem=replace(problem, ridge=problem.row_unit * candidate.ridge))


def nearest_strength(known: Mapping[float, Any], fraction: float) -> float:
    """Return the next weaker strength among those known, or the weakest of all."""
    weaker = [near for near in known if near <= fraction]
    return max(weaker) if weaker else min(known)


def whole_trees(trees: Sequence[Solution]) -> list[Solution]:
    """Return the trees before the first that the budget cut short."""
    cut = [solution.status.cut_short for solution in trees]
    return list(trees[: cut.index(True)] if any(cut) else trees)


def configured(settings: ModelSettings, candidate: Candidate) -> ModelSettings:
    """Return the settings with those of the candidate."""
    return replace(
        settings,
        scale=candidate.scale,
        depth=candidate.depth,
        steepness=candidate.steepness,
        penalty=candidate.penalty,
        loss=candidate.loss,
        ridge=candidate.ridge,
        points=candidate.points or settings.points,
    )


def prepare_fold(settings: ModelSettings, rows: Rows, known: EngineRows | None = None) -> Prepared:
    """Return the problem of the training rows of a fold.

    A class without training rows cannot be learned: its test rows count as errors. ``known`` are
    the scaled rows, if they were prepared before.
    """
    present = rows.present()
    if present.sum() < 2:
        raise ValueError("a training fold holds fewer than two classes; use other folds.")
    if not np.all(present):
        settings, rows = settings.with_leaves(rows.classes, present), rows.of_classes(present)
    return prepare(settings, rows, known)


def solve_fold_path(
    prepared: Prepared,
    shares: Pair,
    fractions: Sequence[float],
    run: Run,
    *,
    tight: bool = False,
) -> list[Solution]:
    """Return the trees along a path of strengths, as far as the budget allows.

    If no start meets the class rates, more starts may be made. ``tight`` as in ``solve_path``.
    """
    problems = problems_along(prepared, shares, fractions)

    def walked(n_starts: int) -> list[Solution]:
        return solve_path(
            problems,
            run.solver,
            keep=1,
            n_starts=n_starts,
            seed=run.seed,
            budget=_path_budget(run, prepared),
            thorough=False,
            tight=tight,
        )

    try:
        return walked(run.n_starts)
    except NoFeasibleTreeError:
        factor = formulation_of(prepared.settings.loss).choice.start_factor
        if factor == 1:  # a start has tried several trees of its path already
            raise
        return walked(factor * run.n_starts)


def refit_from(
    starts: Sequence[TreeParameters],
    prepared: Prepared,
    shares: Pair,
    fraction: float,
    run: Run,
    *,
    grow: bool = True,
) -> Solution:
    """Return the best tree that the trees ``starts`` lead to at one strength.

    If none of them meets the class rates, new starts are made. Without ``grow``, only these trees
    are trained where paths are followed.
    """
    problem = prepared.with_strengths(*strengths_at(prepared.problem, shares, fraction)).problem
    budget = _path_budget(run, prepared)
    solutions: list[Solution] = []
    follows, n_rows = run.solver.follows(problem), problem.rows.n_rows
    sampled = follows and n_rows > ROWS.compared and isinstance(problem.rows, CompiledRows)
    few = problem.on_sample(ROWS.compared) if sampled else problem
    if follows and n_rows > ROWS.halved:  # each path takes passes over all rows
        starts = sorted(starts, key=few.objective)[:FOLLOWED]
    grow = grow and not budget.exhausted
    sizes = sample_sizes(problem, run.solver)
    progressive = bool(sizes) and sizes[-1] < problem.rows.n_rows
    n_cells = n_rows * problem.n_features * len(prepared.classes)
    if n_rows * problem.n_features > ROWS.halved_cells:  # paths hold copies of the rows
        n_cells = 0
    workers = run.workers(n_rows, len(starts) + 1, n_cells) if run.solver.releases_gil else 1
    own = [
        run.solver.path(problem, Start(t), budget) for t in starts if follows and not progressive
    ]
    if sampled and grow:
        sample, others = replace(prepared, problem=few), [(path, problem) for path in own]
        starts = [*starts, *_grown_on(sample, run, budget, others, workers)]
        del sample
    if sampled:
        del few  # a copy of its rows
    if progressive:
        if run.solver.follows(problem):
            best = _best_on_sample(starts, problem, sizes[-1], run.solver, budget, workers)
        else:
            some = replace(prepared, problem=prepared.problem.on_sample(sizes[-1]))
            best = refit_from(starts, some, shares, fraction, run)
            del some
        return finished_on_all_rows(problem, run.solver, best, budget, run.n_jobs)
    if follows:
        own += [run.solver.path(problem, Start(tree), budget) for tree in starts[len(own) :]]
        one = 1 if n_rows > ROWS.halved else 0
        fresh = [] if sampled or not grow else fold_paths(prepared, run, compared=False, grown=one)
        return best_path([*own, *fresh], problem, budget, workers)
    for tree in starts:
        if not budget.exhausted or not any(s.status.usable for s in solutions):
            solutions.append(run.solver.solve(problem, Start(tree), budget))
    try:
        return best_solution(solutions, budget, problem=problem)
    except NoFeasibleTreeError:
        if budget.exhausted:
            raise
        return solve_fold_path(prepared, shares, [fraction], run)[0]


def _grown_on(
    prepared: Prepared,
    run: Run,
    budget: Budget,
    others: Sequence[tuple[Path, TrainingProblem]],
    workers: int,
) -> list[TreeParameters]:
    """Return a tree grown on the rows of ``prepared``, which is not finished; none after Ctrl-C.

    In other threads the paths ``others`` are followed meanwhile, so that ``best_path`` finds their
    trees computed.
    """
    grown: list[TreeParameters] = []

    def follow(number: int) -> None:
        if number == 0:
            paths = fold_paths(prepared, run, compared=False, grown=1)
            grown.append(best_path(paths, prepared.problem, budget, tight=False).parameters)
        else:
            path, problem = others[number - 1]
            path.trees([problem], tight=False)

    with budget.interruptible():
        tasks = range(1 + len(others))
        budget.in_threads(follow, tasks, min(workers, len(tasks)), at_least=1)
    return grown


def _best_on_sample(
    starts: Sequence[TreeParameters],
    problem: TrainingProblem,
    size: int,
    solver: Solver,
    budget: Budget,
    workers: int,
) -> Solution:
    """Return the best tree that ``starts`` lead to on a sample of ``size`` rows."""
    few = problem.on_sample(size)
    paths = [solver.path(few, Start(tree), budget) for tree in starts]
    return best_path(paths, few, budget, workers, tight=False)  # all rows follow


def _path_budget(run: Run, prepared: Prepared) -> Budget:
    limit = formulation_of(prepared.settings.loss).choice.path_iterations
    return replace(run.budget, max_iter=run.budget.max_iter or limit)
