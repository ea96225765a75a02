"""The JSON schema of model files: ``python -m softsplit.persistence.schema`` prints it."""

from __future__ import annotations

import json
import sys

import msgspec

from softsplit.persistence.document import VERSION, Document


def schema() -> str:
    """The schema of the records of a model file."""
    heading = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:softsplit:model:{VERSION}",
    }
    return json.dumps(heading | msgspec.json.schema(Document), indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema())
