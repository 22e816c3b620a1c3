"""The command line: commands parse, call and print; everything else lives below.

This module loads nothing, so that `main` is reached at once: from there on Ctrl-C ends the program
in one line, also while the libraries of a command are being imported.
"""

TYPE_CHECKING = False  # typing itself takes longer to load than this module
if TYPE_CHECKING:
    from dynsnap.cli._group import cli as cli

__all__ = ["cli", "main"]


def main() -> None:
    """The console entry point."""
    try:
        from dynsnap.cli import _signals

        with _signals.as_interrupts():
            from dynsnap.cli._group import start

            start()
    except (KeyboardInterrupt, RuntimeError) as error:
        # Until Python 3.12 a signal that comes while a class is made is the cause of another error.
        stop = error.__cause__ if isinstance(error, RuntimeError) else error
        if not isinstance(stop, KeyboardInterrupt):
            raise
        from dynsnap.cli import _signals

        _signals.leave(stop)


def __getattr__(name: str) -> object:
    if name == "cli":
        from dynsnap.cli._group import cli

        return cli
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
