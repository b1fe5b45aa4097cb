"""Break the app on purpose: kills, power cuts, damaged files, storms and hostile input, with random seeds."""


def main() -> int:
    """Run the campaign; see `__main__`."""
    from experiments.hold_fast.__main__ import main as run

    return run()
