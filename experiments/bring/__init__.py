"""What the app does with the data that users bring: layouts, odd folders and archives, many images, many vectors."""


def main() -> None:
    """Measure the record; see `__main__`."""
    from experiments.bring.__main__ import main as run

    run()
