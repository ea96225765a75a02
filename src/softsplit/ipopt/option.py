"""What this option provides: the paper's formulations, solved by IPOPT."""

from softsplit.support.options import Option

OPTION = Option(
    solvers={"ipopt": "softsplit.ipopt.solver:IpoptSolver"},
    requires={"casadi": "ipopt"},
)
