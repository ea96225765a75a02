"""Problems along a grid of strengths, and paths of solvers that follow a whole grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softsplit.problem.problem import TrainingProblem
from softsplit.selection.scoreboard import Candidate
from softsplit.selection.strengths import Pair, shared, strength_unit
from softsplit.solvers.base import Budget, Path, Solution, refuse_unsupported
from softsplit.training.multistart import best_solution, numbered_start
from softsplit.training.preparation import Prepared
from softsplit.training.run import Run


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
    prepared: Prepared, run: Run, shallower: Sequence[Path] = (), *, compared: bool = True
) -> list[Path]:
    """Return a path from each start of a run.

    ``shallower`` are the paths of a smaller depth on the same rows, whose trees the starts grow.
    """
    problem, solver = prepared.problem, run.solver
    refuse_unsupported(solver, problem)
    children = np.random.SeedSequence(run.seed).spawn(run.n_starts)
    paths: list[Path] = []
    for number, child in enumerate(children):
        start = numbered_start(problem, solver, number, child)
        if number < len(shallower):
            start = replace(start, stem=shallower[number].stem)
        paths.append(solver.path(problem, start, run.budget, compared=compared))
    return paths


def best_trees(
    paths: Sequence[Path], problems: Sequence[TrainingProblem], budget: Budget
) -> list[Solution]:
    """Return the best tree of several paths for each problem, for comparison only."""
    found = [path.trees(problems, tight=False) for path in paths]
    if any(len(one) < len(problems) for one in found):
        return max(found, key=len)  # the budget has ended
    return [best_solution(trees, budget) for trees in zip(*found, strict=True)]


def best_path(paths: Sequence[Path], problem: TrainingProblem, budget: Budget) -> Solution:
    """Return the finished tree of the path with the lowest objective."""
    found: list[tuple[float, int]] = []
    for number, path in enumerate(paths):
        if not budget.exhausted or not found:
            found.append((path.trees([problem], tight=False)[0].objective, number))
    return paths[min(found)[1]].trees([problem], tight=True)[0]


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


def whole_trees(found: Sequence[Solution]) -> list[Solution]:
    """Return the trees before the first that the budget cut short."""
    cut = [solution.status.cut_short for solution in found]
    return list(found[: cut.index(True)] if any(cut) else found)
