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
    z = steepness * (score / len(x_i) - mu[t])
    # The same number either way; exp of a large one would overflow.
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))


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


def class_probabilities(x_i, a, mu, c, depth, steepness):
    """sum_t P_it c_kt for every class k."""
    found = [0.0] * len(c)
    for leaf in range(2**depth):
        probability = leaf_probability(x_i, a, mu, leaf, depth, steepness)
        for k in range(len(c)):
            found[k] += probability * c[k][leaf]
    return found


def leaf_derivative(x_i, a, mu, leaf, depth, steepness, t):
    """dP_it / dz_t, z_t the score of branch t: the product rule, one factor replaced.

    p' = steepness p (1 - p) for a left ancestor, (1 - p)' = - that for a right one; a branch that
    is no ancestor does not matter.
    """
    left, right = left_and_right_ancestors(leaf, depth)
    if t not in left and t not in right:
        return 0.0
    p = gate(x_i, a, mu, t, steepness)
    product = steepness * p * (1.0 - p) * (1.0 if t in left else -1.0)
    for s in left:
        product *= gate(x_i, a, mu, s, steepness) if s != t else 1.0
    for s in right:
        product *= 1.0 - gate(x_i, a, mu, s, steepness) if s != t else 1.0
    return product


def cost_gradient(x, y, weight, a, mu, c, costs, depth, steepness):
    """Derivatives of the expected cost by a[j][t], mu[t] and c[k][t]."""
    n_features, n_branches = len(a), len(mu)
    by_a = [[0.0] * n_branches for _ in range(n_features)]
    by_mu = [0.0] * n_branches
    by_c = [[0.0] * 2**depth for _ in c]
    for i in range(len(x)):
        for leaf in range(2**depth):
            price = sum(costs[y[i]][k] * c[k][leaf] for k in range(len(c)))
            for t in range(n_branches):
                change = weight[i] * price * leaf_derivative(
                    x[i], a, mu, leaf, depth, steepness, t
                )  # fmt: skip
                by_mu[t] -= change
                for j in range(n_features):
                    by_a[j][t] += change * x[i][j] / n_features
            probability = leaf_probability(x[i], a, mu, leaf, depth, steepness)
            for k in range(len(c)):
                by_c[k][leaf] += weight[i] * probability * costs[y[i]][k]
    return by_a, by_mu, by_c


PAPER_SURROGATES = {
    "linear": (lambda u, first, second: u, lambda u, first, second: 1.0),
    "exponential": (
        lambda u, first, second: 1.0 - math.exp(-first * u),
        lambda u, first, second: first * math.exp(-first * u),
    ),
    "power": (
        lambda u, first, second: (u + second) ** first,
        lambda u, first, second: first * (u + second) ** (first - 1.0),
    ),
    "inverse_power": (
        lambda u, first, second: -1.0 / (u + second) ** first,
        lambda u, first, second: first * (u + second) ** (-first - 1.0),
    ),
    "log": (
        lambda u, first, second: math.log(u + second),
        lambda u, first, second: 1.0 / (u + second),
    ),
}
"""phi(u) and its slope."""


def penalty_gradient(a, surrogate, local_strength, global_strength):
    """Derivatives by a[j][t], where no a[j][t] is zero and no row has two largest entries."""
    _, slope = PAPER_SURROGATES[surrogate.name]
    made = []
    for row in a:
        largest = max(range(len(row)), key=lambda t, row=row: abs(row[t]))
        line = []
        for t, value in enumerate(row):
            rise = slope(abs(value), surrogate.first, surrogate.second)
            strength = local_strength + (global_strength if t == largest else 0.0)
            line.append(math.copysign(strength * rise, value))
        made.append(line)
    return made


def penalty(a, surrogate, local_strength, global_strength):
    """Local: every |a_jt|. Global: the largest |a_jt| of every feature."""
    phi, _ = PAPER_SURROGATES[surrogate.name]
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
