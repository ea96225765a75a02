"""Formulations of the training problem: all that differs between the losses, one object each."""

from __future__ import annotations

from typing import Any

from softsplit.formulations.base import ChoiceRules, Formulation
from softsplit.formulations.expected_cost import ExpectedCostFormulation, OwnLossFormulation
from softsplit.formulations.likelihood import LikelihoodFormulation
from softsplit.settings.checks import is_auto

# Formulations by the values of the parameter ``loss``.
FORMULATIONS: dict[str, Formulation] = {
    "log": LikelihoodFormulation(),
    "cost": ExpectedCostFormulation(),
}

__all__ = ["FORMULATIONS", "ChoiceRules", "Formulation", "formulation_of", "is_auto"]


def formulation_of(loss: Any) -> Formulation:
    """Return the formulation for the parameter ``loss`` of an estimator: a name or an object."""
    if isinstance(loss, str) and loss in FORMULATIONS:
        return FORMULATIONS[loss]
    return OwnLossFormulation()
