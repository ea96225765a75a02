"""What Windows and macOS lack, masked: calls of Unix, UTF-8 terminals, case in file names."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pandas as pd

MASKED = """
import os, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("chown", "fork", "forkpty", "getuid", "nice", "sched_getaffinity", "wait4"):
    if hasattr(os, name):
        delattr(os, name)
"""

FIT = """
import pandas as pd
from softsplit import SoftTreeClassifier, load_model, save_model
table = pd.read_csv("Größen 日本.csv")
X, y = table.drop(columns="Urteil"), table["Urteil"]
tree = SoftTreeClassifier(depth=1, n_starts=1, max_iter=20, random_state=0).fit(X, y)
for _ in range(2):  # new, and over the file that is there
    save_model(tree, "Baum mit Ä.json")
assert (load_model("Baum mit Ä.json").predict(X) == tree.predict(X)).all()
"""

COMMANDS = (
    ("predict", "Baum mit Ä.json", "Größen 日本.csv", "--out", "Antworten Ö.csv"),
    ("explain", "Baum mit Ä.json", "Größen 日本.csv", "--row", "1"),
    ("export", "Baum mit Ä.json", "--to", "python", "--out", "tree.py"),
)


def run(folder: Path, code: str, *words: str, encoding: str = "utf-8") -> str:
    """Standard output of a Python without Unix, on a terminal without colour."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-c", MASKED + code, *words],
        cwd=folder, env=environment, capture_output=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(encoding, "replace")
    assert b"\x1b" not in done.stdout + done.stderr
    return done.stdout.decode(encoding)


def test_tables_models_and_commands_without_unix(tmp_path: Path) -> None:
    """In a folder with a space, from a file with CRLF, with names that a code page lacks."""
    folder = tmp_path / "Eigene Dateien 文"
    folder.mkdir()
    rows = pd.DataFrame({"Größe": range(40), "大きさ": [0, 1, 2, 3] * 10})
    rows["Urteil"] = ["schön" if size > 19 else "日" for size in rows["Größe"]]
    rows.to_csv(folder / "Größen 日本.csv", index=False, lineterminator="\r\n", encoding="utf-8")
    run(folder, FIT)
    code = "from softsplit.__main__ import main; main()"
    said = [run(folder, code, *words, encoding="cp1252") for words in COMMANDS]
    answers = pd.read_csv(folder / "Antworten Ö.csv", encoding="utf-8")
    assert len(answers) == 40 and set(answers.iloc[:, 1]) == {"schön", "日"}
    assert "Größe" in said[1] and "\\u65e5" in said[1], said[1]
    assert set(runpy.run_path(str(folder / "tree.py"))["CLASSES"]) == {"schön", "日"}
    assert [path.name for path in folder.iterdir() if path.name.startswith(".softsplit")] == []
