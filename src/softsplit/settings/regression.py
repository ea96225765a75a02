"""The table of parameters of trees that predict numbers; see ``softsplit.settings.table``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from softsplit.settings.checks import one_among, truth
from softsplit.settings.parameter import parameter, taken
from softsplit.settings.table import (
    SELECTIONS,
    ChoiceParameters,
    ColumnParameters,
    ProblemParameters,
    RunParameters,
    SingleTreeParameters,
)
from softsplit.support.arguments import open_interval, positive_integer, positive_number

LOSSES = ("squared", "huber", "absolute", "quantile", "poisson", "gamma", "tweedie")


def _level(name: str, value: Any) -> float:
    """A number between 0 and 1."""
    return open_interval(name, value, 0.0, 1.0)


def _power(name: str, value: Any) -> float:
    """A number between 1 and 2."""
    return open_interval(name, value, 1.0, 2.0)


def _price(name: str, value: Any) -> float:
    """A number of at least 0."""
    return positive_number(name, value, zero=True)


@dataclass(kw_only=True, eq=False, repr=False)
class LeafParameters:
    """What a tree whose leaves have formulas is like, and how it is trained.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        Levels of questions at most. "auto" is 2, and for a search 0 to 3 by cross-validation. With
        0 the tree is one formula.
    strength : float or "auto", default="auto"
        Price of a coefficient in units of log-likelihood; a column costs four, a question two.
        "auto" is half the logarithm of the number of rows (BIC), and for a search chosen by
        cross-validation.
    max_leaves : int, optional
        Most leaves.
    leaf_terms : int, optional
        Most columns in the formula of a leaf; 0 makes leaves constant.
    min_leaf_rows : int, default=10
        Fewest training rows that arrive in a leaf.
    decision : {"walk", "mixture"}, default="walk"
        How ``predict`` computes. "walk": the formula of the leaf at which the printed questions
        lead. "mixture": the mean over all leaves by their probabilities, a smooth surface.
    feature_costs : dict, optional
        Price of columns of X, by name or position, as a multiple of that of an ordinary column.
    """

    depth: int | str = "auto"
    strength: float | str = parameter("auto", check=_price)
    max_features: int | None = taken(ProblemParameters, "max_features")
    max_terms: int | None = taken(ProblemParameters, "max_terms")
    max_leaves: int | None = parameter(None, check=positive_integer)
    leaf_terms: int | None = parameter(
        None, "Largest number of columns in the formula of a leaf; 0: constants.", int, least=0
    )
    min_leaf_rows: int = parameter(10, check=positive_integer)
    decision: str = parameter("walk", check=one_among(("walk", "mixture")))
    feature_types: Any = taken(ColumnParameters, "feature_types")
    groups: Any = taken(ColumnParameters, "groups")
    curves: str | bool | int = taken(ColumnParameters, "curves")
    monotone: Any = taken(ColumnParameters, "monotone")
    feature_costs: Any = taken(ColumnParameters, "feature_costs")
    time_limit: float | None = taken(RunParameters, "time_limit")
    n_jobs: int | None = taken(RunParameters, "n_jobs")
    random_state: Any = taken(RunParameters, "random_state")
    verbose: int = parameter(0, check=truth)


@dataclass(kw_only=True, eq=False, repr=False)
class NumberParameters(LeafParameters):
    """What both estimators of numbers have in common.

    Parameters
    ----------
    loss : str, default="squared"
        What an error costs, and so what a leaf predicts: "squared", the mean of its rows; "huber",
        a mean in which large errors count as absolute ones; "absolute", the median; "quantile", the
        quantile ``quantile``; "poisson" for counts, "gamma" for positive amounts and "tweedie" for
        amounts with zeros, a mean as a product of factors. Training lowers the loss expected over
        the leaves, so that rows belong to one leaf each.
    quantile : float, default=0.5
        Share of the rows that lie below the prediction, of loss "quantile".
    objective : {"leaves", "mixture"}, default="leaves"
        What training lowers: the loss expected over the leaves, or the squared error of their mean,
        as in other soft regression trees; the tree then predicts by
        this mean (``decision="mixture"``), and its leaves mean little one by one.
    power : float, default=1.5
        Variances are proportional to this power of the mean, between 1 and 2, of loss "tweedie".
    """

    loss: str = parameter("squared", check=one_among(LOSSES))
    quantile: float = parameter(0.5, check=_level)
    objective: str = parameter("leaves", check=one_among(("leaves", "mixture")))
    power: float = parameter(1.5, check=_power)


@dataclass(kw_only=True, eq=False, repr=False)
class NumberChoiceParameters:
    """How a tree for numbers is chosen by cross-validation.

    Parameters
    ----------
    selection : {"default", "sparse", "best", "auto"}, default="default"
        The trade between quality and size: the setting with the lowest cross-validated error plus
        a price for each column and coefficient, three times that for "sparse", none for "best".
    cv : int, splitter or iterable of splits, default=5
        A number means shuffled folds.
    """

    selection: str = parameter(
        "default", check=one_among([word for word in SELECTIONS if word != "one_se"])
    )
    cv: Any = 5


# Tables of ``SoftTreeRegressor`` and ``SoftTreeRegressorCV``, and where fields of them stand.
REGRESSOR = (NumberParameters,)
NUMBER_SEARCH = (NumberChoiceParameters, NumberParameters)
SURVIVAL = (LeafParameters,)
SURVIVAL_SEARCH = (NumberChoiceParameters, LeafParameters)
TAKEN = (
    LeafParameters, ProblemParameters, ColumnParameters, RunParameters, SingleTreeParameters,
    ChoiceParameters,
)  # fmt: skip
