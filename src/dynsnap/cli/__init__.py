"""The command line: commands parse, call and print; everything else lives below."""

from dynsnap.cli._group import cli, main

__all__ = ["cli", "main"]
