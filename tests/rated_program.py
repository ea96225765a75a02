"""Training under bounds of rates, written anew in CasADi and solved by IPOPT: an independent truth.

Nothing of the solvers is used: gates, leaves, losses and rates stand here as formulas, and CasADi
differentiates them. ``python tests/rated_program.py`` prints the figures of the document.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from likelihood_cases import problem_of
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.problem.bounds import Bounds
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.rates import RateGroup, RateLimits, RateRequirement
from softsplit.solvers.basin_hopping.solver import BasinHoppingSolver
from softsplit.solvers.elimination.solver import EliminationSolver
from softsplit.training.multistart import multistart, numbered_start, search_around


def fair_problem(seed, loss, *, bound=0.05, n_groups=2, depth=1, odds=False, n=60):
    """Rows in [0, 1] whose first column says the group too, and a bound between the groups."""
    rng = np.random.default_rng(seed)
    group, X = rng.integers(0, n_groups, n), rng.uniform(size=(n, 3))
    X[:, 0] = np.clip(0.6 * X[:, 0] + 0.4 * group / (n_groups - 1), 0, 1)
    y = (4 * (X[:, 0] + X[:, 1] - 1) + 0.7 * rng.logistic(size=n) > 0).astype(int)
    problem, cells = problem_of(X, y, depth=depth), y * n_groups + group
    if loss == "cost":
        costs, shape = 1.0 - np.eye(2), (3, 2**depth - 1)
        problem = replace(problem, loss=ExpectedCost(costs), ridge=0.0, bounds=Bounds.box(*shape))
    asked = []
    for given in ([0], [1]) if odds else ([0, 1],):
        cells_of = [tuple(k * n_groups + g for k in given) for g in range(n_groups)]
        groups = tuple(RateGroup(str(g), own) for g, own in enumerate(cells_of))
        asked.append(RateRequirement(f"rate given {given}", 1, groups, high=bound))
    rows = CompiledRows(Samples.from_arrays(X, cells, 2 * n_groups))
    labels = np.repeat([0, 1], n_groups)
    return replace(problem, rate_limits=RateLimits(rows, labels, tuple(asked), 2))


def by_ipopt(problem, start):
    """Objective and largest violation where IPOPT ends from the tree ``start``."""
    import casadi as ca

    limits = problem.rate_limits
    samples, own = limits.rows.sample(), np.eye(problem.n_groups)[limits.labels]
    n_features, n_branches = start.weights.shape
    n_classes, n_leaves = start.leaf_values.shape
    a, mu = ca.SX.sym("a", n_features, n_branches), ca.SX.sym("mu", n_branches)
    u = ca.SX.sym("u", n_classes, n_leaves)
    c = ca.exp(u) / ca.repmat(ca.sum1(ca.exp(u)), n_classes, 1) if problem.log_loss else u
    scores = ca.mtimes(samples.features.T, a) / n_features - ca.repmat(mu.T, samples.n_rows, 1)
    left = 1 / (1 + ca.exp(-problem.steepness * scores))
    reach = [ca.SX.ones(samples.n_rows)]
    for t in range(n_branches):
        reach += [reach[t] * left[:, t], reach[t] * (1 - left[:, t])]
    said = ca.mtimes(ca.horzcat(*reach[n_branches:]), c.T)
    true, weight = own[samples.labels], samples.weights
    if problem.log_loss:
        value = -ca.dot(weight, ca.log(ca.sum2(true * said))) + problem.ridge / 2 * ca.sumsqr(a)
        pseudo = problem.loss.leaf_rule.pseudo_counts
        value -= ca.sum1(ca.sum2(ca.repmat(pseudo, 1, n_leaves) * ca.log(c)))
    else:
        value = ca.dot(weight, ca.sum2((true @ problem.loss.costs) * said))
    cells = np.eye(len(limits.labels))[samples.labels].T * weight
    mass = ca.mtimes(cells, said)
    lines = [ca.sum1(ca.sum2(one * mass)) - least for one, least in zip(
        limits.coefficients, limits.least, strict=True)]  # fmt: skip
    sums = [] if problem.log_loss else [ca.sum1(c).T - 1, ca.sum2(c) - 1]
    n_sums = 0 if problem.log_loss else n_leaves
    high = np.concatenate([np.full(len(lines), np.inf), np.zeros(n_sums),
                           np.full(0 if problem.log_loss else n_classes, np.inf)])  # fmt: skip
    x = ca.vertcat(ca.vec(a), mu, ca.vec(u))
    size, free = a.numel() + n_branches, np.full(x.numel(), np.inf)
    low, most = -free, free
    if not problem.log_loss:
        low, most = np.full(x.numel(), -1.0), np.ones(x.numel())
        low[size:] = 0.0
    leaves = start.leaf_values
    begun = np.log(np.maximum(leaves, 1e-6)) if problem.log_loss else leaves
    begun = np.concatenate([start.weights.ravel("F"), start.thresholds, begun.ravel("F")])
    options = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "max_iter": 500}}
    constraints = ca.vertcat(*lines, *sums)
    solve = ca.nlpsol("s", "ipopt", {"x": x, "f": value, "g": constraints}, options)
    found = solve(x0=begun, lbx=low, ubx=most, lbg=0, ubg=high)
    ends = np.array(found["g"]).ravel()
    if not solve.stats()["success"]:
        return np.inf, np.inf
    missed = max(0.0, -ends.min(), np.max(ends[np.isfinite(high)], initial=0.0))
    return float(found["f"]), float(missed)


def compared(problem, n_starts):
    """The best native tree, and the best objective of IPOPT from the same starts and from it."""
    solver = EliminationSolver() if problem.log_loss else BasinHoppingSolver()
    ends = multistart(problem, solver, n_starts=n_starts, seed=0)
    best = search_around(problem, solver, ends, seed=0)
    starts = [
        numbered_start(problem, solver, i, child).parameters
        for i, child in enumerate(np.random.SeedSequence(0).spawn(n_starts))
    ]
    found = [by_ipopt(problem, tree) for tree in (*starts, best.parameters)]
    return best, min((value for value, missed in found if missed <= 1e-6), default=np.inf)


def figures(n_problems=12, n_starts=3):
    """Lines of the document."""
    gains = {"log": [], "cost": []}
    for seed in range(n_problems):
        for loss, known in gains.items():
            problem = fair_problem(
                seed, loss, bound=(0.0, 0.02, 0.1)[seed % 3], n_groups=2 + seed % 2,
                depth=1 + seed // 6 % 2, odds=seed % 4 == 3,
            )  # fmt: skip
            best, other = compared(problem, n_starts)
            known.append((best.objective - other) / best.objective)
    return [
        f"{loss}: {len(known)} problems, IPOPT is better by more than 0.1 % in "
        f"{sum(gain > 1e-3 for gain in known)}, by {100 * max(known):.3f} % at most, and worse by "
        f"more than 0.1 % in {sum(gain < -1e-3 for gain in known)}."
        for loss, known in gains.items()
    ]


if __name__ == "__main__":
    print("\n".join(figures()))
