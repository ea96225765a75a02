"""The paper's formulations as nonlinear programs, solved by IPOPT."""

from softsplit.ipopt.solver import IpoptSolver

__all__ = ["IpoptSolver"]
