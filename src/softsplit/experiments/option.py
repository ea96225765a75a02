"""What this option provides: experiments, from a specification to tables and figures."""

from softsplit.support.options import Option

OPTION = Option(
    commands={"experiment": "softsplit.experiments.command:app"},
    requires={"pydantic": "experiments"},
)
