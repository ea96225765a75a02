"""Rows on an accelerator, through PyTorch; nothing here is loaded before a device is asked for."""
