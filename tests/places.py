"""Where things are that tests look at."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
FILES = TESTS / "files"
