"""Exported code run where it is at home: the answers of a tree for the rows of a table.

Each runner takes a fitted tree and a frame, and returns the predicted classes as texts and the
probabilities. ``RUNNERS`` names those that this machine can run.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from datetime import date, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from softsplit import (
    export_c,
    export_excel,
    export_javascript,
    export_onnx,
    export_python,
    export_sql,
)
from softsplit.exports.code import CPrinter
from softsplit.exports.program import program_of

TABLE = 'a "table" of; rows'


def plain(value, kind):
    """A cell as a plain value: None if missing, dates as ISO texts."""
    if value is None or value is pd.NaT or value is pd.NA or value != value:
        return None
    if isinstance(value, date | datetime):
        return value.isoformat()
    value = value.item() if isinstance(value, np.generic) else value
    if kind == "truth" and not isinstance(value, str):
        return bool(value)
    return value


def columns_in_use(tree, X):
    """Names, kinds and plain values of the columns that a tree reads."""
    columns = program_of(tree.tree_).columns
    return {
        column.name: (column, [plain(v, column.kind) for v in X[column.name].astype(object)])
        for column in columns
    }


def text_of(label):
    return str(label.item() if isinstance(label, np.generic) else label)


def kind_of(tree):
    return tree.classes_.dtype.kind if hasattr(tree, "classes_") else ""


def records(tree, X):
    read = columns_in_use(tree, X)
    return [{name: values[i] for name, (_, values) in read.items()} for i in range(len(X))]


def run_python(tree, X):
    """In a process that knows the standard library alone."""
    with tempfile.TemporaryDirectory() as folder:
        export_python(tree, Path(folder) / "exported.py")
        code = (
            f"import sys, json; sys.path.insert(0, {folder!r}); import exported\n"
            "rows = json.load(sys.stdin)\n"
            "assert 'numpy' not in sys.modules\n"
            "shares = getattr(exported, 'predict_proba', lambda row: [])\n"
            "told = [[str(exported.predict(r)), shares(r)] for r in rows]\n"
            "print(json.dumps(told))"
        )
        done = _run([sys.executable, "-I", "-S", "-c", code], json.dumps(records(tree, X)))
    return _answers(json.loads(done))


def run_javascript(tree, X):
    with tempfile.TemporaryDirectory() as folder:
        export_javascript(tree, Path(folder) / "exported.js")
        code = (
            f"const t = require({json.dumps(folder + '/exported.js')});\n"
            "const rows = JSON.parse(require('fs').readFileSync(0, 'utf-8'));\n"
            "const shares = t.predictProba || (() => []);\n"
            "const told = rows.map((r) => [String(t.predict(r)), shares(r)]);\n"
            "console.log(JSON.stringify(told));"
        )
        done = _run(["node", "-e", code], json.dumps(records(tree, X)))
    told, proba = _answers(json.loads(done))
    boolean = kind_of(tree) == "b"
    return [text.capitalize() if boolean else text for text in told], proba


def number_of(column, value):
    """A cell that is no text as C and ONNX take it: a double, NaN if missing."""
    if value is None:
        return math.nan
    if column.kind == "day":
        moment = pd.to_datetime(value, format=column.form or "ISO8601")
        moment = moment.tz_convert("UTC").tz_localize(None) if moment.tz else moment
        return (moment - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    if column.kind == "truth" and isinstance(value, str):
        return float(value.strip().lower() == "true")
    return float(value)


def c_value(column, value):
    if column.kind == "text":
        return "NULL" if value is None else CPrinter({}).quoted(_level_text(value))
    number = number_of(column, value)
    return "NAN" if math.isnan(number) else repr(number)


def run_onnx(tree, X):
    """An array or a frame; blanks around a text are not dropped by a graph."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(
        export_onnx(tree).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [given.name for given in session.get_inputs()]
    if names == ["X"]:
        given = {"X": np.asarray(X, dtype=float)}
    else:
        given = {}
        for name, (column, values) in columns_in_use(tree, X).items():
            if column.kind == "text":
                cells = ["" if v is None else _level_text(v).strip() for v in values]
                given[name] = np.array(cells, dtype=object)[:, None]
            else:
                given[name] = np.array([number_of(column, v) for v in values])[:, None]
    given = {name: given[name] for name in names}
    if not hasattr(tree, "classes_"):
        return list(map(repr, session.run(["predicted"], given)[0].tolist())), None
    labels, proba = session.run(["label", "probabilities"], given)
    return [text_of(label) for label in labels.tolist()], proba


def _level_text(value):
    return (
        str(int(value)) if isinstance(value, float) and value == math.floor(value) else str(value)
    )


def run_c(tree, X):
    read = columns_in_use(tree, X)
    rows = [
        "{" + ", ".join(c_value(column, values[i]) for column, values in read.values()) + "}"
        for i in range(len(X))
    ]
    listed = ",\n".join(rows)
    answer = (
        "    double p[softsplit_n_classes];\n"
        "    int k = softsplit_predict_proba(&rows[i], p);\n"
        '    printf("%d", k);\n'
        '    for (int j = 0; j < softsplit_n_classes; j++) printf(" %.17g", p[j]);\n'
    )
    if not hasattr(tree, "classes_"):
        answer = '    printf("%.17g", softsplit_predict(&rows[i]));\n'
    main = (
        f"#include <stdio.h>\nstatic const softsplit_row rows[] = {{\n{listed}}};\n"
        f"int main(void) {{\n  for (int i = 0; i < {len(rows)}; i++) {{\n{answer}"
        '    printf("\\n");\n  }\n  return 0;\n}\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "tree.c", Path(folder) / "tree"
        source.write_text(export_c(tree) + main)
        strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-ffp-contract=off"]
        _run(["gcc", *strict, str(source), "-o", str(program), "-lm"])
        lines = [line.split() for line in _run([str(program)]).splitlines()]
    if not hasattr(tree, "classes_"):
        return [line[0] for line in lines], None
    labels = [text_of(label) for label in tree.classes_]
    return [labels[int(line[0])] for line in lines], np.array([line[1:] for line in lines], float)


def run_sqlite(tree, X):
    read = columns_in_use(tree, X)
    connection = sqlite3.connect(":memory:")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in ["row number", *read])
    table = '"' + TABLE.replace('"', '""') + '"'
    connection.execute(f"CREATE TABLE {table} ({names})")
    rows = zip(range(len(X)), *(values for _, values in read.values()), strict=True)
    marks = ", ".join("?" * (len(read) + 1))
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    found = connection.execute(export_sql(tree, TABLE, dialect="sqlite", keep="row number"))
    return _of_rows(tree, found.fetchall())


def run_duckdb(tree, X):
    import duckdb

    read = columns_in_use(tree, X)
    connection = duckdb.connect()
    types = {"number": "DOUBLE", "truth": "BOOLEAN", "day": "TIMESTAMP", "text": "VARCHAR"}
    _typed_table(connection.execute, read, types)
    marks = ", ".join("?" * (len(read) + 1))
    rows = zip(range(len(X)), *(values for _, values in read.values()), strict=True)
    connection.executemany(f"INSERT INTO {_quoted_table()} VALUES ({marks})", list(map(list, rows)))
    found = connection.execute(export_sql(tree, TABLE, dialect="duckdb", keep="row number"))
    return _of_rows(tree, found.fetchall())


def run_postgres(tree, X):
    read = columns_in_use(tree, X)
    statements = [f"DROP TABLE IF EXISTS {_quoted_table()}"]
    types = {
        "number": "double precision", "truth": "boolean", "day": "timestamp", "text": "text",
    }  # fmt: skip
    _typed_table(statements.append, read, types)
    out = io.StringIO()
    for i in range(len(X)):
        cells = [values[i] for _, values in read.values()]
        out.write(",".join([str(i), *map(_copied, cells)]) + "\n")
    query = export_sql(tree, TABLE, dialect="postgres", keep="row number")
    script = (
        ";\n".join(statements) + f";\nCOPY {_quoted_table()} FROM STDIN WITH (FORMAT csv);\n"
        f"{out.getvalue()}\\.\n{query};\n"
    )
    done = _run([*_psql(), "-v", "ON_ERROR_STOP=1", "--csv", "-t", "-q", "-f", "-"], script)
    return _of_rows(tree, list(csv.reader(io.StringIO(done, newline=""))))


def _copied(value):
    return "" if value is None else '"' + str(value).replace('"', '""') + '"'


def run_excel(tree, X):
    return run_workbooks([(tree, X)])[0]


def run_workbooks(cases):
    """In one LibreOffice: the batch sheets of workbooks, saved as CSV."""
    with tempfile.TemporaryDirectory() as folder:
        books = [str(Path(folder) / f"tree{i}.xlsx") for i in range(len(cases))]
        for (tree, X), book in zip(cases, books, strict=True):
            export_excel(tree, book, X)
        profile = f"-env:UserInstallation=file://{folder}/profile"
        # Separator, quotes, UTF-8, from line 1, formatted as shown: no, all sheets.
        how = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1"
        _run(["soffice", profile, "--headless", "--convert-to", how, "--outdir", folder, *books])
        return [
            _batch_sheet(tree, X, Path(folder) / f"tree{i}-Batch.csv")
            for i, (tree, X) in enumerate(cases)
        ]


def _batch_sheet(tree, X, path):
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    n_classes = len(getattr(tree, "classes_", []))
    rows = [line[: n_classes + 1] for line in lines[1 : len(X) + 1]]
    if not n_classes:
        return [row[0] for row in rows], None
    labels = [text_of(label) for label in tree.classes_]
    told = [_shown_label(row[0], labels) for row in rows]
    return told, np.array([row[1:] for row in rows], dtype=float)


def _shown_label(text, labels):
    """The label that LibreOffice writes: truth values in capitals, control characters otherwise."""
    if text in labels:
        return text
    if text.capitalize() in labels:
        return text.capitalize()
    alike = [label for label in labels if _seen(label) == _seen(text)]
    assert len(alike) == 1, (text, labels)
    return alike[0]


def _seen(text):
    return [character for character in text if character.isprintable() and character != " "]


# --- parts ----------------------------------------------------------------------------------------


def _typed_table(execute, read, types):
    kinds = {name: "text" if c.form else c.kind for name, (c, _) in read.items()}
    columns = [f'"{name.replace(chr(34), chr(34) * 2)}" {types[kinds[name]]}' for name in read]
    listed = ", ".join(['"row number" integer', *columns])
    execute(f"CREATE TABLE {_quoted_table()} ({listed})")


def _quoted_table():
    return '"' + TABLE.replace('"', '""') + '"'


def _of_rows(tree, rows):
    rows = sorted(rows, key=lambda row: int(row[0]))
    if not hasattr(tree, "classes_"):
        return [str(row[1]) for row in rows], None
    labels = {text_of(label): text_of(label) for label in tree.classes_}
    boolean = kind_of(tree) == "b"
    told = []
    for row in rows:
        text = str(row[1])
        if boolean:
            text = str(text.lower() in ("1", "t", "true"))
        if text not in labels and tree.classes_.dtype.kind == "f":
            text = str(float(text))
        told.append(text)
    return told, np.array([row[2:] for row in rows], dtype=float)


def _answers(found):
    return [text for text, _ in found], np.array([proba for _, proba in found])


def _run(command, given=None):
    done = subprocess.run(
        command, input=None if given is None else given.encode(), capture_output=True, timeout=120,
        cwd=tempfile.gettempdir(),
    )  # fmt: skip
    assert done.returncode == 0, f"{command[0]}: {done.stderr.decode()[-2000:]}"
    return done.stdout.decode()


@cache
def _psql():
    """A server of this session, in a folder of its own, and how to reach it."""
    import atexit

    home = Path(tempfile.mkdtemp(prefix="softsplit-postgres-"))
    data, binaries = home / "data", _postgres_folder()
    as_user = []
    if os.geteuid() == 0:  # a server does not run as root
        shutil.chown(home, "postgres")
        home.chmod(0o755)
        as_user = ["runuser", "-u", "postgres", "--"]
    log = str(home / "log")
    _run(
        [
            *as_user,
            str(binaries / "initdb"),
            "-D",
            str(data),
            "-U",
            "tree",
            "-E",
            "UTF8",
            "--locale=C",
        ]
    )
    options = f"-k {home} -c listen_addresses='' -c fsync=off"
    control = [*as_user, str(binaries / "pg_ctl"), "-D", str(data)]
    subprocess.run(
        [*control, "-l", log, "-w", "-o", options, "start"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip

    def stop():
        subprocess.run([*control, "-m", "immediate", "stop"], capture_output=True, timeout=60)
        shutil.rmtree(home, ignore_errors=True)

    atexit.register(stop)
    return ["psql", "-X", "-h", str(home), "-U", "tree", "-d", "postgres"]


def _postgres_folder():
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def absent(name):
    """Why a runner cannot run here; empty if it can."""
    if name == "postgres":
        return "" if _postgres_folder() and shutil.which("psql") else "PostgreSQL is not installed"
    if name in ("duckdb", "onnxruntime"):
        return "" if find_spec(name) else f"{name} is not installed"
    program = {"javascript": "node", "c": "gcc", "excel": "soffice"}.get(name)
    return "" if program is None or shutil.which(program) else f"{program} is not installed"


RUNNERS = {
    "python": run_python,
    "javascript": run_javascript,
    "c": run_c,
    "sqlite": run_sqlite,
    "duckdb": run_duckdb,
    "postgres": run_postgres,
    "excel": run_excel,
    "onnxruntime": run_onnx,
}
