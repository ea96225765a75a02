"""What this option provides: rows on an accelerator."""

from softsplit.support.options import Option

OPTION = Option(
    services={"devices": "softsplit.on_torch.devices"},
)
