"""What this option provides: rows on an accelerator, and many trees trained in lockstep."""

from softsplit.support.options import Option

OPTION = Option(
    services={
        "devices": "softsplit.on_torch.devices",
        "lockstep": "softsplit.on_torch.together",
    },
)
