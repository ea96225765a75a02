"""In how many ways can a model label m points? The counting behind every upper bound.

Suppose that the class a model gives to a point follows from the signs of k functions of its d
parameters, and that a system of at most d equations f_i(parameters) = constant, taken from these
functions at any points, has a solution set of at most B connected components. Then m points are
labelled in at most

    growth(m) <= B (e m k / d)^d                for m >= d

ways (Warren 1968; Anthony and Bartlett 1999, Theorem 7.6), and the largest m with
2^m <= growth(m) bounds the VC dimension. B is

    (2l - 1)^(d - 1) l                          polynomials of degree l: Milnor 1964, Thom 1965
    2^(q (q - 1) / 2) (l (l + 1))^d (d (2l + 1) + 1)^q
                                                polynomials of degree l in the parameters and in q
                                                exponentials of affine functions of them

The second is Khovanskii's bound on the nondegenerate solutions of such a system, applied to the
points of each component nearest to a generic point; docs/capacity.md has the steps. A soft tree
times its positive denominators is of this form, with one exponential per branch and point.

``generalisation_bound`` bounds the error on new rows by the error on training rows. For n
independent rows, with probability at least 1 - delta, every classifier of a class whose
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

import numpy as np

from softsplit.support.arguments import open_interval, share, true_or_false, whole_number
from softsplit.tree.parameters import tree_depth


@dataclass(frozen=True)
class Growth:
    """growth(m) <= 2^log2_components (e m predicates / parameters)^parameters."""

    parameters: int
    log2_components: float = 0.0
    predicates: int = 1
    n_classes: int = 2

    def log2(self, n_points: int) -> float:
        """Base-2 logarithm of the number of labellings of ``n_points`` points."""
        every = n_points * math.log2(self.n_classes)
        if n_points < self.parameters:
            return every
        return min(every, self._counted(n_points))

    def largest_shattered(self) -> int:
        """No set with more points can be labelled in all ways: an upper bound on the VC dimension.

        counted is concave in m: from a point above the larger solution of m = counted(m), the
        step m <- counted(m) falls towards that solution and stays above it.
        """
        points = 2.0 * max(1.0, self.parameters)
        while self._counted(points) >= points:
            points *= 2.0
        for _ in range(200):
            points = self._counted(points)
        # Rounded to the safe side: sums of this size lose the last of 16 digits.
        return max(math.floor(points * (1.0 + 1e-12)), self.parameters)

    def _counted(self, n_points: float) -> float:
        ratio = math.e * n_points * self.predicates / self.parameters
        return self.log2_components + self.parameters * math.log2(ratio)


def exponential_components(parameters: int, exponentials: int, degree: int) -> float:
    """log2 B for polynomials in the parameters and in exponentials of affine functions of them."""
    return (
        exponentials * (exponentials - 1) / 2
        + parameters * math.log2(degree * (degree + 1))
        + exponentials * math.log2(parameters * (2 * degree + 1) + 1)
    )


def polynomial_components(parameters: int, degree: int) -> float:
    """log2 B for polynomials of the given degree."""
    return math.log2(degree) + (parameters - 1) * math.log2(2 * degree - 1)


@dataclass(frozen=True)
class TreeSize:
    """What the capacity of a soft tree depends on.

    Parameters
    ----------
    depth, n_features : int
    n_classes : int
    n_coefficients : int, optional
        How many of the ``n_features * n_branches`` split coefficients may differ from zero, at
        places fixed in advance; all by default.
    """

    depth: int
    n_features: int
    n_classes: int = 2
    n_coefficients: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", tree_depth(self.depth))
        for name, least in (("n_features", 1), ("n_classes", 2)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least))
        if self.n_coefficients is not None:
            count = whole_number("n_coefficients", self.n_coefficients, 0)
            if count > self.all_coefficients:
                raise ValueError(
                    f"n_coefficients must be at most {self.all_coefficients}, the number of "
                    f"features times the number of branches, got {count}."
                )
            object.__setattr__(self, "n_coefficients", count)

    @classmethod
    def of(cls, tree: Any) -> TreeSize:
        """The size of a fitted ``SoftTreeClassifier``; exact zeros do not count."""
        try:
            weights, leaf_values = np.asarray(tree.weights_), np.asarray(tree.leaf_classes_)
        except AttributeError:
            raise ValueError(
                f"a fitted SoftTreeClassifier or a TreeSize is needed, got {type(tree).__name__}"
                f"{' that is not fitted' if hasattr(tree, 'fit') else ''}."
            ) from None
        return cls(
            depth=int(leaf_values.shape[1]).bit_length() - 1,
            n_features=int(weights.shape[0]),
            n_classes=int(leaf_values.shape[0]),
            n_coefficients=int(np.count_nonzero(weights)),
        )

    @property
    def n_branches(self) -> int:
        return int(2**self.depth - 1)

    @property
    def all_coefficients(self) -> int:
        return self.n_features * self.n_branches

    @property
    def used_coefficients(self) -> int:
        return self.all_coefficients if self.n_coefficients is None else self.n_coefficients

    @property
    def n_parameters(self) -> int:
        """Coefficients, thresholds, and the free class probabilities of the leaves."""
        leaves = (self.n_classes - 1) * 2**self.depth
        return self.used_coefficients + self.n_branches + leaves


def feature_levels(binary: bool, levels: int | None) -> int | None:
    """The number of values of a feature; None if features are real."""
    true_or_false("binary", binary)
    if levels is None:
        return 2 if binary else None
    levels = whole_number("levels", levels, 2)
    if binary and levels != 2:
        raise ValueError(f"binary features have 2 levels, got levels={levels}.")
    return levels


def soft_tree_growth(size: TreeSize, levels: int | None = None) -> Growth:
    """Growth of soft trees of this size, whatever their steepness and leaf probabilities.

    With E_t = exp(-steepness * score_t) at branch t, the leaf probabilities times the product of
    all 1 + E_t are polynomials of degree 1 in each E_t, and c_kl multiplies them. The class is
    the sign of the K (K - 1) / 2 differences between classes.

    Features that take only ``levels`` equally spaced values make E_t itself a monomial, of degree
    at most 1 + (levels - 1) * (coefficients of branch t), in exponentials of single parameters.
    """
    if size.depth == 1 and size.n_classes == 2:
        # A half-space of the features in use, or a constant: Sauer's lemma.
        return Growth(parameters=size.used_coefficients + 1)
    parameters = size.n_parameters
    counts = [
        exponential_components(
            parameters, exponentials=parameters * size.n_branches, degree=size.n_branches + 1
        )
    ]
    if levels is not None:
        counts.append(polynomial_components(parameters, grid_degree(size, levels)))
    pairs = size.n_classes * (size.n_classes - 1) // 2
    return Growth(parameters, min(counts), pairs, size.n_classes)


def grid_degree(size: TreeSize, levels: int) -> int:
    """Degree of a tree as a polynomial in exponentials of its parameters, on a grid of features."""
    return size.n_branches + (levels - 1) * size.used_coefficients + 1


def hard_tree_growth(depth: int, n_features: int) -> Growth:
    """Growth of trees with hard oblique splits: one half-space per branch.

    The class of a point follows from the sides on which the branches see it, and the two leaves
    of a last branch make it a half-space again, so that leaf labels add nothing.
    """
    n_branches = 2**depth - 1
    return Growth(parameters=n_branches * (n_features + 1), predicates=n_branches)


def threshold_network_growth(n_features: int, hidden_units: int) -> Growth:
    """Growth of two-layer networks of threshold units (Baum and Haussler 1989)."""
    return Growth(
        parameters=hidden_units * (n_features + 2) + 1,
        predicates=hidden_units + 1,
    )


def sigmoid_network_growth(n_features: int, hidden_units: int, levels: int | None = None) -> Growth:
    """Growth of two-layer networks of sigmoids under one threshold, counted as for soft trees."""
    parameters = hidden_units * (n_features + 2) + 1
    counts = [
        exponential_components(
            parameters, exponentials=parameters * hidden_units, degree=hidden_units + 1
        )
    ]
    if levels is not None:
        degree = hidden_units * (1 + (levels - 1) * n_features) + 1
        counts.append(polynomial_components(parameters, degree))
    return Growth(parameters, min(counts))


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
    # Doubling finds an interval, bisection the least n in it.
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
