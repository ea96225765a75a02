"""To use a tree takes neither numba nor scikit-learn: with both hidden all answers are the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from places import FILES
from softsplit import SoftTreeClassifier, export_sql, export_text, load_model, save_model

HIDDEN = ("numba", "llvmlite", "sklearn", "joblib", "threadpoolctl", "scipy")

HIDE = f"""
import sys
for name in {HIDDEN}:
    sys.modules[name] = None  # an import of it fails, as if it were not installed
"""

USE = """
import io, json, contextlib
import numpy as np, pandas as pd
import softsplit
from softsplit import load_tree, export_text
from softsplit import export_sql, export_python, export_javascript, export_c, export_excel
from softsplit.cli import app

frame = pd.read_csv("rows.csv")
tree = load_tree("tree.json")
answers = tree.predict_proba(frame)
np.save("answers.npy", answers)
try:
    softsplit.load_model("tree.json")
except ImportError as error:
    refused = str(error)
try:
    app(["fit", "rows.csv", "--target", "level"], standalone_mode=False)
except ImportError:
    pass
said = {}
for words in (
    ["info", "tree.json"],
    ["predict", "tree.json", "few.csv", "--proba"],
    ["explain", "tree.json", "few.csv", "--row", "2"],
    ["export", "tree.json", "--to", "sql", "--table", "rows"],
    ["export", "tree.json", "--to", "c"],
):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            app(words, standalone_mode=False)
        except SystemExit as end:
            assert end.code in (None, 0, 1), words
    said[words[0]] = out.getvalue()
few = pd.read_csv("few.csv")
assert str(tree.explain(few.iloc[[1]])) == str(tree.explain(few.iloc[1]))
export_excel(tree, "tree.xlsx")
print(json.dumps({
    "classes": [str(c) for c in tree.predict(frame)], "text": export_text(tree),
    "sql": export_sql(tree, "rows"), "refused": refused, "said": said,
    "code": [len(f(tree)) for f in (export_python, export_javascript, export_c)],
    "onnx": len(softsplit.export_onnx(tree).graph.node),
    "loaded": sorted(set(sys.modules) & {"softsplit.solvers", "softsplit.training"}),
}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of numbers, levels and missing values, and more rows than numpy is meant for."""
    made = tmp_path_factory.mktemp("use")
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 60_000))
    level = np.array(["low", "high", "other"])[rng.integers(3, size=len(x))]
    rows = pd.DataFrame(
        {"x": np.where(rng.random(len(x)) < 0.1, np.nan, x), "level": level, "z": z}
    )
    y = np.where(np.nan_to_num(x) + (level == "high") + 0.1 * z > 0.5, "yes", "no")
    tree = SoftTreeClassifier(n_starts=1, depth=2, random_state=0).fit(rows[:300], y[:300])
    save_model(tree, made / "tree.json")
    rows.to_csv(made / "rows.csv", index=False)
    rows[:5].to_csv(made / "few.csv", index=False)
    return made


def test_trees_are_used_without_what_trains_them(folder: Path) -> None:
    command = [sys.executable, "-c", HIDE + USE]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    tree, rows = load_model(folder / "tree.json"), pd.read_csv(folder / "rows.csv")
    assert np.array_equal(np.load(folder / "answers.npy"), tree.predict_proba(rows))
    assert found["classes"] == tree.predict(rows).tolist()
    assert found["text"] == export_text(tree)
    assert found["sql"] == export_sql(tree, "rows")
    assert (
        "scikit-learn is not installed; install it, or use softsplit.load_tree" in found["refused"]
    )
    assert found["loaded"] == []
    assert all(found["said"].values()) and min(found["code"]) > 500 and found["onnx"] > 10


def test_every_stored_tree_is_read_without_what_trains_it() -> None:
    """Also one whose parameters are requirements on rates."""
    read = """
from pathlib import Path
from softsplit import load_tree
for path in sorted(Path(sys.argv[1]).glob("model-v1-*.json")):
    print(load_tree(path).classes_)
"""
    command = [sys.executable, "-c", HIDE + read, str(FILES)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(list(FILES.glob("model-v1-*.json"))) > 10


@pytest.mark.parametrize(
    "words", [["fit", "few.csv", "-t", "level"], ["path", "few.csv", "-t", "level"]]
)
def test_the_command_names_the_package_that_is_missing(folder: Path, words: list[str]) -> None:
    code = f"""
import sys
sys.modules["sklearn"] = None
sys.argv[1:] = {words!r}
from softsplit.__main__ import main
main()
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8")
    assert done.returncode == 2
    assert f"softsplit: softsplit {words[0]} needs scikit-learn, which is not" in done.stderr
    assert "Traceback" not in done.stderr
