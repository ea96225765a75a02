"""What this option provides: pictures with matplotlib."""

from softsplit.support.options import Option

OPTION = Option(
    names={"plots": "softsplit.plots"},
    requires={"matplotlib": "plots"},
)
