"""A bound on the error on new rows, from the error on training rows.

For n independent rows, with probability at least 1 - delta, every classifier of a class whose
growth function is G (see ``growth``) has

    R <= ((e + sqrt(e^2 + 4 r)) / 2)^2,    e^2 = 4 (ln G(2n) + ln(4 / delta)) / n

with R its error on new rows and r its share of wrong training rows: Vapnik's inequality for
relative deviations, P(sup (R - r) / sqrt(R) > e) <= 4 G(2n) exp(-n e^2 / 4), solved for R.

Training chooses which coefficients are zero. All supports are covered at once by sharing delta
out among them: each number s of coefficients out of M gets 1 / (M + 1), each support of that size
1 / C(M, s). That adds ln((M + 1) C(M, s)), and G counts only s coefficients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from softsplit.capacity.bounds import feature_levels
from softsplit.capacity.growth import Growth, TreeSize, soft_tree_growth
from softsplit.support.arguments import open_interval, share, whole_number

MOST_SAMPLES = 2**60
"""Where the search for a sufficient number of samples ends."""


@dataclass(frozen=True)
class GeneralisationBound:
    """A bound on the error of a tree on new rows; ``float(bound)`` is its value, at most 1.

    ``vacuous`` says that guessing a class at random is promised as much. ``samples_needed`` is
    the number of rows from which on the same training error gives a bound that is not; None if
    no number does.
    """

    error_bound: float
    training_error: float
    n_samples: int
    confidence: float
    size: TreeSize
    samples_needed: int | None
    reason: str

    @property
    def vacuous(self) -> bool:
        return self.error_bound >= _chance(self.size)

    def __float__(self) -> float:
        return self.error_bound

    def __str__(self) -> str:
        return self.reason


def generalisation_bound(
    tree: Any,
    *,
    n_samples: int,
    training_error: float,
    confidence: float = 0.95,
    binary: bool = False,
    levels: int | None = None,
) -> GeneralisationBound:
    """Bound the error on new rows from the training error and the size of a tree.

    Parameters
    ----------
    tree : fitted SoftTreeClassifier, or TreeSize
        Of a fitted tree only the coefficients that are not zero are counted, and the price of
        their choice is paid; the same for a ``TreeSize`` with ``n_coefficients``.
    n_samples : int
        Number of training rows.
    training_error : float
        Share of the training rows that the tree gets wrong, ``1 - tree.score(X, y)``.
    confidence : float
        Probability with which the bound holds, over the draw of the training rows.
    binary, levels
        As in ``vc_upper_bound``; features on a grid have far smaller bounds. The grid must be
        known without looking at the rows.

    Notes
    -----
    The bound holds for any distribution and any way of training, and is therefore pessimistic:
    for the sample sizes at which such trees are used it is mostly vacuous. It says how bounds
    scale with depth, features and sparsity. To estimate the error of a tree use rows kept apart.
    It assumes independent rows of equal weight and counts errors, not costs. Depth and grid must
    not have been chosen by looking at the rows.
    """
    size = tree if isinstance(tree, TreeSize) else TreeSize.of(tree)
    n_samples = whole_number("n_samples", n_samples)
    training_error = share("training_error", training_error)
    confidence = open_interval("confidence", confidence, 0.0, 1.0)
    growth = soft_tree_growth(size, feature_levels(binary, levels))
    price = _price_of_support(size) + math.log(4.0 / (1.0 - confidence))
    bound = _bound(growth, price, n_samples, training_error)
    needed = _samples_needed(growth, price, training_error, _chance(size))
    return GeneralisationBound(
        error_bound=bound,
        training_error=training_error,
        n_samples=n_samples,
        confidence=confidence,
        size=size,
        samples_needed=needed,
        reason=_reason(size, n_samples, confidence, bound, needed),
    )


def _bound(growth: Growth, price: float, n_samples: int, training_error: float) -> float:
    log_growth = math.log(2.0) * growth.log2(2 * n_samples)
    deviation = math.sqrt(4.0 * (log_growth + price) / n_samples)
    root = (deviation + math.sqrt(deviation**2 + 4.0 * training_error)) / 2.0
    return min(1.0, root**2)


def _price_of_support(size: TreeSize) -> float:
    if size.n_coefficients is None:
        return 0.0
    total, used = size.all_coefficients, size.n_coefficients
    choices = math.lgamma(total + 1) - math.lgamma(used + 1) - math.lgamma(total - used + 1)
    return math.log(total + 1) + choices


def _chance(size: TreeSize) -> float:
    """Error of guessing each class equally often."""
    return 1.0 - 1.0 / size.n_classes


def _samples_needed(
    growth: Growth, price: float, training_error: float, target: float
) -> int | None:
    """The least n with a bound below ``target``; the bound falls as n grows."""
    high = 1
    while _bound(growth, price, high, training_error) >= target:
        high *= 2
        if high > MOST_SAMPLES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if _bound(growth, price, middle, training_error) >= target:
            low = middle
        else:
            high = middle
    return high


def _reason(
    size: TreeSize, n_samples: int, confidence: float, bound: float, needed: int | None
) -> str:
    what = f"{n_samples} rows and {size.n_parameters} parameters at depth {size.depth}"
    if bound < _chance(size):
        return (
            f"with confidence {confidence:.4g}, the error on new rows is at most {bound:.3g} "
            f"({what}); an estimate from rows kept apart will be much closer."
        )
    outlook = (
        "and no number of rows would do at this training error"
        if needed is None
        else f"it takes {needed} rows at the same training error"
    )
    return (
        f"vacuous: for {what} the bound is no better than guessing ({_chance(size):.3g}), "
        f"{outlook}; estimate the error from rows kept apart."
    )
