"""The paper's formulas in plain loops: slow, and sharing no line with the library.

Trees are taken as lists of lists: ``a[j][t]``, ``mu[t]`` and ``c[k][t]``, with the branches in
heap order and the leaves from left to right. Rows are ``x[i][j]``, ``y[i]`` and ``weight[i]``.
"""

from __future__ import annotations

import itertools
import math


def gate(x_i, a, mu, t, steepness):
    """p_it: the logistic distribution function at the mean product minus the threshold."""
    score = 0.0
    for j in range(len(x_i)):
        score += a[j][t] * x_i[j]
    return 1.0 / (1.0 + math.exp(-steepness * (score / len(x_i) - mu[t])))


def left_and_right_ancestors(leaf, depth):
    """N_L and N_R of a leaf: the binary digits of its number are its turns (0 is left)."""
    left, right = [], []
    for level in range(depth):
        branch = 2**level - 1 + leaf // 2 ** (depth - level)
        turn = leaf // 2 ** (depth - level - 1) % 2
        (left if turn == 0 else right).append(branch)
    return left, right


def leaf_probability(x_i, a, mu, leaf, depth, steepness):
    """P_it: product of p over N_L and of 1 - p over N_R."""
    left, right = left_and_right_ancestors(leaf, depth)
    probability = 1.0
    for t in left:
        probability *= gate(x_i, a, mu, t, steepness)
    for t in right:
        probability *= 1.0 - gate(x_i, a, mu, t, steepness)
    return probability


def expected_cost(x, y, weight, a, mu, c, costs, depth, steepness):
    """sum_i sum_t P_it sum_k w[y_i][k] c_kt, each row counted with its weight."""
    total = 0.0
    for i in range(len(x)):
        for leaf in range(2**depth):
            price = sum(costs[y[i]][k] * c[k][leaf] for k in range(len(c)))
            total += weight[i] * leaf_probability(x[i], a, mu, leaf, depth, steepness) * price
    return total


def log_loss(x, y, weight, a, mu, c, depth, steepness):
    """Minus the weighted log-probability of the true classes."""
    total = 0.0
    for i in range(len(x)):
        truth = 0.0
        for leaf in range(2**depth):
            truth += leaf_probability(x[i], a, mu, leaf, depth, steepness) * c[y[i]][leaf]
        total -= weight[i] * math.log(truth)
    return total


def class_rates(x, y, weight, a, mu, c, depth, steepness):
    """Share of each class's weight that is expected to be classified correctly."""
    right, total = [0.0] * len(c), [0.0] * len(c)
    for i in range(len(x)):
        total[y[i]] += weight[i]
        for leaf in range(2**depth):
            probability = leaf_probability(x[i], a, mu, leaf, depth, steepness)
            right[y[i]] += weight[i] * probability * c[y[i]][leaf]
    return [right[k] / total[k] for k in range(len(c))]


PAPER_SURROGATES = {
    "linear": lambda u, first, second: u,
    "exponential": lambda u, first, second: 1.0 - math.exp(-first * u),
    "power": lambda u, first, second: (u + second) ** first,
    "inverse_power": lambda u, first, second: -1.0 / (u + second) ** first,
    "log": lambda u, first, second: math.log(u + second),
}


def penalty(a, surrogate, local_strength, global_strength):
    """Local: every |a_jt|. Global: the largest |a_jt| of every feature."""
    phi = PAPER_SURROGATES[surrogate.name]
    total = 0.0
    for row in a:
        sizes = [abs(value) for value in row]
        for size in sizes:
            total += local_strength * phi(size, surrogate.first, surrogate.second)
        total += global_strength * phi(max(sizes), surrogate.first, surrogate.second)
    return total


def sparsity_indices(a):
    """delta_L and delta_G in percent."""
    zeros, unused = 0, 0
    for row in a:
        zeros += sum(1 for value in row if value == 0)
        unused += 1 if all(value == 0 for value in row) else 0
    return 100.0 * zeros / (len(a) * len(a[0])), 100.0 * unused / len(a)


def violations(a, mu, c, rates, minimum_rates):
    """Largest violation of the box, the leaf simplex, the class coverage and the rates."""
    box = max(abs(value) - 1 for value in [*itertools.chain(*a), *mu])
    columns = list(zip(*c, strict=True))
    leaves = max(abs(sum(column) - 1) for column in columns)
    negative = max(-value for value in itertools.chain(*c))
    coverage = max(1 - sum(row) for row in c)
    short = max(low - rate for rate, low in zip(rates, minimum_rates, strict=True))
    return tuple(max(0.0, value) for value in (box, max(leaves, negative), coverage, short))


def cheapest_assignment(costs):
    """Least cost over all ways to give each leaf one class and each class a leaf."""
    n_classes, n_leaves = len(costs), len(costs[0])
    best = math.inf
    for chosen in itertools.product(range(n_classes), repeat=n_leaves):
        if len(set(chosen)) == n_classes:
            best = min(best, sum(costs[k][leaf] for leaf, k in enumerate(chosen)))
    return best
