"""Machine code is ready before a time limit counts."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, classifier
from softsplit.solvers import IpoptSolver

# Whatever a fit calls has been called before: no function gets a new signature.
NOTHING_IS_LEFT = """
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV
from softsplit.first_use import warm_up

def signatures():
    modules = [m for name, m in sys.modules.items() if name.startswith("softsplit")]
    found = [d for m in modules for d in vars(m).values() if isinstance(d, Dispatcher)]
    return {(d.__name__, str(s)) for d in found for s in d.signatures}

warm_up()
ready = signatures()
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
for y in ((X[:, 0] > 0).astype(int), (X[:, 0] > 0) + (X[:, 1] > 0)):
    SoftTreeClassifierCV(cv=2, n_strengths=2, penalties=["l0", "l1"], random_state=0).fit(X, y)
    for scale, depth in (("minmax", 3), ("quantile", 2)):
        tree = SoftTreeClassifier(depth, scale=scale, n_starts=3, random_state=0)
        tree.set_params(local_strength=0.1).fit(X, y)
assert len(ready) > 3
print(sorted(signatures() - ready))
"""


def test_nothing_is_left_to_compile():
    command = [sys.executable, "-c", NOTHING_IS_LEFT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.fixture
def order(monkeypatch):
    """Who came first: the compiler or the clock."""
    calls: list[str] = []
    budget = classifier.Budget
    monkeypatch.setattr(classifier, "warm_up", lambda: calls.append("compiler"))

    def clock(*arguments, **named):
        calls.append("clock")
        return budget(*arguments, **named)

    monkeypatch.setattr(classifier, "Budget", clock)
    return calls


@pytest.mark.parametrize("kind", [SoftTreeClassifier, SoftTreeClassifierCV])
def test_the_clock_starts_after_the_compiler(order, kind):
    run = kind(time_limit=5.0, random_state=0)
    X = np.linspace(0, 1, 40)[:, None]
    run.fit(X, (X[:, 0] > 0.5).astype(int))
    assert order.index("compiler") < len(order) - 1 - order[::-1].index("clock")
    assert order.count("compiler") == 1


@pytest.mark.parametrize("settings", [{}, {"time_limit": 5.0, "solver": IpoptSolver()}])
def test_without_a_clock_or_machine_code_nothing_is_done_ahead(order, settings):
    SoftTreeClassifier(**settings)._run_settings()
    assert "compiler" not in order
