"""Whether everything that shows a tree gives the answer of ``predict``, on rows kept aside.

    python benchmarks/story.py [--trees 50] [--rows 200] [--document FILE]

Trees by default settings on the 24 data sets of the paper and the larger ones, each on half of the
rows (2,000 at most), under another seed once the sets are used up; asked are rows of the other
half. Compared with ``predict`` and ``predict_proba``:

- the printed text, read by a program that has nothing else (tests/printed_tree.py),
- the picture: its questions and the classes of its leaves are those of the text,
- the page: a browser fills in its form and reads the answer,
- ``explain``, a model file that was saved and loaded, and an ONNX graph.

A line says for how many rows the class is another, and the largest difference of a probability.
"""

from __future__ import annotations

import io
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pandas as pd
from common import arguments, put_into
from methods import table_of, warm_up
from walks import by_hand

from browser import chromium_path
from case_pages import unjudged_page
from selection import LARGER, paper_datasets
from softsplit import SoftTreeClassifier, dumps_model, export_onnx, export_text, loads_model
from softsplit.data.learning import LabelledRows
from softsplit.experiments.tables import markdown
from softsplit.plots import TreeDisplay
from softsplit.report import render_report

Answer = tuple[np.ndarray, np.ndarray]
"""Places of the classes, (n_rows,), and class probabilities, (n_rows, n_classes)."""

MOST_ROWS = 2000
"""Training rows of a tree at most: its size is what counts here."""

FILL_IN = """
(rows) => rows.map((row) => {
  row.forEach((value, i) => {
    const field = document.getElementById(`case-${i}`);
    if (field) { field.value = String(value); }
  });
  document.getElementById("case").dispatchEvent(new Event("input"));
  const found = [...document.querySelectorAll("#case-proba [data-class]")];
  const proba = found.map((one) => [Number(one.dataset.class), Number(one.dataset.value)]);
  return [document.getElementById("case-answer").innerText, proba];
})
"""


def trees(count: int, rows: int) -> Iterator[tuple[str, SoftTreeClassifier, np.ndarray]]:
    """Yield the name of a data set, a tree, and rows that it was not trained on."""
    names = [*paper_datasets(), *LARGER]
    for number in range(count):
        name, seed = names[number % len(names)], number // len(names)
        X, y = table_of(name)
        order = np.random.default_rng(seed).permutation(len(y))
        own, other = np.array_split(order, 2)
        tree = SoftTreeClassifier(n_starts=1, random_state=seed).fit(
            X[own[:MOST_ROWS]], y[own[:MOST_ROWS]]
        )
        yield name, tree, X[other[:rows]]


def of_graph(tree: SoftTreeClassifier, X: np.ndarray) -> Answer:
    session = onnxruntime.InferenceSession(export_onnx(tree).SerializeToString())
    label, proba = session.run(["label", "probabilities"], {"X": X})
    return np.searchsorted(tree.classes_, label), proba


def of_file(tree: SoftTreeClassifier, X: np.ndarray) -> Answer:
    loaded = loads_model(dumps_model(tree))
    return np.searchsorted(tree.classes_, loaded.predict(X)), loaded.predict_proba(X)


def of_explanations(tree: SoftTreeClassifier, X: np.ndarray) -> Answer:
    told = [tree.explain(row) for row in X]
    proba = np.array([list(one.probabilities.values()) for one in told])
    return np.searchsorted(tree.classes_, [one.label for one in told]), proba


@contextmanager
def browsing() -> Iterator[Callable[[SoftTreeClassifier, np.ndarray], Answer]]:
    """Open a browser; yields what fills in the form of a tree's page for each row."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])

        def of_page(tree: SoftTreeClassifier, X: np.ndarray) -> Answer:
            y = np.resize(tree.classes_, len(X))
            names = [str(label) for label in tree.classes_]
            rows = LabelledRows(tree.tree_.table_coding.code(X), y, "y")
            path = Path(folder) / "page.html"
            path.write_text(render_report(unjudged_page(tree, rows)), encoding="utf-8")
            page = browser.new_page()
            page.goto(path.as_uri())
            page.wait_for_selector("html.ready")
            used = sorted({int(j) for j in tree.selected_features_})
            said = page.evaluate(FILL_IN, X[:, used].tolist())
            page.close()
            classes = [re.fullmatch(r"The tree says (.*)\.", text)[1] for text, _ in said]  # type: ignore[index]
            shown = np.full((len(X), len(names)), np.nan)  # of many classes the first few are
            for row, (_, proba) in zip(shown, said, strict=True):
                row[[int(k) for k, _ in proba]] = [p for _, p in proba]
            return np.array([names.index(one) for one in classes]), shown

        yield of_page
        browser.close()


def picture_is_text(tree: SoftTreeClassifier, X: np.ndarray) -> bool:
    """Whether the questions of the picture, in order, are those of the text, with its classes."""
    text = export_text(tree)
    asked = re.findall(r"if (.*?)   \[question", text)
    file = io.StringIO()
    display = TreeDisplay.from_estimator(tree, X, tree.predict(X))
    plt.rcParams["svg.fonttype"] = "none"
    display.figure_.savefig(file, format="svg")
    plt.close(display.figure_)
    drawn = " ".join(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", file.getvalue())).split())
    drawn = drawn.replace("&gt;", ">").replace("&lt;", "<").replace("\N{MINUS SIGN}", "-")
    return all(" ".join(one.split()) in drawn for one in asked)


def main() -> None:
    args = arguments(__doc__, trees=50, rows=200, document=(Path, "file to put the table into"))
    warnings.simplefilter("ignore")
    warm_up()
    found: list[dict[str, Any]] = []
    pictures = 0
    with browsing() as of_page:
        outlets = {
            "printed text": by_hand,
            "page in a browser": of_page,
            "explanation": of_explanations,
            "model file": of_file,
            "ONNX": of_graph,
        }
        for number, (name, tree, X) in enumerate(trees(args.trees, args.rows)):
            classes, proba = np.searchsorted(tree.classes_, tree.predict(X)), tree.predict_proba(X)
            pictures += picture_is_text(tree, X)
            for outlet, read in outlets.items():
                said, shown = read(tree, X)
                found.append({
                    "where": outlet, "data set": name, "rows": len(X),
                    "another class": int(np.sum(said != classes)),
                    "largest difference": float(np.nanmax(np.abs(shown - proba))),
                })  # fmt: skip
            print(number, name, [one["another class"] for one in found[-5:]], pictures, flush=True)
    table = pd.DataFrame(found).groupby("where", sort=False)
    summary = table.agg({
        "rows": "sum", "another class": "sum", "largest difference": "max",
    }).reset_index()  # fmt: skip
    summary["largest difference"] = [f"{v:.1g}" for v in summary["largest difference"]]
    last = f"Pictures whose questions are those of the text: {pictures} of {args.trees}."
    put_into(args.document, f"{markdown(summary)}\n\n{last}\n")


if __name__ == "__main__":
    main()
