"""Runs of benchmarks/decomposition.py on file: a line of runs.jsonl each, kept between calls."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from softsplit.decomposition import DecompositionTrace, TraceRow

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
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        records = [json.loads(line) for line in lines]
        self.runs: dict[Job, dict] = {Job(**record["job"]): record for record in records}

    def add(self, job: Job, trace: DecompositionTrace, message: str) -> None:
        self.runs[job] = {
            "job": asdict(job),
            "initialised": trace.initialised,
            "message": message,
            "rows": [_rounded(asdict(row)) for row in trace.rows],
        }
        with self.path.open("a") as stream:
            stream.write(json.dumps(self.runs[job]) + "\n")

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
