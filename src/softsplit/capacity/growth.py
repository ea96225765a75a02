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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from softsplit.support.arguments import whole_number
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
