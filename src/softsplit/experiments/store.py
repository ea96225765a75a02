"""Rows in one SQLite file: one transaction per cell, keyed by the cell.

A run that is killed at any moment leaves the rows of the cells that were finished, each whole. A
cell that comes twice is kept once. Beside the rows stand the specs they were made for, the versions
of the software that made them, and a digest of the data.

Every row carries a checksum of its values, which is compared when the store is opened: a file that
was damaged on disk gives no tables. Whatever goes wrong with the file is said in one sentence.

A ``Row`` is what one cell leaves behind: numbers, and the tree that the next cell starts from.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from numbers import Real
from pathlib import Path
from typing import Any, Self, get_args, get_type_hints

import numpy as np
import pandas as pd

from softsplit.experiments.cells import Cell, Chain
from softsplit.experiments.spec import Spec
from softsplit.tree.parameters import TreeParameters

ERROR = "ERROR"
"""Status of a cell that raised instead of returning a tree; the message says what."""

CRASHED = "CRASHED"
"""Status of a cell that took its process down with it."""


@dataclass(frozen=True)
class CellOutcome:
    """The result columns of a row; what a method does not have is None.

    ``seconds`` is the solve alone, ``start_seconds`` the drawing of its start, ``predict_seconds``
    the prediction of the test rows.
    """

    status: str
    objective: float | None = None
    cost: float | None = None
    violation: float | None = None
    stationarity: float | None = None
    iterations: int | None = None
    train_accuracy: float | None = None
    test_accuracy: float | None = None
    test_log_loss: float | None = None
    local_sparsity: float | None = None
    global_sparsity: float | None = None
    features_used: int | None = None
    nonzeros: int | None = None
    message: str = ""
    seconds: float | None = None
    start_seconds: float | None = None
    predict_seconds: float | None = None
    tree: bytes | None = None


TIMES = ("seconds", "start_seconds", "predict_seconds")
"""The only columns in which two runs of the same cell differ."""


@dataclass(frozen=True)
class Row:
    """A cell and its outcome; ``index`` is the step of its chain."""

    cell: Cell
    index: int
    outcome: CellOutcome


def encode_tree(tree: TreeParameters) -> bytes:
    """All bits of a tree: three sizes, then weights, thresholds and leaf classes."""
    sizes = np.array([tree.n_features, len(tree.thresholds), tree.n_groups], dtype="<i4")
    values = np.concatenate(
        [tree.weights.ravel(), tree.thresholds, tree.leaf_values.ravel()], dtype="<f8"
    )
    return sizes.tobytes() + values.tobytes()


def decode_tree(data: bytes) -> TreeParameters:
    """The tree that ``encode_tree`` wrote."""
    n_features, n_branches, n_classes = (int(n) for n in np.frombuffer(data, "<i4", 3))
    values = np.frombuffer(data, "<f8", offset=12).astype(np.float64)
    weights, thresholds, leaves = np.split(
        values, [n_features * n_branches, n_features * n_branches + n_branches]
    )
    return TreeParameters(
        weights.reshape(n_features, n_branches),
        thresholds,
        leaves.reshape(n_classes, n_branches + 1),
    )


KEY = Cell._fields
RESULTS = tuple(field.name for field in fields(CellOutcome))
SQL_TYPES = {float: "REAL", int: "INTEGER", str: "TEXT", bytes: "BLOB"}
CHECKED = tuple(name for name in KEY + RESULTS if name not in TIMES)
"""Columns under the checksum of a row."""

PATIENCE = 60.0
"""Seconds to wait while another run writes to the store."""


@dataclass(frozen=True)
class RunRecord:
    """One run of a spec: when it began, on what, how many rows it wrote in how many seconds."""

    spec: str
    where: str
    began: str
    n_rows: int
    seconds: float


class StoreError(ValueError):
    """The store and the run do not go together."""


class Store:
    """The rows of one or several specs."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._base = sqlite3.connect(self.path, isolation_level=None, timeout=PATIENCE)
        except sqlite3.Error as error:
            raise StoreError(_sentence(self.path, error)) from None
        try:
            self._execute("PRAGMA journal_mode = WAL")
            self._execute("PRAGMA synchronous = NORMAL")
            self._make_tables()
            self._check()
        except BaseException:
            self._base.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._base.close()

    def _execute(self, command: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of the answer, or a ``StoreError`` that says what to do."""
        try:
            return self._base.execute(command, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(_sentence(self.path, error)) from None
        except UnicodeDecodeError:
            raise StoreError(_damaged(self.path, "it holds text that is none")) from None

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError):
            raise StoreError(_damaged(self.path, f"{what} cannot be read")) from None

    def _check(self) -> None:
        """Refuse a file that was damaged: a flipped bit must not end up in a table."""
        if self._execute("PRAGMA integrity_check(1)")[0][0] != "ok":
            raise StoreError(_damaged(self.path, "its pages do not fit together"))
        for *values, known in self._execute(f"SELECT {', '.join(CHECKED)}, checksum FROM cells"):
            if known != _checksum(values):
                cell = ", ".join(map(str, values[1 : len(KEY)]))
                raise StoreError(_damaged(self.path, f"the row of {cell} was changed"))

    def _make_tables(self) -> None:
        columns = [
            f"{name} {SQL_TYPES[hint]} NOT NULL" for name, hint in get_type_hints(Cell).items()
        ]
        for name, hint in get_type_hints(CellOutcome).items():
            kind = (get_args(hint) or (hint,))[0]
            columns.append(f"{name} {SQL_TYPES[kind]}")
        columns.append("checksum INTEGER")
        self._execute(
            f"CREATE TABLE IF NOT EXISTS cells ({', '.join(columns)}, "
            f"PRIMARY KEY ({', '.join(KEY)}))"
        )
        self._execute(
            "CREATE TABLE IF NOT EXISTS notes (kind TEXT, name TEXT, content TEXT NOT NULL, "
            "PRIMARY KEY (kind, name))"
        )

    def write(self, row: Row) -> bool:
        """Add a row in a transaction of its own; False if the cell was there already."""
        values = row.cell._asdict() | {name: getattr(row.outcome, name) for name in RESULTS}
        values["checksum"] = _checksum([values[name] for name in CHECKED])
        added = self._execute(
            f"INSERT INTO cells ({', '.join(values)}) "
            f"VALUES ({', '.join('?' * len(values))}) ON CONFLICT DO NOTHING RETURNING 1",
            list(values.values()),
        )
        return bool(added)

    def finished(self, protocols: Iterable[str]) -> set[Cell]:
        """The cells that have a row."""
        marks = list(protocols)
        cells = self._execute(
            f"SELECT {', '.join(KEY)} FROM cells WHERE protocol IN ({', '.join('?' * len(marks))})",
            marks,
        )
        return {Cell(*row) for row in cells}

    def trees(self, chain: Chain, indices: Iterable[int]) -> dict[int, bytes]:
        """Trees of finished steps of a chain; a step that failed has none."""
        condition = " AND ".join(f"{name} = ?" for name in KEY)
        trees: dict[int, bytes] = {}
        for index in indices:
            rows = self._execute(f"SELECT tree FROM cells WHERE {condition}", chain.cell(index))
            if rows and rows[0][0] is not None:
                trees[index] = rows[0][0]
        return trees

    def frame(self, protocols: Iterable[str]) -> pd.DataFrame:
        """Keys and results of all rows of these protocols, without the trees."""
        marks = list(protocols)
        columns = [name for name in KEY + RESULTS if name != "tree"]
        records = self._execute(
            f"SELECT {', '.join(columns)} FROM cells "
            f"WHERE protocol IN ({', '.join('?' * len(marks))}) ORDER BY {', '.join(KEY)}",
            marks,
        )
        return pd.DataFrame.from_records(records, columns=columns, coerce_float=True)

    def add_spec(self, spec: Spec) -> None:
        self._put("specs", spec.name, spec.model_dump_json())

    def spec(self, name: str) -> Spec:
        """The spec as it was when it last ran."""
        content = self._notes("specs").get(name)
        if content is None:
            raise StoreError(
                f"store {str(self.path)!r} holds no experiment {name!r}; run it first: softsplit "
                f"experiment run {name}."
            )
        with self._readable("the spec"):
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
        known = list(self._notes("versions").values())
        if known and text not in known and not accept_others:
            with self._readable("the record of versions"):
                before = dict(json.loads(known[-1]))
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
        known = self._notes("datasets").get(f"{name}/{coding}")
        if known is not None and known != digest:
            raise StoreError(
                f"data set {name!r} is not the one whose rows are in store {str(self.path)!r}; "
                "name another store with --store."
            )
        self._put("datasets", f"{name}/{coding}", digest)

    def skip(self, reasons: dict[str, str]) -> None:
        """Remember why methods were left out of the last run."""
        self._execute("DELETE FROM notes WHERE kind = 'skipped'")
        for name, reason in reasons.items():
            self._put("skipped", name, reason)

    def skipped(self) -> dict[str, str]:
        return self._notes("skipped")

    def log_run(self, run: RunRecord) -> None:
        """Remember that a run took place, whether or not it came to its end."""
        self._put("runs", run.began, json.dumps(asdict(run)))

    def runs(self, spec_name: str) -> list[RunRecord]:
        """The runs of a spec that wrote rows, in the order of time."""
        with self._readable("the record of runs"):
            records = [RunRecord(**json.loads(content)) for content in self._notes("runs").values()]
        return [record for record in records if record.spec == spec_name]

    def _put(self, kind: str, name: str, content: str) -> None:
        self._execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", (kind, name, content))

    def _notes(self, kind: str) -> dict[str, str]:
        """Name -> content, in the order of the names."""
        command = "SELECT name, content FROM notes WHERE kind = ? ORDER BY name"
        return dict(self._execute(command, (kind,)))


UNWRITABLE = "copy it to a place where you may write, or name another store with --store."
FULL = "the disk may be full: make room, and run the same command again; recorded rows are kept."
HELD = "another program holds it: end that one, and run the same command again."
ADVICE = {
    sqlite3.SQLITE_READONLY: UNWRITABLE,
    sqlite3.SQLITE_CANTOPEN: UNWRITABLE,
    sqlite3.SQLITE_PERM: UNWRITABLE,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR: FULL,
    sqlite3.SQLITE_BUSY: HELD,
    sqlite3.SQLITE_LOCKED: HELD,
}
"""What to do about an error of SQLite, by its code."""


def _sentence(path: Path, error: sqlite3.Error) -> str:
    """What SQLite found wrong with the file, and what to do."""
    code = getattr(error, "sqlite_errorcode", None)
    kind = None if code is None else code & 0xFF  # without what extends it
    if kind == sqlite3.SQLITE_NOTADB:
        return f"{str(path)!r} is no store of results: {error}."
    if kind is None:  # not from SQLite itself: what it handed over could not be decoded
        return _damaged(path, "it holds text that is none")
    if kind == sqlite3.SQLITE_CORRUPT:
        return _damaged(path, str(error))
    advice = f"; {ADVICE[kind]}" if kind in ADVICE else "."
    return f"store {str(path)!r} cannot be used ({error}){advice}"


def _damaged(path: Path, what: str) -> str:
    return (
        f"store {str(path)!r} is damaged: {what}; go back to a copy, or move it away and run the "
        f"experiment again (sqlite3 {path.name} .recover shows what can still be read)."
    )


def _checksum(values: Sequence[Any]) -> int:
    """The same before a row is stored and after: SQLite stores NaN as NULL, and 1 as 1.0."""
    plain = [
        None if value != value else float(value) + 0.0 if isinstance(value, Real) else value
        for value in values
    ]
    return zlib.crc32(repr(plain).encode())


def open_store(spec: Spec, path: Path | None = None, *, new: bool = False) -> Store:
    """The store of a spec, by default ``results/STORE.sqlite``; made only if ``new``."""
    chosen = path or Path("results") / f"{spec.store_name}.sqlite"
    if not new and not chosen.is_file():
        raise FileNotFoundError(
            f"there is no store {str(chosen)!r}; run the experiment first: softsplit experiment "
            f"run {spec.name}."
        )
    return Store(chosen)
