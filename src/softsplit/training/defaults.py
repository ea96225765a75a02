"""What the word "auto" stands for: it depends on the loss.

                   loss="cost", the paper's model     loss="log"
scale              "minmax"                           "standard"
steepness          512                                absorbed by the weights (UNITS)
penalty            "l0"                               "count", or "l0" for other solvers
min_class_rate     0.1                                0
depth              the least with a leaf per class    one more, for up to six levels
global_strength    0, as it must be stated             a share of the featureless loss (share), or
                                                      what luck would give (luck)
local_strength     0                                  a quarter of the global one under "count"

The featureless loss is that of the best tree that uses no feature, or of two even classes if that
is less.
"""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

from softsplit.solvers.abilities import Follower
from softsplit.solvers.elimination.screening import luck
from softsplit.support.arguments import positive_number
from softsplit.support.messages import shown
from softsplit.tree.parameters import Topology
from softsplit.tree.scaling import DEVIATIONS

PAPER = {"scale": "minmax", "steepness": 512.0, "penalty": "l0", "min_class_rate": 0.1}
LIKELIHOOD = {"scale": "standard", "steepness": "auto", "penalty": "count", "min_class_rate": 0.0}

UNITS = {"standard": DEVIATIONS, "quantile": 12.0**0.5, "minmax": 12.0**0.5, "identity": 1.0}
"""Log-odds of a split per scaled unit at weight 1. A weight is then a change of the log-odds per
standard deviation of a feature (under "quantile" and "minmax", of evenly spread values)."""

GLOBAL_SHARE, SHARE_ROWS = 0.006, 1000
"""A feature must lower the featureless loss by this part, and a coefficient by a quarter of it;
with more than so many rows, which tell smaller gains from luck, by less."""

EVEN = log(2)
"""Loss of a row of two even classes: no more than that counts of the featureless loss. With many
classes it is larger, but what luck gives a coefficient is not."""

LUCK_PART = 0.25
"""Part of ``luck`` that a feature must give at least: with few rows it is more than a share."""

LOCAL_PART = 0.25
"""Strength of a coefficient under "count", as a part of that of a feature."""

DEEPER_UP_TO = 6


def is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def is_likelihood(loss: Any) -> bool:
    """Whether ``loss`` names the log-loss."""
    return isinstance(loss, str) and loss == "log"


def resolved(settings: Any, n_classes: int) -> Any:
    """The ``ModelSettings`` with every "auto" replaced, strengths apart: those need a problem."""
    likelihood = is_likelihood(settings.loss)
    table = LIKELIHOOD if likelihood else PAPER
    if likelihood and not is_auto(settings.steepness):
        raise ValueError(
            f"steepness {shown(settings.steepness)} is part of loss='cost': under loss='log' the "
            "weights make a split as steep as the rows do; leave it at 'auto'."
        )
    found = {name: v for name, v in table.items() if is_auto(getattr(settings, name))}
    if likelihood:
        found["depth"] = likely_depth(settings.depth, n_classes)
    return replace(settings, **found)


def likely_depth(depth: Any, n_classes: int) -> Any:
    """The depth of a tree by likelihood, if it is left to us."""
    if not is_auto(depth):
        return depth
    smallest = Topology.for_classes(n_classes).depth
    return max(smallest, min(smallest + 1, DEEPER_UP_TO))


def auto_penalty(penalty: Any, loss: Any, solver: Any) -> Any:
    """The penalty for a solver: only one that eliminates features can count them."""
    counts = isinstance(solver, Follower) or (isinstance(solver, str) and solver == "native")
    other = is_likelihood(loss) and not counts
    return PAPER["penalty"] if other and is_auto(penalty) else penalty


def share(n_rows: float) -> float:
    """Part of the featureless loss by which a feature must lower it; falls as n^-1/2, like the
    error with which a gain is known."""
    return GLOBAL_SHARE * min(1.0, (SHARE_ROWS / max(n_rows, 1.0)) ** 0.5)


def auto_strengths(settings: Any, loss: float, n_rows: float, n_features: int, unit: float) -> Any:
    """The ``ModelSettings`` with their strengths.

    ``loss`` is the featureless one, ``unit`` the weight of one of ``n_rows``.
    """
    local, global_ = settings.local_strength, settings.global_strength
    if is_auto(global_):
        sparse = is_likelihood(settings.loss) and settings.penalty is not None
        least = LUCK_PART * unit * luck(n_rows, n_features)
        counted = min(loss, EVEN * n_rows * unit)
        global_ = max(share(n_rows) * counted, least) if sparse else 0.0
    if is_auto(local):
        counts = isinstance(settings.penalty, str) and settings.penalty == "count"
        known = positive_number("global_strength", global_, zero=True)
        local = LOCAL_PART * known if counts else 0.0
    return replace(settings, local_strength=local, global_strength=global_)
