"""Every solver, engine and loss, for the suites of ``contracts/``.

One that joins a list here is put under all tests of its kind. Solvers join by themselves once they
have a name. Surrogates of penalties are in ``helpers.py``.
"""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from helpers import random_costs
from likelihood_cases import problem_of
from native_cases import make_problem
from own_loss import SquaredError
from softsplit.engines.compiled import CompiledRows, ThreadedRows
from softsplit.engines.sparse import SparseTable
from softsplit.problem.loss import ExpectedCost, LogLoss
from softsplit.problem.penalties import PenaltyPair, counting
from softsplit.solvers import EliminationSolver, make_solver
from softsplit.solvers.registry import SOLVERS as CORE_SOLVERS
from softsplit.support import options
from two_halves import TwoHalves


def needs(package, extra):
    return pytest.mark.skipif(find_spec(package) is None, reason=f"needs softsplit[{extra}]")


def _marks(name):
    return [needs("casadi", "ipopt")] if name.startswith("ipopt") else []


SOLVERS = [
    pytest.param(make_solver(name), id=name, marks=_marks(name))
    for name in (*CORE_SOLVERS, *options.provided("solvers"))
]
"""Those that estimators know by name; they train trees by expected cost."""

WHOLE_TREE_SOLVERS = [solver for solver in SOLVERS if solver.id != "decomposition"]
"""Those that move all of a tree at once, and so find the best tree of a small problem."""

LIKELIHOOD_SOLVERS = [pytest.param(EliminationSolver(), id="elimination")]
"""Those that train trees by likelihood only."""


def problem_by_cost():
    """Three classes that overlap, with a penalty on features and class rates."""
    return make_problem(depth=2, rows=60, global_=0.3)


def problem_by_likelihood():
    """The same classes by likelihood, with a price for each feature."""
    samples = make_problem(depth=2, rows=60).samples
    penalties = PenaltyPair.of(counting(), global_strength=0.02)
    return problem_of(samples.features.T, samples.labels, depth=2, penalties=penalties)


TRAINED = [
    *(pytest.param(*p.values, problem_by_cost, id=p.id, marks=p.marks) for p in SOLVERS),
    *(pytest.param(*p.values, problem_by_likelihood, id=p.id) for p in LIKELIHOOD_SOLVERS),
]
"""Each solver with a problem that it supports."""


def _on_device(samples):
    import torch

    from softsplit.on_torch.rows import DeviceRows

    return DeviceRows.of(samples, torch.device("cpu"))


def _of_sparse_table(samples):
    """The engine of a working set: the columns of ``samples``, with two more outside it."""
    block = SimpleNamespace(engine=CompiledRows(samples), scaling=None)
    X = scipy.sparse.csr_array(np.column_stack([samples.features.T, np.eye(samples.n_rows, 2)]))
    weights = samples.weights
    table = SparseTable(X, samples.labels, weights, weights, "identity", None, lambda _: block)
    return table.rows(np.arange(samples.n_features))


ENGINES = [
    pytest.param(CompiledRows, id="memory"),
    pytest.param(lambda samples: ThreadedRows(samples, 2), id="threads"),
    pytest.param(_of_sparse_table, id="sparse"),
    pytest.param(TwoHalves.of, id="two halves"),
    pytest.param(_on_device, id="torch", marks=needs("torch", "gpu")),
]
"""Functions that make an engine of samples."""

LOSSES = {
    "equal costs": lambda n: ExpectedCost.uniform(n),
    "unequal costs": lambda n: ExpectedCost(random_costs(np.random.default_rng(n), n)),
    "weighted costs": lambda n: ExpectedCost.uniform(n).weighted(np.arange(1.0, n + 1)),
    "log-loss": lambda n: LogLoss(),
    "squared error": lambda n: SquaredError(),
}
"""Losses by the number of classes."""
