"""`python -m udml_core`."""

from udml_core.cli import main

main()
