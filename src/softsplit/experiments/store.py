"""Rows in one SQLite file: one transaction per cell, keyed by the cell.

A run that is killed at any moment leaves the rows of the cells that were finished, each whole. A
cell that comes twice is kept once. Beside the rows stand the specs they were made for, the versions
of the software that made them, and a digest of the data.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Self, get_args, get_type_hints

import pandas as pd

from softsplit.experiments.cells import Cell, Chain
from softsplit.experiments.rows import Outcome, Row
from softsplit.experiments.spec import Spec

KEY = Cell._fields
RESULTS = tuple(field.name for field in fields(Outcome))
SQL_TYPES = {float: "REAL", int: "INTEGER", str: "TEXT", bytes: "BLOB"}


@dataclass(frozen=True)
class RunRecord:
    """One run of a spec: when it began, on what, how many rows it wrote in how many seconds."""

    spec: str
    began: str
    where: str
    n_rows: int
    seconds: float


class StoreError(ValueError):
    """The store and the run do not go together."""


class Store:
    """The rows of one or several specs."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(self.path, isolation_level=None, timeout=60.0)
        try:
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = NORMAL")
            self._make_tables()
        except sqlite3.DatabaseError as error:
            self._base.close()
            raise StoreError(f"{str(self.path)!r} is no store of results: {error}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._base.close()

    def _make_tables(self) -> None:
        columns = [
            f"{name} {SQL_TYPES[hint]} NOT NULL" for name, hint in get_type_hints(Cell).items()
        ]
        for name, hint in get_type_hints(Outcome).items():
            kind = (get_args(hint) or (hint,))[0]
            columns.append(f"{name} {SQL_TYPES[kind]}")
        self._base.execute(
            f"CREATE TABLE IF NOT EXISTS cells ({', '.join(columns)}, "
            f"PRIMARY KEY ({', '.join(KEY)}))"
        )
        for table in ("specs", "versions", "datasets", "skipped", "runs"):
            self._base.execute(
                f"CREATE TABLE IF NOT EXISTS {table} (name TEXT PRIMARY KEY, content TEXT NOT NULL)"
            )

    def write(self, row: Row) -> bool:
        """Add a row in a transaction of its own; False if the cell was there already."""
        values = [*row.cell, *(getattr(row.outcome, name) for name in RESULTS)]
        done = self._base.execute(
            f"INSERT INTO cells ({', '.join(KEY + RESULTS)}) "
            f"VALUES ({', '.join('?' * len(values))}) ON CONFLICT DO NOTHING",
            values,
        )
        return done.rowcount == 1

    def finished(self, protocols: Iterable[str]) -> set[Cell]:
        """The cells that have a row."""
        marks = list(protocols)
        found = self._base.execute(
            f"SELECT {', '.join(KEY)} FROM cells WHERE protocol IN ({', '.join('?' * len(marks))})",
            marks,
        )
        return {Cell(*row) for row in found}

    def trees(self, chain: Chain, indices: Iterable[int]) -> dict[int, bytes]:
        """Trees of finished steps of a chain; a step that failed has none."""
        condition = " AND ".join(f"{name} = ?" for name in KEY)
        found: dict[int, bytes] = {}
        for index in indices:
            row = self._base.execute(
                f"SELECT tree FROM cells WHERE {condition}", chain.cell(index)
            ).fetchone()
            if row is not None and row[0] is not None:
                found[index] = row[0]
        return found

    def frame(self, protocols: Iterable[str]) -> pd.DataFrame:
        """Keys and results of all rows of these protocols, without the trees."""
        marks = list(protocols)
        columns = [name for name in KEY + RESULTS if name != "tree"]
        return pd.read_sql_query(
            f"SELECT {', '.join(columns)} FROM cells "
            f"WHERE protocol IN ({', '.join('?' * len(marks))}) ORDER BY {', '.join(KEY)}",
            self._base,
            params=marks,
        )

    def add_spec(self, spec: Spec) -> None:
        self._put("specs", spec.name, spec.model_dump_json())

    def spec(self, name: str) -> Spec:
        """The spec as it was when it last ran."""
        content = self._get("specs", name)
        if content is None:
            raise StoreError(
                f"store {str(self.path)!r} holds no experiment {name!r}; run it first: softsplit "
                f"experiment run {name}."
            )
        return Spec.model_validate_json(content)

    def same_spec(self, spec: Spec) -> Spec:
        """The stored spec of that name, which must be this one, with or without its inner folds."""
        stored, plain = self.spec(spec.name), {"inner": None}
        if stored.model_copy(update=plain) != spec.model_copy(update=plain):
            raise StoreError(
                f"store {str(self.path)!r} was last filled by another spec called {spec.name!r}; "
                "run this one first, or give it a name of its own."
            )
        return stored

    def check_versions(self, versions: dict[str, str], accept_others: bool = False) -> None:
        """Refuse to mix rows of different software; remember the versions of this run."""
        text = json.dumps(versions, sort_keys=True)
        known = [row[0] for row in self._base.execute("SELECT content FROM versions")]
        if known and text not in known and not accept_others:
            before = json.loads(known[-1])
            names = sorted(versions.keys() | before.keys())
            changed = ", ".join(
                f"{name} {before.get(name)} -> {versions.get(name)}"
                for name in names
                if before.get(name) != versions.get(name)
            )
            raise StoreError(
                f"store {str(self.path)!r} holds rows of other versions ({changed}); name another "
                "store with --store, or mix them with --accept-versions."
            )
        if text not in known:
            self._put("versions", str(len(known)), text)

    def check_dataset(self, name: str, coding: str, digest: str) -> None:
        """Refuse to mix rows of different data; remember the digest of this run's."""
        known = self._get("datasets", f"{name}/{coding}")
        if known is not None and known != digest:
            raise StoreError(
                f"data set {name!r} is not the one whose rows are in store {str(self.path)!r}; "
                "name another store with --store."
            )
        self._put("datasets", f"{name}/{coding}", digest)

    def skip(self, reasons: dict[str, str]) -> None:
        """Remember why methods were left out of the last run."""
        self._base.execute("DELETE FROM skipped")
        for name, reason in reasons.items():
            self._put("skipped", name, reason)

    def skipped(self) -> dict[str, str]:
        return dict(self._base.execute("SELECT name, content FROM skipped ORDER BY name"))

    def log_run(self, run: RunRecord) -> None:
        """Remember that a run took place, whether or not it came to its end."""
        self._put("runs", run.began, json.dumps(asdict(run)))

    def runs(self, spec_name: str) -> list[RunRecord]:
        """The runs of a spec that wrote rows, in the order of time."""
        found = self._base.execute("SELECT content FROM runs ORDER BY name")
        records = [RunRecord(**json.loads(content)) for (content,) in found]
        return [record for record in records if record.spec == spec_name]

    def _put(self, table: str, name: str, content: str) -> None:
        self._base.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", (name, content))

    def _get(self, table: str, name: str) -> str | None:
        row = self._base.execute(f"SELECT content FROM {table} WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])


def open_store(spec: Spec, path: Path | None = None, *, new: bool = False) -> Store:
    """The store of a spec, by default ``results/STORE.sqlite``; made only if ``new``."""
    chosen = path or Path("results") / f"{spec.store_name}.sqlite"
    if not new and not chosen.is_file():
        raise FileNotFoundError(
            f"there is no store {str(chosen)!r}; run the experiment first: softsplit experiment "
            f"run {spec.name}."
        )
    return Store(chosen)
