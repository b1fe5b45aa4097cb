"""A table of embeddings with a million rows, and its way through the app."""


def main() -> None:
    """Measure the record; see `__main__`."""
    from experiments.million.__main__ import main as run

    run()
