"""The regularised models of the paper by name: a penalty, and which strengths it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from softsplit.formulations.settings import make_penalties
from softsplit.problem.penalties import PenaltyPair

Scope = Literal["local", "global", "both"]


@dataclass(frozen=True)
class RegularisedModel:
    """A penalty on coefficients (local), on features (global) or on both."""

    penalty: str
    scope: Scope
    exponent: float = 0.5

    def penalties(
        self, local: float, global_: float, *, sharpness: float, offset: float
    ) -> PenaltyPair:
        return make_penalties(
            self.penalty,
            local,
            global_,
            sharpness=sharpness,
            exponent=self.exponent,
            offset=offset,
        )


# The paper reports appr1 with q = 1, at which it is the l1 norm plus a constant.
MODELS = {
    "L1": RegularisedModel("l1", "local"),
    "Linf": RegularisedModel("l1", "global"),
    "L0loc": RegularisedModel("l0", "local"),
    "L0glob": RegularisedModel("l0", "global"),
    "appr1": RegularisedModel("power", "local", exponent=1.0),
    "appr2": RegularisedModel("inverse_power", "local", exponent=1.0),
    "log": RegularisedModel("log", "local"),
    "L1+Linf": RegularisedModel("l1", "both"),
    "L0loc+L0glob": RegularisedModel("l0", "both"),
}
