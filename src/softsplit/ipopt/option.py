"""What this option provides: the paper's formulations, solved by IPOPT."""

from softsplit.support.options import Option

OPTION = Option(
    solvers={
        "ipopt": "softsplit.ipopt.solver:IpoptSolver",
        "ipopt-explicit": "softsplit.ipopt.solver:explicit_solver",
    },
    requires={"casadi": "ipopt"},
)
