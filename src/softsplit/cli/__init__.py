"""The command line: one module per command, which parses options, calls the library and prints."""

from softsplit.cli.app import app, main

__all__ = ["app", "main"]
