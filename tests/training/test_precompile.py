"""What is compiled before a fit, in which process; machine code is ready before a limit counts."""

from __future__ import annotations

import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from softsplit import SoftTreeClassifier
from softsplit.estimators.base import training_run
from softsplit.support import processes
from softsplit.training import precompile
from softsplit.training import run as running
from softsplit.training.precompile import compile_sets


class Recorder:
    """Stands for the compiler, and for the other process."""

    def __init__(self, monkeypatch, folder):
        self.calls = []
        self.sets = {"log": (self.call("a"), self.call("b")), "more": (self.call("c"),)}
        monkeypatch.setattr(precompile, "place_on_disk", lambda _: (folder, "now"))
        monkeypatch.setattr(precompile, "SETS", self.sets)
        monkeypatch.setattr(precompile, "compile_sets", compile_sets.__wrapped__)
        monkeypatch.setattr(subprocess, "Popen", self.start)
        monkeypatch.setattr(processes, "parent_process", lambda: None)
        monkeypatch.setattr(processes, "n_cores", lambda: 2)

    def call(self, name):
        return lambda: self.calls.append(name)

    def start(self, command, **options):
        self.calls.append(re.search(r"compile_here\(\[(.*)\], -1\)", command[-1])[1])
        return SimpleNamespace(
            wait=lambda: self.calls.append("waited"), kill=lambda: self.calls.append("killed")
        )

    def run(self, *more):
        precompile.compile_sets("log", *more)
        return self.calls


@pytest.fixture
def recorder(monkeypatch, tmp_path):
    return Recorder(monkeypatch, tmp_path)


ENDED = ["killed", "waited"]


def test_two_processes_compile_from_both_ends_what_is_not_compiled(recorder, caplog):
    assert recorder.run() == ["'log'", "a", "b", *ENDED]
    said = "softsplit: compiling numerical code for its first use here, once: about 15 seconds."
    assert caplog.messages == [said]
    recorder.calls.clear()
    assert recorder.run() == [] and len(caplog.messages) == 1
    assert recorder.run("more") == ["'more'", "c", *ENDED]
    recorder.calls.clear()
    precompile.compile_here(["log", "more"], -1)
    assert recorder.calls == ["c", "b", "a"]


def test_an_interruption_leaves_no_process_behind(recorder):
    def interrupt():
        raise KeyboardInterrupt

    recorder.sets["log"] = (interrupt,)
    with pytest.raises(KeyboardInterrupt):
        recorder.run()
    assert recorder.calls == ["'log'", *ENDED]


def test_the_other_process_does_not_look_into_the_working_directory(tmp_path, monkeypatch):
    """A folder of data may hold a file that is named as a library."""
    (tmp_path / "numba.py").write_text("open('run', 'w').close()")
    (tmp_path / "softsplit.py").write_text("open('run', 'w').close()")
    monkeypatch.chdir(tmp_path)
    other = processes.start_python("import softsplit.engines.samples")
    assert other is not None and other.wait(120) == 0
    assert not (tmp_path / "run").exists()


# Whatever is called has been called ahead: no function gets a new signature.
SIGNATURES = """
import sys
import warnings
import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, strength_path
from softsplit.support.compiling import Compiled
from softsplit.training.precompile import SETS

def signatures():
    modules = [m for name, m in sys.modules.items() if name.startswith("softsplit")]
    found = [f for m in modules for f in vars(m).values() if isinstance(f, Compiled)]
    return {
        (f.__name__, str(s)) for f in found if "dispatcher" in vars(f)
        for s in f.dispatcher.signatures
    }

"""


def assert_nothing_is_compiled(sets: str, use: str) -> None:
    """After the sets that some code calls, and by other code, in a process of its own."""
    new = 'print(*sorted(signatures() - ready), sep="\\n")'
    code = [SIGNATURES, sets, "ready = signatures()", use, "assert len(ready) > 1", new]
    command = [sys.executable, "-c", "\n".join(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


ALL_SETS = """
for calls in SETS.values():
    for call in calls:
        call()
assert len(signatures()) > 20
"""
ANY_USE = """
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
few = {"n_starts": 2, "random_state": 0}
for y in ((X[:, 0] > 0).astype(int), (X[:, 0] > 0) + (X[:, 1] > 0)):
    for loss, penalties in (("log", ["count", "l0", "log"]), ("cost", ["l0", "l1", "power"])):
        choice = {"loss": loss, "cv": 2, "n_strengths": 2, "random_state": 0}
        SoftTreeClassifierCV(**choice, penalties=penalties).fit(X, y)
        for scale, depth in (("minmax", 3), ("quantile", 2)):
            tree = SoftTreeClassifier(depth=depth, scale=scale, loss=loss, **few)
            tree.fit(X, y)
            tree.set_params(local_strength=0.1).fit(X, y, sample_weight=rng.uniform(size=80))
        tree.set_params(time_limit=60.0).fit(X, y)
    tree.set_params(solver="decomposition").fit(X, y)
for loss in ("log", "cost"):
    rates = {"loss": loss, "min_class_rate": 0.9, "n_starts": 3, "random_state": 0}
    SoftTreeClassifier(**rates).fit(*load_iris(return_X_y=True))
fixed = X.copy()
fixed.flags.writeable = False
for kind in (
    X.astype(np.float32), np.asfortranarray(X), X[::-1], (9 * X).astype(np.int8), fixed,
    pd.DataFrame(X), pd.DataFrame(X.astype(np.float32)), pd.DataFrame({"a": list("abcd") * 20}),
):
    for loss in ("log", "cost"):
        SoftTreeClassifier(depth=1, loss=loss, **few).fit(kind, y).predict(kind)
strength_path(X, y, estimator=SoftTreeClassifier(depth=1, **few), n_points=2)
many = rng.normal(size=(21_000, 3))
y = (many[:, 0] > 0).astype(int)
tree = SoftTreeClassifier(depth=1, **few).fit(many, y)
for kind in (many, many.astype(np.float32), np.asfortranarray(many)):
    kind = np.repeat(kind, 10, axis=0)
    tree.predict_proba(kind), tree.decision_function(kind), tree.apply(kind)
    kind.flags.writeable = False
    tree.predict(kind)
SoftTreeClassifier(depth=1, **few).fit(many.astype(np.float32), y)
SoftTreeClassifier(depth=1, **few, global_strength=1.0, penalty="l1").fit(many, y)
tree.set_params(loss="cost", max_iter=3).fit(many.astype(np.float32), y)
"""


@pytest.mark.slow
def test_nothing_is_left_to_compile():
    assert_nothing_is_compiled(ALL_SETS, ANY_USE)


SET_OF_FIT = """
from softsplit.training.precompile import SETS
for call in SETS["{}"]:
    call()
"""
FIRST_FIT = """
X, y = load_iris(return_X_y=True)
SoftTreeClassifier(random_state=0).fit(X, y)
"""


FIRST_FIT_OF_NUMBERS = """
from softsplit import SoftTreeRegressor
SoftTreeRegressor(random_state=0).fit(np.arange(40.0)[:, None] % 7, np.arange(40.0))
"""


@pytest.mark.parametrize(("name", "use"), [("log", FIRST_FIT), ("numbers", FIRST_FIT_OF_NUMBERS)])
def test_a_default_fit_needs_its_set_and_nothing_else(name, use):
    assert_nothing_is_compiled(SET_OF_FIT.format(name), use)


def test_the_clock_does_not_count_compiling(clock, monkeypatch):
    tree = SoftTreeClassifier(time_limit=5.0)
    run = training_run(tree)
    monkeypatch.setattr(running, "make_ready", lambda *_, **__: clock.advance(7.0))
    ready = run.ready()
    assert ready.budget.began == run.budget.began + 7.0
    assert ready.budget.cancel is run.budget.cancel and ready.budget.time_limit == 5.0


X, Y = np.linspace(0, 1, 40)[:, None], np.arange(40) % 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_starts": 0},
        {"random_state": "q"},
        {"min_class_rate": 2},
        {"steepness": -1, "loss": "cost"},
        {"X": np.full((40, 1), np.nan)},
    ],
    ids=str,
)
def test_bad_input_does_not_wait_for_the_compiler(wrong, monkeypatch):
    def fail(*_, **__):
        raise AssertionError("the compiler was asked first")

    monkeypatch.setattr(running, "make_ready", fail)
    rows = wrong.get("X", X)
    settings = {name: value for name, value in wrong.items() if name != "X"}
    with pytest.raises((ValueError, TypeError)):
        SoftTreeClassifier(**settings).fit(rows, Y)
