"""The parameters of an estimator that define a training problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from softsplit.settings.table import ProblemParameters, SingleTreeParameters


@dataclass(kw_only=True)
class ModelSettings(SingleTreeParameters, ProblemParameters):
    """What is to be trained: the parameters of ``SoftTreeClassifier`` that define a problem.

    They are as the user gave them; ``prepare`` checks them.
    """

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """Those among the parameters of an estimator; defaults for others."""
        names = [field.name for field in fields(cls) if field.name in parameters]
        return cls(**{name: parameters[name] for name in names})

    def parameters(self) -> dict[str, Any]:
        """The settings by the names of the estimator's parameters."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def with_strengths(self, local: float, global_: float) -> ModelSettings:
        return replace(self, local_strength=local, global_strength=global_)

    def with_leaves(self, classes: NDArray[Any], present: NDArray[np.bool_]) -> ModelSettings:
        """Costs, rates and class weights of those classes that there are rows of."""
        kept = set(classes[present].tolist())
        changed: dict[str, Any] = {}
        if self.cost_matrix is not None:
            changed["cost_matrix"] = np.asarray(self.cost_matrix)[np.ix_(present, present)]
        for name in ("class_weight", "min_class_rate"):
            value = getattr(self, name)
            if isinstance(value, Mapping):
                changed[name] = {label: value[label] for label in value if label in kept}
            elif np.ndim(value) == 1:
                changed[name] = np.asarray(value)[present]
        return replace(self, **changed)
