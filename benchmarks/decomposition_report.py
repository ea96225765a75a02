"""Runs of decomposition.py on file, a line of runs.jsonl each; their tables and figures."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from common import add_row, markdown, rows_of

from softsplit.decomposition import DecompositionTrace, TraceRow

ALONE = "no decomposition"

EQUAL = 0.002
"""Test accuracies that differ by no more than this are called equal."""

MIDDLES = {"ipopt": np.mean, "explicit": np.mean}
"""How the runs of a part are brought to one figure, if not by their median."""

HEADS = [
    "variant", "runs", "m", "accuracy", "objective", "CPU s", "saved",
    "first m at equal accuracy", "accuracy", "objective", "saved",
]  # fmt: skip


Traces = dict[tuple[int, int], DecompositionTrace]
"""By fold and start."""


@dataclass(frozen=True)
class Job:
    """One run: a solver by the name of its variant, on one fold from one start."""

    part: str
    dataset: str
    depth: int | None
    variant: str
    fold: int
    start: int


class Book:
    """The runs that have been done."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.jsonl"
        self.runs: dict[Job, dict] = {Job(**run["job"]): run for run in rows_of(self.path)}

    def add(self, job: Job, trace: DecompositionTrace, message: str) -> None:
        rows = [_rounded(asdict(row)) for row in trace.rows]
        facts = {"job": asdict(job), "initialised": trace.initialised, "message": message}
        self.runs[job] = add_row(self.path, facts | {"rows": rows})

    def forget(self, part: str, datasets: list[str]) -> None:
        """Drop what has been run of a part, to run it again."""
        gone = [job for job in self.runs if job.part == part and job.dataset in datasets]
        for job in gone:
            del self.runs[job]
        self.path.write_text("".join(json.dumps(run) + "\n" for run in self.runs.values()))

    def tables(self, part: str) -> list[tuple[str, int | None]]:
        """Data sets and depths that a part has been run on, in the order of the runs."""
        return list(dict.fromkeys((j.dataset, j.depth) for j in self.runs if j.part == part))

    def variants(self, part: str, dataset: str, depth: int | None) -> list[str]:
        here = [j for j in self.runs if (j.part, j.dataset, j.depth) == (part, dataset, depth)]
        return list(dict.fromkeys(job.variant for job in here))

    def traces(self, part: str, dataset: str, variant: str, depth: int | None = None) -> Traces:
        wanted = (part, dataset, depth, variant)
        return {
            (job.fold, job.start): DecompositionTrace(
                tuple(TraceRow(**row) for row in run["rows"]), run["initialised"]
            )
            for job, run in self.runs.items()
            if (job.part, job.dataset, job.depth, job.variant) == wanted
        }


def _rounded(row: dict) -> dict:
    return {k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()}


# --- tables ---------------------------------------------------------------------------------------


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
    return f"{title}\n\n{markdown(HEADS, rows)}"


def variant_row(variant: str, traces: Traces, base: Traces, part: str) -> list[str]:
    shared = [key for key in traces if key in base]
    own = [traces[key] for key in shared or traces]
    alone = [base[key] for key in shared]
    last = max(len(trace) for trace in own) - 1
    cells = [variant, str(len(own)), str(last), *figures(own, last, part)]
    cells += [f"{at(own, 'cpu_seconds', last, part):.2f}"]
    if variant == ALONE or not alone:
        return [*cells, *["-"] * 5]
    cells.append(saved(own, alone, last, part))
    level = at(alone, "test_accuracy", 0, part)
    equal = [m for m in range(last + 1) if at(own, "test_accuracy", m, part) >= level - EQUAL]
    if not equal:
        return [*cells, *["-"] * 4]
    first = equal[0]
    return [*cells, str(first), *figures(own, first, part), saved(own, alone, first, part)]


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
    cells = [[f"{v:.3g}" if isinstance(v, float) else v for v in row.values()] for row in rows]
    return markdown(list(rows[0]), cells)


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
