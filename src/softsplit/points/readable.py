"""Cuts and units that people use: round numbers between quantiles, and 1, 2 or 5 times 10^k."""

from __future__ import annotations

from math import ceil, floor, log, log10

import numpy as np

from softsplit.support.arrays import FloatArray
from softsplit.variables.lookup import LEAST_STEPS, rounded

# Cuts of a number at most; a cut may move by this part of the distance between their quantiles.
MOST_CUTS = 9
FREE_SHARE = 0.35

# Widths of a counted step are tried near these parts of a standard deviation.
WIDTHS = (1.0, 0.5, 0.25, 0.125, 0.0625)

# Counts lie between these quantiles, and have at most so many steps.
ENDS = (0.01, 0.99)
MOST_STEPS = 40

# Standard deviations that have widths.
SMALLEST, LARGEST = 1e-290, 1e290


def roundest(low: float, high: float) -> float:
    """Return the number of fewest digits in [low, high]: 0, then 10^k, 5 10^k, 2 10^k ..."""
    if low <= 0.0 <= high:
        return 0.0
    middle = (low + high) / 2
    first = floor(log10(max(abs(low), abs(high)))) + 1
    for power in range(first, first - 16, -1):
        for step in (10.0**power, 0.5 * 10.0**power, 0.2 * 10.0**power):
            nearest = round(middle / step)
            for multiple in (nearest, nearest - 1, nearest + 1):
                if low <= rounded(multiple * step) <= high:
                    return rounded(multiple * step)
    return middle


def readable_cuts(ordered: FloatArray) -> list[float]:
    """Return at most nine values from which on points may change, whole ones for whole numbers.

    ``ordered`` are values in ascending order, and so is what is returned.
    """
    distinct = _distinct(ordered)
    whole = bool(np.all(distinct == np.round(distinct)))
    if len(distinct) <= MOST_CUTS + 1:
        pairs = zip(distinct[:-1].tolist(), distinct[1:].tolist(), strict=True)
        return [high if whole else _between(low, high) for low, high in pairs]
    shares = np.arange(1, MOST_CUTS + 1)
    lows, highs = (
        _quantiles(ordered, np.clip((shares + move) / (MOST_CUTS + 1), 0.0, 1.0))
        for move in (-FREE_SHARE, FREE_SHARE)
    )
    cuts = {roundest(low, high) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)}
    cuts = {float(ceil(cut)) for cut in cuts} if whole else cuts
    return sorted(cut for cut in cuts if distinct[0] < cut <= distinct[-1])


def _between(low: float, high: float) -> float:
    """Return the roundest number above ``low`` and up to ``high``."""
    return roundest(float(np.nextafter(low, high)), high)


def _distinct(ordered: FloatArray) -> FloatArray:
    return ordered[np.diff(ordered, prepend=-np.inf) > 0]


def _quantiles(ordered: FloatArray, shares: FloatArray) -> FloatArray:
    last = len(ordered) - 1
    return np.interp(shares * last, np.arange(last + 1), ordered)


def readable_counts(ordered: FloatArray) -> list[tuple[float, float, int]]:
    """Return widths of counted steps, each with a first start and a number of steps from there."""
    begin, end = _quantiles(ordered, np.array(ENDS)).tolist()
    counts = []
    for width in readable_widths(ordered):
        start = rounded(width * floor(begin / width))
        steps = floor((end - start) / width)
        if LEAST_STEPS <= steps <= MOST_STEPS:
            counts.append((start, width, steps))
    return counts


def readable_widths(ordered: FloatArray) -> list[float]:
    """Return widths 1, 2 or 5 times 10^k for counted steps, none finer than the values are."""
    distinct = _distinct(ordered)
    if len(distinct) < 3:
        return []
    unit = float(np.abs(distinct).max())  # squares of the largest floats are infinite
    spread, finest = unit * float(np.std(ordered / unit)), float(np.min(np.diff(distinct)))
    if not SMALLEST < spread < LARGEST:  # whose powers of ten are no floats
        return []
    widths = {_round_unit(part * spread) for part in WIDTHS}
    return sorted(width for width in widths if width >= 0.99 * finest)


def _round_unit(size: float) -> float:
    """Return the nearest of 1, 2 and 5 times 10^k by ratio."""
    power = 10.0 ** floor(log10(size))
    return rounded(min((m * power for m in (1, 2, 5, 10)), key=lambda unit: abs(log(unit / size))))
