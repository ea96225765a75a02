"""What a fit takes in memory is told before it begins, and refused where it cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from softsplit import Parity, SoftTreeClassifier, SoftTreeClassifierCV, estimate_memory
from softsplit.estimators import memory


def beyond(X, estimator=None):
    """Copies of the input, without what does not grow with it."""
    return (estimate_memory(X, estimator) - memory.SCRATCH) / (8 * X.shape[0] * X.shape[1])


def test_hinges_and_folds_count():
    X = np.broadcast_to(0.0, (50_000, 30))
    straight = SoftTreeClassifier(curves=False)
    assert beyond(X, straight) == pytest.approx(2.8)  # training order, and copies of a sample
    assert beyond(X, SoftTreeClassifier(curves=3)) == pytest.approx(1 + 4 * 1.8)  # no hinges
    rates = SoftTreeClassifier(curves=3, fairness=Parity("sex", 0.1))
    assert beyond(X, rates) == pytest.approx(4 * (2 + 1.8))  # held all the same
    few = SoftTreeClassifier(curves=3)
    assert beyond(X[:20_000], few) == pytest.approx(4 * (2 + 3.2))  # held with their hinges
    assert beyond(X[:4000], SoftTreeClassifierCV(curves=False)) == pytest.approx(9.0)


def test_large_tables_keep_few_folds():
    assert beyond(np.broadcast_to(0.0, (3000, 600))) == pytest.approx(3.2)
    assert beyond(np.broadcast_to(0.0, (2000, 600))) == pytest.approx(9.0)
    assert beyond(np.broadcast_to(0.0, (5000, 400))) == pytest.approx(6.0)  # side by side


@pytest.mark.parametrize("other", [np.zeros(1000), "nonsense", SoftTreeClassifier], ids=repr)
def test_what_is_no_estimator_is_refused(other):
    said = "^estimator must be a SoftTreeClassifier or SoftTreeClassifierCV, got "
    with pytest.raises(TypeError, match=said):
        estimate_memory(np.zeros((1000, 20)), other)
    with pytest.raises(ValueError, match="X has 1 dimensions; a table has rows and columns"):
        estimate_memory([1.0, 2.0])


PEAK = """
import warnings
from pathlib import Path
import numpy as np
from sklearn.datasets import make_classification
from softsplit import SoftTreeClassifierCV, estimate_memory

warnings.simplefilter("ignore")


def resident(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


SoftTreeClassifierCV(random_state=0).fit(*make_classification(300, 20, random_state=0))
rng = np.random.default_rng(0)
X = rng.standard_normal((500, 4000))
y = X[:, 0] + X[:, 1] + rng.standard_normal(len(X)) > 0
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = resident("VmRSS")
SoftTreeClassifierCV(random_state=0, n_jobs=1).fit(X, y)
print(X.nbytes, resident("VmHWM") - before, estimate_memory(X))
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="no peaks are known")
def test_a_choice_on_a_wide_table_takes_what_was_told_and_at_most_four_copies():
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    size, peak, told = map(int, done.stdout.split())
    assert peak < 4 * size
    assert 0.5 * told < peak < told


def test_texts_are_several_columns():
    numbers = pd.DataFrame({"a": np.arange(100.0), "b": np.arange(100.0)})
    assert estimate_memory(numbers.astype(str)) > estimate_memory(numbers)


def test_a_wide_table_has_straight_effects():
    assert beyond(np.broadcast_to(0.0, (1000, 5000))) < beyond(np.broadcast_to(0.0, (1000, 50)))


@pytest.mark.parametrize("estimator", [SoftTreeClassifier(), SoftTreeClassifierCV()])
def test_what_cannot_fit_is_refused_before_training(estimator, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 4)))
    with pytest.raises(ValueError, match=r"X has 60 rows and 4 columns, whose fit takes about"):
        estimator.fit(X, [0, 1] * 30)
    assert not hasattr(estimator, "tree_")
