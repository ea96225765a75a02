"""What this option provides: the VC dimension of trees."""

from softsplit.support.options import Option

OPTION = Option(
    names={"capacity": "softsplit.capacity"},
    commands={"vc": "softsplit.capacity.command:vc"},
)
