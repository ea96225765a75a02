"""Tables and figures of benchmarks/decomposition.py, and the page that is made of them.

A page has a place for each part between the lines "<!-- begin PART -->" and "<!-- end PART -->".
What is printed is what is written there.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from decomposition_runs import Book, Traces

from softsplit.decomposition import DecompositionTrace

ALONE = "no decomposition"

EQUAL = 0.002
"""Test accuracies that differ by no more than this are called equal."""

MIDDLES = {"ipopt": np.mean, "explicit": np.mean}
"""How the runs of a part are brought to one figure, if not by their median."""

HEADER = (
    "| variant | runs | m | accuracy | objective | CPU s | saved | "
    "first m at equal accuracy | accuracy | objective | saved |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)


def report_parts(book: Book, steps: Path) -> dict[str, str]:
    """The text of every part that has been run."""
    parts = dict.fromkeys(job.part for job in book.runs)
    texts = {part: part_text(book, part) for part in parts}
    if steps.exists():
        texts["step"] = step_table(json.loads(steps.read_text()))
    return texts


def part_text(book: Book, part: str) -> str:
    middle = MIDDLES.get(part, np.median)
    intro = (
        f"{'Means' if middle is np.mean else 'Medians'} over the runs, which are folds x starts. "
        f"Equal accuracy: within {100 * EQUAL:g} points of the same runs without decomposition. "
        "Saved: CPU time against the same runs without decomposition. m: macro-iterations."
    )
    tables = [table(book, part, name, depth) for name, depth in book.tables(part)]
    return "\n\n".join([intro, *tables])


def table(book: Book, part: str, name: str, depth: int | None) -> str:
    """One row per variant, each against the runs without decomposition on the same starts."""
    base = book.traces(part, name, ALONE, depth)
    title = f"**{part}, {name}" + (f", depth {depth}" if depth else "") + "**"
    rows = [
        variant_row(variant, book.traces(part, name, variant, depth), base, part)
        for variant in book.variants(part, name, depth)
    ]
    return "\n".join([title, "", HEADER, *rows])


def variant_row(variant: str, traces: Traces, base: Traces, part: str) -> str:
    shared = [key for key in traces if key in base]
    own = [traces[key] for key in shared or traces]
    alone = [base[key] for key in shared]
    last = max(len(trace) for trace in own) - 1
    cells = [variant, str(len(own)), str(last), *figures(own, last, part)]
    cells += [f"{at(own, 'cpu_seconds', last, part):.2f}"]
    if variant == ALONE or not alone:
        return "| " + " | ".join([*cells, *["-"] * 5]) + " |"
    cells.append(saved(own, alone, last, part))
    level = at(alone, "test_accuracy", 0, part)
    equal = [m for m in range(last + 1) if at(own, "test_accuracy", m, part) >= level - EQUAL]
    if equal:
        first = equal[0]
        cells += [str(first), *figures(own, first, part), saved(own, alone, first, part)]
    else:
        cells += ["-"] * 4
    return "| " + " | ".join(cells) + " |"


def at(traces: list[DecompositionTrace], field: str, m: int, part: str) -> float:
    """The middle of a figure after macro-iteration m; a run that has ended stays as it is."""
    values = [getattr(trace[min(m, len(trace) - 1)], field) for trace in traces]
    return float(MIDDLES.get(part, np.median)(values))


def figures(traces: list[DecompositionTrace], m: int, part: str) -> list[str]:
    accuracy, objective = at(traces, "test_accuracy", m, part), at(traces, "objective", m, part)
    return [f"{100 * accuracy:.1f} %", f"{objective:.2f}"]


def saved(own: list[DecompositionTrace], alone: list[DecompositionTrace], m: int, part: str) -> str:
    ratio = at(own, "cpu_seconds", m, part) / at(alone, "cpu_seconds", 0, part)
    return f"{100 * (1 - ratio):.0f} %"


def step_table(rows: list[dict[str, float]]) -> str:
    """Milliseconds of one evaluation and of one step, as measured by the part "step"."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in rows:
        cells = [
            f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(book: Book, part: str, name: str, depth: int | None, folder: Path) -> None:
    """The paper's figure for each variant, as one picture; means over the runs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from softsplit.plots import decomposition_trace

    shown = [variant for variant in book.variants(part, name, depth) if variant != ALONE]
    base = list(book.traces(part, name, ALONE, depth).values())
    if not shown or not base:
        return
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure, grid = plt.subplots(
        lines, columns, figsize=(4.6 * columns, 3.0 * lines), squeeze=False, layout="constrained"
    )
    for ax in grid.flat[len(shown) :]:
        ax.set_visible(False)
    for ax, variant in zip(grid.flat, shown, strict=False):
        decomposition_trace(
            list(book.traces(part, name, variant, depth).values()),
            baseline_accuracy=float(np.mean([trace[0].test_accuracy for trace in base])),
            baseline_seconds=float(np.mean([trace[0].cpu_seconds for trace in base])),
            title=f"{name}{f', depth {depth}' if depth else ''}: {variant}",
            ax=ax,
        )
    figure.savefig(folder / f"{part}-{name}{f'-{depth}' if depth else ''}.png", dpi=90)
    plt.close(figure)
