"""Weighted fits of whole points to targets: tables of steps, and counts of equal steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled_plainly


@compiled_plainly
def fit_steps(
    target: FloatArray,
    weight: FloatArray,
    segments: NDArray[np.intp],
    most_blocks: int,
    price: float,
    most_points: int,
    direction: int,
) -> tuple[FloatArray, int]:
    """Return whole points from 0 on, equal within at most so many blocks of segments, and blocks.

    1. Sums of the targets of each segment. Points lie around what could pay for a block.
    2. For base lines by quarters of a point, with height h of the block number m that segment s
       belongs to:

       cost_smh = min(cost_(s-1)mh, min_h' cost_(s-1)(m-1)h' + price) + loss of s at base + h

       where h' <= h (>= h) if the points may only grow (fall).
    3. The points of the best base line, from the last segment back.
    """
    # 1. Those that could pay differ from the mean.
    n, heights = segments[-1] + 1, most_points + 1
    w, wt = np.zeros(n), np.zeros(n)
    for j in range(target.size):
        w[segments[j]] += weight[j]
        wt[segments[j]] += weight[j] * target[j]
    low = high = wt.sum() / w.sum()
    mean = low
    for s in range(n):
        if w[s] * (wt[s] / w[s] - mean) ** 2 > 2.0 * price:
            low, high = min(low, wt[s] / w[s]), max(high, wt[s] / w[s])
    lowest = np.floor(0.5 * (low + high - most_points) - 0.5)
    least, points, blocks = np.inf, np.zeros(n), 1
    cost = np.empty((most_blocks, heights))
    before = np.empty((n, most_blocks, heights), np.int64)
    for quarter in range(4):
        # 2. before_smh is the height of segment s - 1, and ``heights`` more where a block begins.
        base = lowest + 0.25 * quarter
        cost[:] = np.inf
        cost[0] = 0.0
        for s in range(n):
            for m in range(most_blocks - 1, -1, -1):
                cheapest, source = np.inf, 0
                if m > 0 and s > 0 and direction == 0:
                    source = int(np.argmin(cost[m - 1]))
                    cheapest = cost[m - 1, source]
                for k in range(heights):
                    h = k if direction >= 0 else heights - 1 - k
                    if m > 0 and s > 0 and direction != 0 and cost[m - 1, h] < cheapest:
                        cheapest, source = cost[m - 1, h], h
                    before[s, m, h] = h
                    if cheapest + price < cost[m, h]:
                        cost[m, h], before[s, m, h] = cheapest + price, source + heights
                    value = base + h
                    cost[m, h] += value * (0.5 * w[s] * value - wt[s])
        # 3. The best end.
        if cost.min() < least:
            least = cost.min()
            m, h = divmod(int(np.argmin(cost)), heights)
            blocks = m + 1
            for s in range(n - 1, -1, -1):
                points[s] = h
                h = before[s, m, h]
                if h >= heights:
                    m, h = m - 1, h - heights
    return (points - points.min())[segments], blocks


@compiled_plainly
def fit_counts(
    counts: NDArray[np.int64],
    target: FloatArray,
    weight: FloatArray,
    most_points: int,
    price: float,
    price_of_more: float,
    direction: int,
    least_steps: int,
) -> tuple[int, int, int, int]:
    """Return width, a, m and n of the best n min(max(k - a, 0), m) + constant; n = 0: none.

    Fewer than ``least_steps`` steps m are none.

    n = cov(steps, target) / var(steps), rounded. With the sums W_l, T_l of weights and of weighted
    targets (less their mean) where k >= l: sum w steps = sum_l W_l, sum w steps^2 = sum_l
    (2 (l - a) - 1) W_l and sum w steps target = sum_l T_l over l = a + 1 .. a + m.
    """
    best_width, best_skipped, best_steps, best_each, least = 0, 0, 0, 0, 0.0
    total = weight.sum()
    mean = (weight * target).sum() / total
    for width in range(counts.shape[0]):
        most = counts[width].max()
        w, wt = np.zeros(most + 1), np.zeros(most + 1)
        for j in range(counts.shape[1]):
            w[counts[width, j]] += weight[j]
            wt[counts[width, j]] += weight[j] * (target[j] - mean)
        for k in range(most - 1, 0, -1):
            w[k] += w[k + 1]
            wt[k] += wt[k + 1]
        for skipped in range(most - least_steps + 1):
            wk, wkk, wkt = 0.0, 0.0, 0.0
            for steps in range(1, most - skipped + 1):
                wk += w[skipped + steps]
                wkk += (2 * steps - 1) * w[skipped + steps]
                wkt += wt[skipped + steps]
                spread = wkk - wk * wk / total
                if steps < least_steps or spread <= 1e-12:
                    continue
                each = min(float(most_points), max(-float(most_points), np.round(wkt / spread)))
                cost = each * (0.5 * each * spread - wkt) + price * abs(each) * steps
                cost += price_of_more * (abs(each) > 1.0)
                if cost < least and each * direction >= 0.0:
                    best_width, best_skipped, best_steps = width, skipped, steps
                    best_each, least = int(each), cost
    return best_width, best_skipped, best_steps, best_each
