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
from typing import Any, Literal, NamedTuple

from softsplit.capacity.growth import Growth, TreeSize, grid_degree, soft_tree_growth
from softsplit.support.arguments import open_interval, share, true_or_false, whole_number
from softsplit.support.messages import shown
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
        raise ValueError(f"method must be 'best' or 'lb-vc', got {shown(method)}.")
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


def feature_levels(binary: bool, levels: int | None) -> int | None:
    """The number of values of a feature; None if features are real."""
    true_or_false("binary", binary)
    if levels is None:
        return 2 if binary else None
    levels = whole_number("levels", levels, 2)
    if binary and levels != 2:
        raise ValueError(f"binary features have 2 levels, got levels={levels}.")
    return levels


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
