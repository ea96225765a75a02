"""Draw the tree of the README: `make picture` writes docs/images/tree.svg."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_wine

from softsplit import SoftTreeClassifier

matplotlib.use("Agg")
from softsplit.plots import TreeDisplay


def draw() -> TreeDisplay:
    data = load_wine(as_frame=True)
    y = np.array(["cultivar A", "cultivar B", "cultivar C"])[data.target]
    tree = SoftTreeClassifier(global_strength=4.0, random_state=0).fit(data.data, y).simplify()
    return TreeDisplay.from_estimator(tree, data.data, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).with_name("tree.svg")
    parser.add_argument("output", nargs="?", type=Path, default=default)
    output = parser.parse_args().output
    # Outlines look the same without the font; the fixed salt makes the same tree the same file.
    matplotlib.rcParams.update(
        {"svg.fonttype": "path", "svg.hashsalt": "softsplit", "font.family": "DejaVu Sans"}
    )
    metadata = {"Date": None} if output.suffix == ".svg" else None
    draw().figure_.savefig(output, dpi=160, metadata=metadata)


if __name__ == "__main__":
    main()
