"""Lower and upper bounds on the VC dimension of soft trees with two classes.

The functions counted are x -> class 1 if sum_l c_1l P_l(x) > 1/2, over all coefficients and
thresholds in [-1, 1], all leaf probabilities and all steepnesses. With D the depth, p the number
of features and N = 2^D - 1 branches:

    exact   p + 1                        D = 1: half-spaces (Observation 1)
    lower   2^(D-1) (p - D + 3)          D >= 2, p >= D + 1: LB-VC (Propositions 2 and 3)
    lower   2^(D-1) (p + 1)              real features, any D and p
    lower   2^(D-1) (p + 1 - s)          features on a grid, at the vertices of the unit cube; s as
                                         small as ``cluster_plan`` finds it
    upper   O(16^D p^2)                  real features, the constant is computed (``growth``)
    upper   O(2^D p (D + log p))         binary features
    upper   2^p                          binary features: there are no more points
    upper   2^N                          one real feature

The third and the fourth line are ours and never below the second: the recursion of the paper gives
up one feature per level, which the cube needs only when features run short.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from softsplit.capacity.growth import TreeSize, feature_levels, grid_degree, soft_tree_growth
from softsplit.support.arguments import whole_number
from softsplit.support.messages import unfit
from softsplit.tree.parameters import tree_depth

Kind = Literal["exact", "lower", "upper"]
Method = Literal["best", "lb-vc"]
METHODS = ("best", "lb-vc")


@dataclass(frozen=True)
class Bound:
    """A bound on a VC dimension, with the reason why it holds; ``int(bound)`` is its value.

    ``source`` names the argument in a few words, ``reason`` gives it in a sentence.
    """

    value: int
    kind: Kind
    formula: str
    source: str
    reason: str

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __str__(self) -> str:
        words = {"exact": "exactly", "lower": "at least", "upper": "at most"}
        return f"{words[self.kind]} {self.value}: {self.reason}"


class ClusterPlan(NamedTuple):
    """How the levels above the last branches tell clusters of points apart.

    On the vertices of the unit cube ``n_fixed`` levels test a single feature, which is then used
    up; each of the others tests a block of three features or more, which stays in use. In ``cells``
    every level halves the range of one feature, the features taking turns.
    """

    working_depth: int
    n_features: int
    n_fixed: int = 0
    cells: bool = False

    @property
    def n_points(self) -> int:
        return int(2 ** (self.working_depth - 1) * (self.n_features - self.n_fixed + 1))

    @property
    def widths(self) -> list[float]:
        """Width of a cell along each feature; gaps are as wide as cells."""
        halvings = self.working_depth - 1 if self.cells else 0
        turns = (len(range(j, halvings, self.n_features)) for j in range(self.n_features))
        return [1.0 / (2 ** (halved + 1) - 1) for halved in turns]


def cluster_plan(depth: int, n_features: int, on_grid: bool) -> ClusterPlan:
    """The plan with most points; among equals that of the cube, whose margin is larger.

    Blocks of three need 3 (D - 1 - s) <= p - s features, so that s fixed features suffice from
    s >= (3 (D - 1) - p) / 2 on. A tree deeper than p gains nothing: the cube has 2^p vertices.
    Cells are for real features only.
    """
    plans = [
        ClusterPlan(used, n_features, max(0, (3 * (used - 1) - n_features + 1) // 2))
        for used in range(1, min(depth, n_features) + 1)
    ]
    if not on_grid:
        plans.append(ClusterPlan(depth, n_features, cells=True))
    return max(plans, key=lambda plan: plan.n_points)


def paper_plan(depth: int, n_features: int) -> ClusterPlan:
    """The plan of the paper: one feature per level, and one block for the last split of all."""
    if n_features < depth + 1:
        raise ValueError(
            f"the construction of the paper needs n_features >= depth + 1 at depth {depth}, got "
            f"{n_features}: {_why_not(depth, n_features)}; use method='best'."
        )
    return ClusterPlan(depth, n_features, max(0, depth - 2))


def lb_vc(depth: int, n_features: int) -> int:
    """The recursive lower bound LB-VC of section 5.1, with its base case put right.

    2 (p + 1) for a tree of depth 2, else twice the bound for a subtree on p - 1 features.
    """
    depth, n_features = tree_depth(depth), whole_number("n_features", n_features)
    if depth == 1:
        return n_features + 1
    paper_plan(depth, n_features)
    if depth == 2:
        return 2 * (n_features + 1)
    return 2 * lb_vc(depth - 1, n_features - 1)


def vc_lower_bound(
    depth: int,
    n_features: int,
    binary: bool = False,
    *,
    levels: int | None = None,
    method: Method = "best",
) -> Bound:
    """A number of points that trees of this size can label in every way.

    Parameters
    ----------
    depth, n_features, binary, levels
        As in ``vc_upper_bound``.
    method : {"best", "lb-vc"}
        The points that this library can construct, never fewer than the paper; or the recursion
        of the paper, which holds for all features alike and exists for depth 1 and for
        n_features >= depth + 1.

    Returns
    -------
    Bound
        ``softsplit.capacity.shatter`` builds the points and the trees.
    """
    depth, n_features = tree_depth(depth), whole_number("n_features", n_features)
    levels = feature_levels(binary, levels)
    if method not in METHODS:
        raise unfit("method", method, "must be 'best' or 'lb-vc'")
    if depth == 1:
        return _half_spaces(n_features)
    if method == "lb-vc":
        return _recursive(depth, n_features, binary=levels == 2)
    return _clusters(depth, n_features, levels)


def vc_upper_bound(
    depth: int, n_features: int, binary: bool = False, *, levels: int | None = None
) -> Bound:
    """A number of points that trees of this size cannot exceed and still label in every way.

    Parameters
    ----------
    depth, n_features : int
    binary : bool
        Whether features are 0 or 1 only: the same as ``levels=2``.
    levels : int, optional
        Number of equally spaced values a feature can take, as with counts, codes, or
        measurements with a fixed number of digits; None for real features.
    """
    depth, n_features = tree_depth(depth), whole_number("n_features", n_features)
    levels = feature_levels(binary, levels)
    if depth == 1:
        return _half_spaces(n_features)
    size = TreeSize(depth, n_features)
    candidates = [_khovanskii(size)]
    if n_features == 1:
        candidates.append(_descartes(size))
    if levels is not None:
        candidates += [_milnor_thom(size, levels), *_all_points(size, levels)]
    return min(candidates, key=int)


def _half_spaces(n_features: int) -> Bound:
    return Bound(
        n_features + 1,
        "exact",
        "p + 1",
        "half-spaces",
        "a tree with one branch is a half-space, at any steepness: the origin and the "
        f"{n_features} unit vectors are labelled in every way, and by Radon's theorem no "
        f"{n_features + 2} points are.",
    )


def _recursive(depth: int, n_features: int, binary: bool) -> Bound:
    value = lb_vc(depth, n_features)
    full = binary and value == 2**n_features
    start = f"LB-VC: {2 ** (depth - 2)} subtrees of depth 2" if depth > 2 else "the tree"
    kept = n_features - depth + 2
    fixed = f", after {_features(depth - 2)} told the subtrees apart" if depth > 2 else ""
    return Bound(
        value,
        "exact" if full else "lower",
        "2^(D-1) (p - D + 3)",
        "LB-VC",
        f"{start} on {_features(kept)}, {2 * (kept + 1)} vertices of the unit cube each{fixed} "
        f"(Propositions 2 and 3){'; these are all vertices there are' if full else ''}.",
    )


def _clusters(depth: int, n_features: int, levels: int | None) -> Bound:
    plan = cluster_plan(depth, n_features, levels is not None)
    full, used = _holds_all_points(plan, levels), plan.working_depth - 1
    what = "points" if levels is None else "vertices"
    formula = "2^(D-1) (p + 1)"
    if used < depth - 1 or plan.n_fixed:
        formula = f"2^{used} (p + 1 - s), s = {plan.n_fixed}"
    return Bound(
        plan.n_points,
        "exact" if full else "lower",
        f"{levels}^p" if full else formula,
        "clusters",
        f"{used} levels tell {2**used} clusters of {what} apart ({_tests(plan)}), and each last "
        f"branch labels its {n_features + 1 - plan.n_fixed} {what} in every way"
        f"{f'; these are all {what} there are' if full else ''}; {_beside(depth, n_features)}.",
    )


def _tests(plan: ClusterPlan) -> str:
    """What the levels of a plan test."""
    levels = plan.working_depth - 1
    if plan.cells:
        return f"{levels} by halving the values of a feature"
    counts = {
        "by one feature each": plan.n_fixed,
        "by the majority in a block of features": levels - plan.n_fixed,
    }
    return " and ".join(f"{count} {way}" for way, count in counts.items() if count)


def _holds_all_points(plan: ClusterPlan, levels: int | None) -> bool:
    """Whether no other point exists: the whole cube of binary features, never beyond 1000 bits."""
    return levels == 2 and plan.n_features < 1000 and plan.n_points == 2**plan.n_features


def _beside(depth: int, n_features: int) -> str:
    """What the paper says of this size."""
    if n_features >= depth + 1:
        return f"LB-VC of the paper gives {lb_vc(depth, n_features)}"
    return f"LB-VC of the paper does not apply ({_why_not(depth, n_features)})"


def _why_not(depth: int, n_features: int) -> str:
    kept = n_features - depth + 2
    if kept < 1:
        return "it uses up one feature per level, and none is left"
    return (
        f"on the {_features(kept)} left at depth 2 its point sets overlap, "
        "they are disjoint from 3 features on"
    )


def _features(count: int) -> str:
    return f"{count} feature{'' if count == 1 else 's'}"


def _khovanskii(size: TreeSize) -> Bound:
    parameters, branches = size.n_parameters, size.n_branches
    return Bound(
        soft_tree_growth(size).largest_shattered(),
        "upper",
        "largest m with 2^m <= B (e m / d)^d, B = 2^(q(q-1)/2) (l(l+1))^d (d(2l+1) + 1)^q",
        "Khovanskii",
        f"times its denominators the tree is a polynomial of degree l = {branches + 1} in its "
        f"d = {parameters} parameters and {branches} exponentials for each point, q = "
        f"{parameters * branches} for d points; Khovanskii's theorem bounds the components of its "
        "zero sets, Warren's argument counts the labellings (the method of Karpinski and "
        "Macintyre).",
    )


def _milnor_thom(size: TreeSize, levels: int) -> Bound:
    return Bound(
        soft_tree_growth(size, levels).largest_shattered(),
        "upper",
        "largest m with 2^m <= B (e m / d)^d, B = l (2l - 1)^(d - 1)",
        "Milnor and Thom",
        f"on {levels} equally spaced values the tree is a polynomial of degree l = "
        f"{grid_degree(size, levels)} in exponentials of its d = {size.n_parameters} parameters; "
        "Milnor and Thom bound the components of its zero sets, Warren's argument counts the "
        "labellings.",
    )


def _descartes(size: TreeSize) -> Bound:
    terms = 2**size.n_branches
    return Bound(
        terms,
        "upper",
        "2^(2^D - 1)",
        "Descartes",
        f"along one feature the tree times its denominators is a sum of {terms} exponentials, "
        f"which by Descartes' rule of signs changes its sign {terms - 1} times at most.",
    )


def _all_points(size: TreeSize, levels: int) -> list[Bound]:
    """No more points exist; nothing where their number would be too long to write down."""
    if size.n_features * math.log2(levels) > 1000:
        return []
    points = levels**size.n_features
    full = _holds_all_points(cluster_plan(size.depth, size.n_features, True), levels)
    reason = f"features with {levels} values give no more than {levels}^{size.n_features} points"
    return [
        Bound(
            points,
            "exact" if full else "upper",
            f"{levels}^p",
            "all points",
            f"{reason}{', and a tree of this depth labels them in every way' if full else ''}.",
        )
    ]
