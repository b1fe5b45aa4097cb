"""`udml`, `python -m udml_core` and `udml-explorer`."""

import sys
from typing import NoReturn

from udml_core.base.malloc import keep_freed_memory
from udml_core.base.started import announce


def main() -> NoReturn:
    """Run the command line with memory settings for training."""
    if sys.argv[1:2] == ["app"]:
        announce(sys.argv[2:])
    keep_freed_memory()
    from udml_core.cli.commands import main as run_command_line

    run_command_line()


def explore() -> NoReturn:
    """Start the app: `udml-explorer FOLDER` is `udml app FOLDER`."""
    announce(sys.argv[1:])
    from udml_core.cli.commands import main as run_command_line
    from udml_core.cli.opening import explorer

    run_command_line(explorer)


if __name__ == "__main__":
    main()
