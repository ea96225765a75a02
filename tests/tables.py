"""Tables as users have them, the same content in many dresses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

HOSTILE = [
    "<script>document.title='hit'</script>",
    "</script><img src=x onerror=\"document.title='hit'\">",
    "a b",
    'say "hi", it\'s',
    "<!--",
    "naïve ✓ 漢字 \u2028 end",
    "=1+1",
    "[red]bold[/red]",
    "x" * 200,
]


def people(n_rows: int = 60, seed: int = 0) -> pd.DataFrame:
    """Numbers, a text column and truth values; the risk follows from age and town."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, n_rows)
    town = rng.choice(["Lyon", "Oslo", "Bern"], n_rows)
    height = np.round(rng.normal(1.7, 0.1, n_rows), 2)
    risk = np.where(age + 20 * (town == "Oslo") > 55, "high", "low")
    risk[:2] = ["high", "low"]
    smoker = np.where(rng.random(n_rows) < 0.5, "TRUE", "FALSE")
    return pd.DataFrame(
        {"age": age, "town": town, "height": height, "smoker": smoker, "risk": risk}
    )


def hostile(n_rows: int = 60) -> pd.DataFrame:
    """Names of columns, levels and classes that try to be markup."""
    table = people(n_rows)
    columns = {
        HOSTILE[0]: table["age"],
        HOSTILE[1]: table["town"].replace({"Lyon": HOSTILE[0], "Oslo": HOSTILE[5]}),
        HOSTILE[2]: table["height"],
        HOSTILE[3]: table["age"] % 7,
        HOSTILE[7]: table["age"] % 5,
        HOSTILE[8]: table["age"] % 3,
        HOSTILE[4]: table["risk"].replace({"high": HOSTILE[1], "low": HOSTILE[6]}),
    }
    return pd.DataFrame(columns)


HOSTILE_TARGET = HOSTILE[4]


def written(folder: Path, kind: str) -> Path:
    """The file of a case, by its name."""
    table = people()
    path = folder / f"{kind}.csv"
    text = table.to_csv(index=False)
    if kind == "plain":
        path.write_text(text)
    elif kind == "bom":
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    elif kind == "utf-16":
        path.write_bytes(text.encode("utf-16"))
    elif kind == "semicolons":
        path.write_text(table.to_csv(index=False, sep=";", decimal=","))
    elif kind == "windows":
        path.write_bytes(text.replace("\n", "\r\n").encode())
    elif kind == "tabs":
        path.write_text(table.to_csv(index=False, sep="\t"))
    elif kind == "index":
        table.to_csv(path)
    elif kind == "quoted":
        table.to_csv(path, index=False, quoting=1)
    elif kind == "parquet":
        path = folder / "p.parquet"
        table.to_parquet(path)
    elif kind == "feather":
        path = folder / "p.feather"
        table.to_feather(path)
    elif kind == "excel":
        path = folder / "p.xlsx"
        table.to_excel(path, index=False)
    elif kind == "five":
        table.head(5).to_csv(path, index=False)
    elif kind == "large":
        people(50_000)[["age", "town", "risk"]].to_csv(path, index=False)
    elif kind == "missing":
        table.assign(
            age=table["age"].where(table.index % 9 != 3), town=table["town"].where(table.index != 5)
        ).to_csv(path, index=False)
    elif kind == "one-class":
        table.assign(risk="low").to_csv(path, index=False)
    elif kind == "empty":
        path.write_text("")
    elif kind == "header-only":
        path.write_text("age,town,height,smoker,risk\n")
    elif kind == "folder":
        path.mkdir()
    elif kind != "absent":
        raise AssertionError(kind)
    return path


def rare_table(n_rows: int = 400) -> pd.DataFrame:
    """One class in thirty, by one of two columns."""
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, n_rows))
    ill = a + 0.3 * rng.normal(size=n_rows) > 1.9
    return pd.DataFrame({"a": a, "b": b, "state": np.where(ill, "ill", "well")})


def patients(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two numbers, one with missing values, and a category; two classes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": np.round(rng.normal(50, 12, n_rows), 1),
            "job": rng.choice(["nurse", "cook", "clerk"], n_rows),
            "dose": np.round(rng.gamma(3, 2, n_rows), 2),
        }
    )
    score = frame["age"] / 12 + 2 * (frame["job"] == "cook") + frame["dose"] / 4
    y = np.where(score + rng.normal(0, 0.5, n_rows) > score.median(), "ill", "well")
    frame.loc[rng.random(n_rows) < 0.1, "dose"] = np.nan
    return frame, y
