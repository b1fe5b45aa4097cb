"""`udml` and `python -m udml_core`."""

from typing import NoReturn

from udml_core.base.malloc import keep_freed_memory


def main() -> NoReturn:
    """Run the command line with memory settings for training."""
    keep_freed_memory()
    from udml_core.cli.commands import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
