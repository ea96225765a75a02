"""Search for the whole points of one question of a score card.

At question t the tree compares a sum of contributions g_v(x_v) of the variables with a threshold;
s_i is what row i is above it, s >= 0 is the right side. The card compares a sum of whole points,

    T_i = sum_v points_v(bin of x_iv),    points in 0 .. P,    right from T_i >= limit on.

**Points.** As FasterRisk does (Liu, Zhong, Li, Seltzer, Rudin 2022, "FasterRisk: fast and accurate
interpretable risk scores"), the search goes over multipliers u and, for each, over whole numbers,
instead of rounding coefficients. It minimises

    sum_i w_i (T_i - (s_i - o) / u)^2  +  price x (lines of the card)

the second-order expansion of the log-loss between tree and card, with w_i = p_i (1 - p_i) for the
gate p_i. It is lowered block by block: with the other blocks fixed the sum is a sum over bins, and
the best points of all bins of one variable, at a price for every further line and rising where its
contribution rises, are found exactly by dynamic programming along the bins. u and o are regressed
anew after every round.

**Limit and choice.** For given points the limit that keeps most rows at the class of the tree is
found exactly from cumulative sums. Of all multipliers, prices and largest points the card is kept
that has the least

    share of rows with another class than the tree  +  line_price x lines  +  point_price x P

(of a card of one question, whose sums say how probable classes are, also risk_price x the share of
the variance of s that they leave), and it is then polished: single lines move by one point, single
edges by one bin, as long as more rows get the class of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class CardSearchOptions:
    """How points are searched for."""

    bins: int = 40
    """Candidate edges of a number: a line parts at least 2 % of the rows."""

    fewer: tuple[int, ...] = (5, 10)
    """Cards with so few points a line are tried too, and kept if they do about as well."""

    multiples: tuple[float, ...] = (0.35, 0.5, 0.7, 1.0)
    """Multipliers, relative to the one at which the widest variable takes all points."""

    quick_multiples: tuple[float, ...] = (0.5, 1.0)
    """The same for a quick search, which tries one largest number of points alone."""

    prices: tuple[float, ...] = (3e-4, 3e-3)
    """Prices of a line, relative to the weight of all rows: an error of one point in that share of
    the rows."""

    sweeps: int = 4
    """Rounds over all blocks; most cards stand still after three."""

    prior: float = 0.02
    """Weight in rows of the tree's own contribution in each bin: bins without rows follow it."""

    floor: float = 0.05
    """Least weight of a row far from the threshold, relative to one at it: sums there order rows
    by risk."""

    width: float = 0.25
    """Gates count as at least this part of the spread of s wide (interquartile range / 1.35, or a
    twentieth of the standard deviation): of steeper ones hardly a row would have weight."""

    far: float = 5.0
    """Of one variable alone: widths from the threshold beyond which all values are alike; the gate
    is 99.3 % sure there."""

    line_price: float = 2e-4
    """A line less is worth 1 in 5,000 rows with another class."""

    point_price: float = 1e-3
    """A point less in the largest number is worth 1 in 1,000 rows with another class."""

    risk_price: float = 0.05
    """Where sums say how probable a class is: price of the share of the variance of s (by weight)
    that they do not explain; one in a hundred is worth 1 in 2,000 rows with another class."""

    side: float = 1e-3
    """Weight of a row that goes to the other side and still gets its class."""

    polish: int = 3
    """Rounds of polishing."""


OPTIONS = CardSearchOptions()


class CardPart(NamedTuple):
    """A variable at one question: the bin at which each row is, and contributions of bins.

    ``chain`` are the bins in the order in which neighbours may share a line; other bins stand
    alone.
    """

    at: NDArray[np.intp]
    pulls: FloatArray
    chain: NDArray[np.intp]

    @property
    def ways(self) -> NDArray[np.int64]:
        """1 where contributions rise along the chain, -1 where they fall: points do the same."""
        return np.sign(np.diff(self.pulls[self.chain])).astype(np.int64)


class Asked(NamedTuple):
    """Rows at one question.

    ``above`` is s, the sum of contributions and ``constant``; ``width`` is that of the gate in its
    units; ``gain`` is what it is worth that a row goes right and not left.
    """

    above: FloatArray
    constant: float
    width: float
    gain: FloatArray


class QuestionPoints(NamedTuple):
    """Points of the bins of each variable, the limit, and the gain of rows that reach it."""

    points: list[NDArray[np.int64]]
    limit: int
    gain: float


def search_points(
    asked: Asked, parts: Sequence[CardPart], points: int, sharp: bool, quick: bool = False
) -> QuestionPoints:
    """The best card of one question; no bin gets more than ``points`` points.

    A ``quick`` search tries a sixth of the settings.
    ``sharp``: only the side counts, not how far a sum is from the limit; of a single variable 0 and
    1 then suffice.
    """
    weight, width = _weights(asked)
    alone = len(parts) == 1
    if alone:  # far from the threshold nothing changes any more
        far, constant = OPTIONS.far * width, asked.constant
        asked = asked._replace(above=np.clip(asked.above, -far, far), constant=0.0)
        parts = [parts[0]._replace(pulls=np.clip(parts[0].pulls + constant, -far, far))]
    fewer = () if quick else OPTIONS.fewer
    multiples = OPTIONS.quick_multiples if quick else OPTIONS.multiples
    largest = sorted({min(few, points) for few in (*fewer, points)})
    if alone and sharp:
        largest = [1]
    most = float(np.maximum(asked.gain, 0.0).sum())
    unit = max(len(asked.above), 1)
    best: tuple[float, QuestionPoints, int] | None = None
    for top, multiple, price in product(largest, multiples, OPTIONS.prices):
        fitted = _fitted(asked, parts, weight, top, multiple, price)
        lines = sum(_n_lines(p, part.chain) for p, part in zip(fitted.points, parts, strict=True))
        lost = (most - fitted.gain) / unit
        score = lost + OPTIONS.line_price * lines + OPTIONS.point_price * top
        if not sharp:
            score += OPTIONS.risk_price * _unexplained(
                asked.above, _summed(fitted.points, parts), weight
            )
        if best is None or score < best[0] - 1e-12:
            best = score, fitted, top
    assert best is not None
    return best[1] if alone else _polished(best[1], asked, parts, best[2])


def _weights(asked: Asked) -> tuple[FloatArray, float]:
    """w of each row, and the width of the gate that they are made with."""
    spread = 1.0
    if len(asked.above):
        low, high = np.quantile(asked.above, [0.25, 0.75])
        spread = max(float(high - low) / 1.35, float(np.ptp(asked.above)) / 100)
    width = max(asked.width, OPTIONS.width * spread, 1e-300)
    gate = 0.5 * (1.0 + np.tanh(0.5 * np.clip(asked.above / width, -700, 700)))
    weights: FloatArray = OPTIONS.floor + (1 - OPTIONS.floor) * 4 * gate * (1 - gate)
    return weights, width


def _fitted(
    asked: Asked,
    parts: Sequence[CardPart],
    weight: FloatArray,
    top: int,
    multiple: float,
    price: float,
) -> QuestionPoints:
    """Points for one largest number, multiplier and price of a line."""
    n = max(len(asked.above), 1)
    spans = [_span(part) for part in parts]
    unit = multiple * max(high - low for low, high in spans) / top
    unit = unit if unit > 0 else 1.0
    fits = [
        np.clip(np.rint((part.pulls - low) / unit), 0, top).astype(np.int64)
        for part, (low, _) in zip(parts, spans, strict=True)
    ]
    totals = _summed(fits, parts)
    total_weight = float(weight.sum()) or 1.0
    alone = len(parts) == 1
    for _ in range(OPTIONS.sweeps):
        unit, offset = _regressed(asked.above, totals, weight, unit)
        goal, before = (asked.above - offset) / unit, totals
        for v, part in enumerate(parts):
            rest = goal - (totals - fits[v][part.at])
            W = _binned(part, weight)
            R = _binned(part, weight * rest)
            # Where there are few rows, the contribution of the tree itself.
            middle = (
                float(R.sum() / (W.sum() or 1.0)) - float(W @ part.pulls / (W.sum() or 1.0)) / unit
            )
            prior = OPTIONS.prior * total_weight / n
            R, W = R + prior * (part.pulls / unit + middle), W + prior
            allowed = _sides(part, asked, top) if alone else None
            fits[v] = _segmented(W, R, part.chain, part.ways, price * total_weight, top, allowed)
            totals = _summed(fits, parts)
        if np.array_equal(totals, before):
            break
    fits = [p - p.min() for p in fits]
    totals = _summed(fits, parts)
    unit, offset = _regressed(asked.above, totals, weight, unit)
    limit, gain = _best_limit(np.bincount(totals, asked.gain, 1).astype(float), -offset / unit)
    if alone:  # sides are kept apart by the points themselves
        limit, gain = _limit_of_sides(fits[0], parts[0], asked)
    return QuestionPoints(fits, limit, gain)


def _summed(points: Sequence[NDArray[np.int64]], parts: Sequence[CardPart]) -> NDArray[np.int64]:
    """T of every row."""
    totals = [p[part.at] for p, part in zip(points, parts, strict=True)]
    return np.asarray(np.sum(totals, axis=0))


def _binned(part: CardPart, values: FloatArray) -> FloatArray:
    """Sums of values over the rows of each bin."""
    return np.bincount(part.at, values, len(part.pulls)).astype(float)


def _span(part: CardPart) -> tuple[float, float]:
    """Least and largest contribution of the bins with rows."""
    seen = part.pulls[np.unique(part.at)] if len(part.at) else part.pulls
    return float(seen.min()), float(seen.max())


def _regressed(
    above: FloatArray, totals: NDArray[np.int64], weight: FloatArray, unit: float
) -> tuple[float, float]:
    """u and o of the weighted regression of s on sums of points."""
    if not len(above):
        return unit, 0.0
    mean = float(np.average(totals, weights=weight))
    centre = float(np.average(above, weights=weight))
    spread = float(weight @ (totals - mean) ** 2)
    slope = float(weight @ ((totals - mean) * (above - centre))) / spread if spread > 0 else 0.0
    unit = slope if slope > 0 else unit
    return unit, centre - unit * mean


def _unexplained(above: FloatArray, totals: NDArray[np.int64], weight: FloatArray) -> float:
    """Share of the weighted variance of s that a straight line in T leaves."""
    size = float(np.abs(above).max(initial=0.0))
    above = above / size if size > 0 else above  # squares of large numbers overflow
    unit, offset = _regressed(above, totals, weight, 0.0)
    total = float(weight @ (above - np.average(above, weights=weight)) ** 2) if len(above) else 0.0
    return float(weight @ (above - unit * totals - offset) ** 2) / total if total > 0 else 0.0


def _segmented(
    W: FloatArray,
    R: FloatArray,
    chain: NDArray[np.intp],
    ways: NDArray[np.int64],
    price: float,
    top: int,
    allowed: NDArray[np.bool_] | None,
) -> NDArray[np.int64]:
    """Points of all bins that minimise sum_b W_b p_b^2 - 2 R_b p_b + price x (changes).

    Along the chain they rise and fall as ``ways`` says.
    """
    levels = np.arange(top + 1)
    cost = W[:, None] * levels**2 - 2.0 * R[:, None] * levels
    if allowed is not None:
        cost = np.where(allowed, cost, np.inf)
    points: NDArray[np.int64] = np.argmin(cost, axis=1)
    if not len(chain):
        return points
    best, back = cost[chain[0]], []
    for b, way in zip(chain[1:], ways, strict=True):
        # Of all points below (above, where contributions fall) the cheapest.
        seen = best[::way] if way else best
        lowest = np.minimum.accumulate(seen)
        places = np.maximum.accumulate(np.where(seen == lowest, levels, 0))
        lowest = (lowest[::way] if way else np.full(top + 1, np.inf)) + price
        stays = best <= lowest
        back.append(np.where(stays, levels, top - places[::-1] if way < 0 else places))
        best = cost[b] + np.where(stays, best, lowest)
    points[chain[-1]] = at = int(np.argmin(best))
    for b, came in zip(chain[-2::-1], reversed(back), strict=True):
        points[b] = at = int(came[at])
    return points


def _best_limit(worth: FloatArray, wanted: float) -> tuple[int, float]:
    """The limit of largest gain, of equal ones the nearest to ``wanted``; ``worth`` by sum."""
    gains = np.concatenate([np.cumsum(worth[::-1])[::-1], [0.0]])
    slack = 1e-9 * max(float(np.abs(worth).sum()), 1e-300)
    best = np.flatnonzero(gains >= gains.max() - slack)
    limit = int(best[np.argmin(np.abs(best - wanted))])
    return limit, float(gains[limit])


# --- one variable alone ---------------------------------------------------------------------------


def _right(part: CardPart, asked: Asked) -> NDArray[np.bool_]:
    """Which bins of a variable that is asked alone belong to the right side."""
    worth = np.bincount(part.at, asked.above >= 0, len(part.pulls))
    seen = np.bincount(part.at, minlength=len(part.pulls))
    return np.asarray(np.where(seen > 0, 2 * worth >= seen, part.pulls + asked.constant >= 0))


def _sides(part: CardPart, asked: Asked, top: int) -> NDArray[np.bool_]:
    """Points that each bin may have, so that both sides keep apart, (n_bins, top + 1)."""
    levels, middle = np.arange(top + 1), _middle(part, asked, top)
    right = _right(part, asked)
    return np.asarray(np.where(right[:, None], levels >= middle, levels < middle))


def _middle(part: CardPart, asked: Asked, top: int) -> int:
    """The limit: both sides share the points by the contributions that they span."""
    low, high = _span(part)
    share = (-asked.constant - low) / (high - low) if high > low else 0.5
    return int(np.clip(np.rint(top * share + 0.5), 1, top))


def _limit_of_sides(fit: NDArray[np.int64], part: CardPart, asked: Asked) -> tuple[int, float]:
    right = _right(part, asked)
    limit = int(fit[right].min()) if np.any(right) else int(fit.max()) + 1
    return limit, float(asked.gain[fit[part.at] >= limit].sum())


# --- polishing ------------------------------------------------------------------------------------


def _n_lines(points: NDArray[np.int64], chain: NDArray[np.intp]) -> int:
    """Lines of a block."""
    alone = len(points) - len(chain)
    if not np.any(points):
        return 0
    return 1 + int(np.count_nonzero(np.diff(points[chain]))) + alone


def _polished(
    start: QuestionPoints, asked: Asked, parts: Sequence[CardPart], top: int
) -> QuestionPoints:
    """Move single lines by a point and single edges by a bin while rows are won."""
    points = [p.copy() for p in start.points]
    totals = _summed(points, parts)
    rows = [np.argsort(part.at, kind="stable") for part in parts]
    starts = [
        np.searchsorted(part.at[order], np.arange(len(part.pulls) + 1))
        for part, order in zip(parts, rows, strict=True)
    ]
    size = top * len(parts) + 1
    worth = np.bincount(totals, asked.gain, size).astype(float)
    limit, gain = start.limit, start.gain
    for _ in range(OPTIONS.polish):
        moved = False
        for v, part in enumerate(parts):
            for bins, values in _moves(points[v], part.chain, top):
                tried = points[v].copy()
                tried[bins] = values
                if np.any(np.diff(tried[part.chain]) * part.ways < 0):
                    continue
                some = np.concatenate([rows[v][starts[v][b] : starts[v][b + 1]] for b in bins])
                if not len(some):
                    continue
                shift = np.repeat(
                    values - points[v][bins], [starts[v][b + 1] - starts[v][b] for b in bins]
                )
                there = totals[some]
                change = np.bincount(there + shift, asked.gain[some], size)
                change -= np.bincount(there, asked.gain[some], size)
                at, reached = _best_limit(worth + change, limit)
                if reached > gain + 1e-6:
                    points[v][bins] = values
                    totals[some] = there + shift
                    worth, limit, gain, moved = worth + change, at, reached, True
        if not moved:
            break
    for p in points:
        limit -= int(p.min())
        p -= p.min()
    return QuestionPoints(points, limit, gain)


def _moves(
    points: NDArray[np.int64], chain: NDArray[np.intp], top: int
) -> list[tuple[NDArray[np.intp], NDArray[np.int64]]]:
    """Bins that change and their new points, of all moves from where points are now."""
    alone = np.setdiff1d(np.arange(len(points)), chain)
    runs = np.split(chain, np.flatnonzero(np.diff(points[chain])) + 1) if len(chain) else []
    groups = [*runs, *(np.array([b]) for b in alone)]
    moves = [
        (group, points[group] + step)
        for group in groups
        for step in (-1, 1)
        if 0 <= points[group[0]] + step <= top
    ]
    for first, second in pairwise(runs):
        if len(first) > 1:
            moves.append((first[-1:], points[second[:1]].copy()))
        if len(second) > 1:
            moves.append((second[:1], points[first[-1:]].copy()))
    return moves
