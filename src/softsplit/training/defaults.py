"""What the word "auto" stands for: it depends on the loss.

                   loss="cost", the paper's model     loss="log"
scale              "minmax"                           "standard"
steepness          512                                absorbed by the weights (UNITS)
penalty            "l0"                               "count", or "l0" for other solvers
min_class_rate     0.1                                0
depth              the least with a leaf per class    one more, for up to four levels
global_strength    GLOBAL_SHARE of the loss of a tree that uses no feature
local_strength     0                                  half of the global one under "count"
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from softsplit.support.messages import shown
from softsplit.tree.parameters import Topology
from softsplit.tree.scaling import DEVIATIONS

if TYPE_CHECKING:
    from softsplit.training.preparation import ModelSettings

PAPER = {"scale": "minmax", "steepness": 512.0, "penalty": "l0", "min_class_rate": 0.1}
LIKELIHOOD = {"scale": "standard", "steepness": "auto", "penalty": "count", "min_class_rate": 0.0}

UNITS = {"standard": DEVIATIONS, "quantile": 12.0**0.5, "minmax": 12.0**0.5, "identity": 1.0}
"""Log-odds of a split per scaled unit at weight 1. A weight is then a change of the log-odds per
standard deviation of a feature (under "quantile" and "minmax", of evenly spread values)."""

GLOBAL_SHARE = {"log": 0.01, "cost": 0.02}
"""A feature must lower the loss of a tree without features by about this part of it."""

LOCAL_PART = 0.5
"""Strength of a coefficient under "count", as a part of that of a feature."""

DEEPER_UP_TO = 4


def is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def resolved(settings: ModelSettings, n_classes: int) -> ModelSettings:
    """The settings with every "auto" replaced, strengths apart: those need a problem."""
    likelihood = isinstance(settings.loss, str) and settings.loss == "log"
    table = LIKELIHOOD if likelihood else PAPER
    if likelihood and not is_auto(settings.steepness):
        raise ValueError(
            f"steepness {shown(settings.steepness)} is part of loss='cost': under loss='log' the "
            "weights make a split as steep as the rows do; leave it at 'auto'."
        )
    found = {name: v for name, v in table.items() if is_auto(getattr(settings, name))}
    if likelihood and is_auto(settings.depth):
        smallest = Topology.for_classes(n_classes).depth
        found["depth"] = max(smallest, min(smallest + 1, DEEPER_UP_TO))
    return replace(settings, **found)


def auto_strengths(settings: ModelSettings, unit: float) -> ModelSettings:
    """The settings with strengths that are "auto" replaced; ``unit`` is the featureless loss."""
    local, global_ = settings.local_strength, settings.global_strength
    share = GLOBAL_SHARE["log" if settings.loss == "log" else "cost"]
    if is_auto(global_):
        global_ = share * unit if settings.penalty is not None else 0.0
    if is_auto(local):
        local = 0.0
        if settings.penalty == "count" and not isinstance(global_, str):
            local = LOCAL_PART * global_
    return replace(settings, local_strength=local, global_strength=global_)
