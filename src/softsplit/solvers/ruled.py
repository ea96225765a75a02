"""Rules about variables for a solver that does not know them.

Of every set of which at most one variable may be in the tree one is allowed, and bounds of zero
mask the others: what the solver sees is an ordinary problem. The allowed members are compared on
it, the ``OPTIONS.choices`` most promising ones by the score statistics of their columns without a
tree, and the tree of the lowest objective is kept. A required variable has no price
(feature_rules.py), so that the penalties rarely remove it; where a tree lacks it all the same, it
gets that weight of ``OPTIONS.weights`` that costs least, in the branch of the steepest slope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.bounds import Bounds
from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import (
    Budget,
    Draw,
    Report,
    Solution,
    Solver,
    Start,
    UnsupportedProblem,
    silent,
)
from softsplit.solvers.elimination.screening import class_slopes, score_statistics
from softsplit.solvers.stopping import EndPoints
from softsplit.support.row_budgets import ROWS
from softsplit.tree.parameters import TreeParameters

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class RuledOptions:
    """Numbers of the search among allowed variables."""

    choices: int = 6
    """Most choices of members that are solved from a start."""

    weights: tuple[float, ...] = (0.01, 0.1)
    """Weights for a required variable that a tree lacks, as parts of the bounds: the first is a
    hundredth of the largest, small beside any weight that does something."""


OPTIONS = RuledOptions()


def with_rules(solver: Solver, problem: TrainingProblem) -> Solver:
    """Return a solver whose trees keep the rules of ``problem``."""
    if problem.binding_rules is None or solver.keeps_rules(problem):
        return solver
    if solver.name != "native":
        raise UnsupportedProblem(
            f"solver {solver.name!r} knows no rules about features (required, forbidden_together, "
            "at_most_one); use solver='native'."
        )
    return RuledSolver(solver)


@dataclass(frozen=True)
class RuledSolver(Solver):
    """``inner`` on problems in which variables that are not allowed are masked."""

    inner: Solver
    searches: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True  # if ``inner`` does, which is asked too
    meets_rates: ClassVar[bool] = True  # the same

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def start_rules(self) -> tuple[str, ...]:
        return self.inner.start_rules

    @property
    def candidates(self) -> int:
        return self.inner.candidates

    @property
    def releases_gil(self) -> bool:
        return self.inner.releases_gil

    @property
    def zero_threshold(self) -> float:
        return self.inner.zero_threshold

    def keeps_rules(self, problem: TrainingProblem) -> bool:
        return True

    def supports(self, problem: TrainingProblem) -> str | None:
        return self.inner.supports(problem)

    def start_rule(self, problem: TrainingProblem, number: int) -> str:
        return self.inner.start_rule(problem, number)

    def n_candidates(self, problem: TrainingProblem) -> int:
        return self.inner.n_candidates(problem)

    def n_exploring(self, problem: TrainingProblem) -> int:
        return self.inner.n_exploring(problem)

    def sample_sizes(self, problem: TrainingProblem) -> tuple[int, ...]:
        return self.inner.sample_sizes(problem)

    def least_chance(self, problem: TrainingProblem) -> float:
        return self.inner.least_chance(problem)

    def with_effort(self, effort: float) -> Solver:
        return replace(self, inner=self.inner.with_effort(effort))

    def parts(self) -> tuple[Solver, ...]:
        return (self.inner, *self.inner.parts())

    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
        """Return the best tree over the allowed choices."""
        rules = problem.binding_rules
        if rules is None:
            return self.inner.solve(problem, start, budget)
        found: list[Solution] = []
        for barred in islice(barred_variables(problem, rules), OPTIONS.choices):
            if found and budget.exhausted:
                break
            part = masked(problem, rules, barred)
            solution = self.inner.solve(part, start.within(part), budget)
            found.append(kept_required(problem, rules, solution, budget))
        return min(found, key=lambda one: (not one.status.usable, one.objective))

    def improve(
        self,
        problem: TrainingProblem,
        front: Sequence[Solution],
        draws: Iterator[Draw],
        ends: EndPoints,
        budget: Budget,
        report: Report = silent,
    ) -> Solution:
        """Search with the variables of the best tree: variables that it excludes are masked."""
        rules = problem.binding_rules
        if rules is None or not self.inner.searches:
            return front[0]
        used = np.flatnonzero(rules.used(front[0].parameters.weights != 0))
        barred = rules.excluded_by(used)
        barred[used] = False
        for members in rules.at_most_one:  # of a set that is not used, all but one
            if not set(members) & set(used.tolist()):
                barred[list(members[1:])] = True
        part = masked(problem, rules, barred)
        alike = [one for one in front if part.bounds.violation(one.parameters) == 0.0]
        found = self.inner.improve(part, alike, draws, ends, budget, report)
        return kept_required(problem, rules, found, budget)


def barred_variables(problem: TrainingProblem, rules: FeatureRules) -> Iterator[Mask]:
    """Yield the variables to mask, (n_variables,), the most promising choice of members first."""
    if not rules.at_most_one:
        yield np.zeros(len(rules.names), dtype=bool)
        return
    few = problem.rows.sample(ROWS.importances)
    columns = np.asarray(few.features, dtype=float)
    gains = score_statistics(columns, columns**2, *class_slopes(few.labels, few.weights)).gains
    worth = np.zeros(len(rules.names))
    np.maximum.at(worth, rules.of, gains.max(axis=1))
    worth[list(rules.required)] = np.inf
    ranked = [sorted(members, key=lambda v: (-worth[v], v)) for members in rules.at_most_one]
    places = product(*(range(len(members)) for members in ranked))
    seen: set[bytes] = set()
    for at in sorted(places, key=sum) if _few(ranked) else islice(places, OPTIONS.choices):
        taken = {members[i] for members, i in zip(ranked, at, strict=True)}
        barred = np.zeros(len(rules.names), dtype=bool)
        for members in ranked:
            barred[[v for v in members if v not in taken]] = True
            both = [v for v in members if v in taken]
            barred[both[1:]] = True  # taken for another set
        if barred[list(rules.required)].any() or barred.tobytes() in seen:
            continue
        seen.add(barred.tobytes())
        yield barred


def _few(ranked: Sequence[Sequence[int]]) -> bool:
    """Whether all choices of members can be listed and sorted."""
    return float(np.prod([float(len(members)) for members in ranked])) <= 10_000


def masked(problem: TrainingProblem, rules: FeatureRules, barred: Mask) -> TrainingProblem:
    """Return the problem in which some variables have no weights."""
    if not barred.any():
        return replace(problem, rules=None)
    bounds, out = problem.bounds, rules.features(barred)[:, None]
    return replace(
        problem,
        rules=None,
        bounds=Bounds(
            np.where(out, 0.0, bounds.low),
            np.where(out, 0.0, bounds.high),
            bounds.threshold_low,
            bounds.threshold_high,
        ),
    )


def kept_required(
    problem: TrainingProblem, rules: FeatureRules, found: Solution, budget: Budget
) -> Solution:
    """Return ``found`` with the required variables that it lacks, measured on ``problem``."""
    tree = found.parameters
    for variable in rules.missing(rules.used(tree.weights != 0)):
        tree = _with_variable(problem, rules, tree, variable)
    return Solution.measure(
        problem,
        tree,
        found.status,
        tol=budget.tol,
        n_iter=found.n_iter,
        seconds=found.seconds,
        solver=found.solver,
        message=found.message,
    )


def _with_variable(
    problem: TrainingProblem, rules: FeatureRules, tree: TreeParameters, variable: int
) -> TreeParameters:
    """Return the best of the trees with a small weight of ``variable``."""
    own = np.flatnonzero(rules.of == variable)
    slopes = problem.evaluate_cost(tree).weights[own]
    sizes = np.abs(slopes) * problem.bounds.allows_step(-problem.evaluate_cost(tree).weights)[own]
    row, branch = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
    largest = min(float(problem.bounds.high[own[row], branch]), 1.0) or 1.0
    trees = []
    for part in OPTIONS.weights:
        weights = tree.weights.copy()
        weights[own[row], branch] = -np.copysign(part * largest, slopes[row, branch])
        trees.append(replace(tree, weights=weights))
    return min(trees, key=problem.objective)
