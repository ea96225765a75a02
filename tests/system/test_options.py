"""Options are folders that can be deleted: the rest fits, predicts, saves, loads and reports."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import softsplit
from softsplit.support import options

PACKAGE = Path(softsplit.__file__).parent

USE = """
import json, sys, warnings

import softsplit

folders, losses, given, command = json.loads(sys.argv[1])
loaded = [name for name in sys.modules if name.startswith(tuple(f"softsplit.{f}" for f in folders))]
assert not loaded, loaded

from sklearn.datasets import load_iris
from softsplit import SoftTreeClassifier, load_model, save_model
from softsplit.support import options

warnings.simplefilter("ignore")
X, y = load_iris(return_X_y=True)
common = dict(depth=2, n_starts=1, max_iter=20, local_strength=0.01, global_strength=0.0)
for loss in losses:
    tree = SoftTreeClassifier(loss=loss, **common).fit(X, y)
    assert tree.score(X, y) > 0.6
    save_model(tree, f"{loss}.json")
    assert (load_model(f"{loss}.json").predict_proba(X) == tree.predict_proba(X)).all()
tree.report(X, y, "tree.html", time_limit=0.1)
assert "<svg" in open("tree.html", encoding="utf-8").read()
for kind in ("names", "solvers", "engines", "commands", "services"):
    for name in options.provided(kind):
        options.load(kind, name)
if given:
    try:
        SoftTreeClassifier(**{"loss": "cost", **common, **given}).fit(X, y)
    except (ValueError, ImportError) as error:
        print(error)
if command:
    from softsplit.cli import app

    app(command)
"""

UNKNOWN = "solver {!r} is unknown; choose one of 'native'"
NO_COMMAND = "there is no command {!r}; "
NOT_HERE = "{} needs an option that provides {!r}, and this copy of softsplit has none; "
ASKED = {
    "ipopt": ({"solver": "ipopt"}, None, UNKNOWN.format("ipopt")),
    "decomposition": ({"solver": "decomposition"}, None, UNKNOWN.format("decomposition")),
    "on_torch": ({"device": "cuda"}, None, NOT_HERE.format("device 'cuda'", "devices")),
    "on_dask": (None, ["fit", "a.csv", "-t", "y", "--dask"], NOT_HERE.format("--dask", "dask")),
    "plots": (None, None, ""),
    "capacity": (None, ["vc", "--depth", "2"], NO_COMMAND.format("vc")),
    "experiments": (None, ["experiment", "run"], NO_COMMAND.format("experiment")),
    "exports": (None, ["export", "a.json", "--to", "c"], NO_COMMAND.format("export")),
}
"""What is asked of a copy without an option: parameters, a command, and the sentence it gives."""

SOLVERS = ("ipopt", "decomposition")
"""Options that the expected cost could need."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package; machine code lies beside the sources and is copied too."""
    made = tmp_path_factory.mktemp("copy") / "softsplit"
    shutil.copytree(PACKAGE, made)
    return made


@contextmanager
def without(copy, deleted, aside):
    """The copy without some options and their lines in the registry."""
    registry = copy / "support" / "options.py"
    lines = registry.read_text()
    for name in deleted:
        shutil.move(copy / name, aside / name)
    registry.write_text(re.sub(f'    "({"|".join(deleted)})",\n', "", lines))
    try:
        yield
    finally:
        registry.write_text(lines)
        for name in deleted:
            shutil.move(aside / name, copy / name)


def run(copy, folder, code, *arguments):
    """A process that finds the copy and nothing of the sources."""
    others = [path for path in sys.path if path and Path(path) != PACKAGE.parent]
    environment = dict(os.environ) | {"PYTHONPATH": os.pathsep.join([str(copy.parent), *others])}
    environment.pop("NUMBA_CACHE_DIR", None)  # machine code is that of the copy
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip


@pytest.mark.parametrize(
    "deleted", [*(pytest.param(one, marks=pytest.mark.slow) for one in options.OPTIONS), "all"]
)
def test_the_rest_works_without_an_option(copy, tmp_path, deleted):
    folders = list(options.OPTIONS) if deleted == "all" else [deleted]
    (tmp_path / "aside").mkdir()
    (tmp_path / "a.csv").write_text("x,y\n0,a\n1,b\n")
    given, command, sentence = ASKED["on_dask" if deleted == "all" else deleted]
    losses = ("log", "cost") if deleted in ("all", *SOLVERS) else ("log",)
    with without(copy, folders, tmp_path / "aside"):
        done = run(copy, tmp_path, USE, json.dumps([options.OPTIONS, losses, given, command]))
    assert done.returncode == (2 if command else 0), done.stderr
    assert sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_line_without_its_folder_is_said(copy, tmp_path):
    shutil.move(copy / "capacity", tmp_path / "capacity")
    try:
        done = run(copy, tmp_path, "import softsplit; softsplit.plots")
    finally:
        shutil.move(tmp_path / "capacity", copy / "capacity")
    assert "ImportError: softsplit has no folder 'capacity' with a module option.py" in done.stderr


def test_an_option_of_ones_own(copy, tmp_path):
    """The folder and the line of docs/architecture.md."""
    own, registry = copy / "own_search", copy / "support" / "options.py"
    own.mkdir()
    (own / "__init__.py").write_text('"""An option of one\'s own."""\n')
    (own / "option.py").write_text(
        "from softsplit.support.options import Option\n\n"
        "OPTION = Option(\n"
        '    names={"own_search": "softsplit.own_search"},\n'
        '    solvers={"random": "softsplit.own_search.solver:make"},\n'
        '    commands={"draw": "softsplit.own_search.solver:draw"},\n'
        ")\n"
    )
    (own / "solver.py").write_text(
        "from softsplit.solvers import BasinHoppingSolver as make\n\n\n"
        'def draw() -> None:\n    """Draw."""\n    print("drawn")\n'
    )
    lines = registry.read_text()
    registry.write_text(lines.replace('    "ipopt",\n', '    "ipopt",\n    "own_search",\n'))
    use = (
        "import softsplit; from softsplit.solvers import make_solver\n"
        "print(softsplit.own_search.__name__, make_solver('random').name)\n"
        "from softsplit.cli import app; app(['draw'])"
    )
    try:
        done = run(copy, tmp_path, use)
    finally:
        registry.write_text(lines)
        shutil.rmtree(own)
    assert done.stdout == "softsplit.own_search native\ndrawn\n", done.stderr
