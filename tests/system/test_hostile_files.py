"""Damaged and hostile files: something sound is loaded or one sentence is said; nothing runs.

A long run of the same is benchmarks/hostile_files.py.
"""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import subprocess

import pandas as pd
import pytest

from experiment_parts import SMALL
from file_readers import READERS, Unsound, nothing_runs, read_hostile
from mutated_files import mutated_file, valid_files
from readings import random_classifier
from softsplit.data import read_dataset
from softsplit.data.files import read_table
from softsplit.experiments.spec import MOST_DOTS, load_spec, parse_spec
from softsplit.persistence import ModelFileError, dumps_model, loads_model

INPUTS = 40
"""Damaged files of each kind, from each of two sources of randomness."""


@pytest.mark.parametrize("kind", READERS)
def test_sound_files_are_loaded(kind, tmp_path):
    for content in valid_files(kind):
        assert read_hostile(kind, content, tmp_path) == "loaded"


@pytest.mark.parametrize("kind", READERS)
def test_damage_chosen_at_random(kind, tmp_path):
    said = [
        read_hostile(kind, mutated_file(kind, random.Random(f"{kind}-damage-{i}")), tmp_path)
        for i in range(INPUTS)
    ]
    # Both happen, or the mutations are no test: of too little damage, or of too much.
    assert 0 < said.count("loaded") < INPUTS
    assert len(set(said)) > 5


def test_the_guard_sees_code_that_runs(tmp_path):
    """The checks above can fail: each of these is noticed."""
    (tmp_path / "mine").write_text("")
    with nothing_runs(tmp_path / "mine"):
        (tmp_path / "mine").read_text()
    for deed in (
        lambda: eval("1 + 1"),
        lambda: subprocess.run(["true"], check=True),
        lambda: __import__("this_module_does_not_exist"),
        lambda: (tmp_path / "other").write_text("x"),
        lambda: os.system("true"),
    ):
        with pytest.raises((Unsound, ImportError)), nothing_runs(tmp_path / "mine"):
            deed()


@pytest.fixture(scope="module")
def document():
    return json.loads(dumps_model(random_classifier(7, depth=2)[0]))


def changed(document, section, **values):
    made = copy.deepcopy(document)
    made[section].update(values)
    return json.dumps(made)


def test_a_deeply_nested_parameter_is_refused(document):
    nested: object = 1
    for _ in range(600):
        nested = [nested]
    text = changed(document, "training", parameters={"depth": nested})
    with pytest.raises(ModelFileError, match=r"parameters\.depth .* is nested too deeply"):
        loads_model(text)


def test_labels_cannot_ask_for_much_memory(document):
    """One long label and many short ones: an array gives all of them the room of the longest."""
    labels = ["a" * 100_000, *(f"b{i:06d}" for i in range(200_000))]
    text = changed(document, "classes", values=labels)
    with pytest.raises(ModelFileError, match="class labels of the model file are too long"):
        loads_model(text)


def test_a_repeated_key_is_found_in_one_pass():
    text = "{" + ",".join(f'"{i}":0' for i in range(200_000)) + ',"199999":0}'
    with pytest.raises(ModelFileError, match="the key '199999' twice in one object"):
        loads_model(text)


def test_sentences_name_few_columns(tmp_path):
    path = tmp_path / "holes.csv"
    names = [f"column {i}" for i in range(30)]
    path.write_text(",".join(names) + "\n" + ",".join(["?"] * 30) + "\n")
    with pytest.raises(ValueError, match=r"'column 4' \(1\) and 25 more; fill them in"):
        read_dataset(path, "column 0")
    with pytest.raises(ValueError, match=r"there are: column 0, .* column 7 and 22 more"):
        read_dataset(path, "q")


BROKEN = gzip.compress(b"a,b\n1,2\n")
TABLES = [
    ("wide.csv", ",".join(f"c{i}" for i in range(100_000)).encode() + b",c99999\n",
     "several columns named 'c99999'"),
    ("long.csv", b"a," + 501 * b"b" + b"\n1,2\n",
     r"name of column 2 of long\.csv has 501 characters"),
    ("broken.csv.gz", BROKEN[:10] + b"\xff\xff" + BROKEN[12:],
     r"'broken\.csv\.gz' is not compressed as its name says"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "sentence"), TABLES, ids=[t[0] for t in TABLES])
def test_hostile_tables_are_refused_in_one_sentence(name, content, sentence, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        read_table(tmp_path / name)


def test_an_archive_that_unpacks_to_far_too_much_is_refused(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(100):
            file.write(b"1,2\n" * 2**18)
    assert path.stat().st_size < 2**20
    with pytest.raises(ValueError, match=r"'bomb\.csv\.gz' unpacks to more than 200 times its"):
        read_table(path)


@pytest.mark.parametrize("label", ["11e999", "-inf"])
def test_infinity_is_no_class(label, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"a,y\n1,0\n2,{label}\n")
    if pd.read_csv(path)["y"].dtype == object:  # pandas 2 takes 11e999 for a word
        assert read_dataset(path, "y").class_names == ("0", label)
        return
    with pytest.raises(ValueError, match=r"^target 'y' holds infinity; replace it\.$"):
        read_dataset(path, "y")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff\xfe", r"s\.toml is not text in UTF-8 \(byte 0\); save it as UTF-8\."),
        (b"x=" + b"[" * 5000, r"s\.toml is nested too deeply for a spec\."),
        (b"a" + b".a" * 20_000 + b"=1", rf"s\.toml has a line with more than {MOST_DOTS} dots"),
        (b"#" * 65_537, r"s\.toml is larger than 65536 bytes, too large for a spec\."),
        (b"seed = " + b"9" * 5000, r"s\.toml is not valid TOML: Exceeds the limit"),
        (b"a" * 1000 + b" = 1", r"s\.toml: key 'a{59}\.\.\. is unknown"),
    ],
)
def test_hostile_specs_are_refused_in_one_sentence(content, sentence, tmp_path):
    (tmp_path / "s.toml").write_bytes(content)
    with pytest.raises(ValueError, match=sentence) as caught:
        load_spec(str(tmp_path / "s.toml"))
    assert type(caught.value) is ValueError and len(str(caught.value)) < 400


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", "a\\\\b", "", ".hidden", "x" * 101])
def test_the_name_of_a_spec_leads_to_no_other_folder(name):
    for text in (
        SMALL.replace('name = "small"', f'name = "{name}"'),
        SMALL.replace('name = "small"', f'name = "small"\nstore = "{name}"'),
    ):
        with pytest.raises(ValueError, match="cannot name a file; use letters"):
            parse_spec(text, "s.toml")


def test_a_spec_of_more_cells_than_can_be_run_is_refused():
    text = SMALL.replace("starts = 2\nonly", "starts = 1000000000000\nonly")
    with pytest.raises(ValueError, match=r"these are 2\.4e\+13 trainings, more than 1e\+08; lower"):
        parse_spec(text, "s.toml")
