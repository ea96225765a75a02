"""Draw time against rows from the figures of benchmarks/scale.py: ``python make_scaling.py``."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
NAMES = {
    "tree": "soft tree, depth 3",
    "boosting": "histogram boosting",
    "logistic": "logistic regression",
    "cart": "CART",
}
PLACES = {"cluster": "soft tree, two Dask workers", "gpu": "soft tree, one H200"}


def main() -> None:
    known = json.loads((HERE.parent / "results" / "scale.json").read_text())
    figures = known["exponent"]
    fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for method, name in NAMES.items():
        points = [(one["rows"], one["seconds"]) for one in figures if one["method"] == method]
        ax.plot(*zip(*points, strict=True), "o-", label=name)
    for place, name in PLACES.items():
        points = [(one["rows"], one["seconds"]) for one in known[place]]
        ax.plot(*zip(*points, strict=True), "s--", label=name)
    ax.set(xscale="log", yscale="log", xlabel="rows (30 features, 4 classes)")
    ax.set_ylabel("seconds on two cores, or as said")
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    fig.savefig(HERE / "scaling.png", dpi=150)


if __name__ == "__main__":
    main()
