"""The table of other methods in docs/when.md, from the reference table of peers and our accuracies.

    python benchmarks/peers_table.py [--document docs/when.md]

peers.csv is read from the folder that --reference or SOFTSPLIT_REFERENCE names, our row from
docs/results/accuracy.csv (model L0glob, kept trees). Data sets are those that both have.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from reference import reference_folder

ROOT = Path(__file__).resolve().parents[1]
METHODS = {
    "LR-L1-CV": "L1 logistic regression, strength by cross-validation",
    "CART-D": "CART-D",
    "STreeD-D": "STreeD-D, optimal on deciles",
    "ConTree-D": "ConTree-D, optimal",
    "CART-full": "CART of any depth",
    "FIGS-12": "FIGS, twelve splits",
    "HistGB": "gradient boosting (scikit-learn)",
    "RandomForest": "random forest, 200 trees",
}
BEGIN, END = "<!-- begin peers -->", "<!-- end peers -->"


def table(peers: pd.DataFrame, ours: pd.DataFrame) -> str:
    """One line per method: means over the data sets that both tables have."""
    ours = ours[ours.model == "L0glob"].set_index("dataset")
    peers = peers[peers.dataset.isin(ours.index)]
    lines = ["| method | accuracy | features | nonzeros |", "|---|---:|---:|---:|"]
    for method, words in METHODS.items():
        rows = peers[peers.method == method]
        if len(rows) != len(ours):
            raise SystemExit(f"{method} has {len(rows)} data sets of {len(ours)}.")
        values = (100 * rows.accuracy_mean.mean(), rows.features_used.mean(), rows.nonzeros.mean())
        lines.append("| {} | {:.1f} | {:.1f} | {:,.1f} |".format(words, *values))
    used = ours.p * (1 - ours.kept_global_sparsity / 100)
    branches = 2**ours.depth - 1
    nonzeros = ours.p * branches * (1 - ours.kept_local_sparsity / 100)
    accuracy = 100 * ours.kept_accuracy.mean()
    name = "*soft tree, L0glob, the paper's strengths, other folds*"
    lines.append(f"| {name} | {accuracy:.1f} | {used.mean():.1f} | {nonzeros.mean():,.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reference", help="folder of the reference tables")
    parser.add_argument("--document", type=Path, help="page whose table is replaced")
    arguments = parser.parse_args()
    peers = pd.read_csv(reference_folder(arguments.reference) / "peers.csv")
    text = table(peers, pd.read_csv(ROOT / "docs" / "results" / "accuracy.csv"))
    print(text)
    if arguments.document is not None:
        content = arguments.document.read_text(encoding="utf-8")
        before, _, rest = content.partition(BEGIN)
        _, found, after = rest.partition(END)
        if not found:
            raise SystemExit(f"{arguments.document} has no lines {BEGIN} and {END}.")
        content = f"{before}{BEGIN}\n{text}\n{END}{after}"
        arguments.document.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
