"""The paper's formulations as nonlinear programs, solved by IPOPT: ``IpoptSolver``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsplit.support.options import late_names

if TYPE_CHECKING:
    from softsplit.ipopt.solver import IpoptSolver

__all__ = ["IpoptSolver"]

__getattr__, __dir__ = late_names(__name__, __all__, "solver")
