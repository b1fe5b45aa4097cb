"""Commands that measure the records in `assets/results`.

These are experiments, not tests: each runs for minutes to hours and asserts nothing. Run a command as a module from
the project's root; `--help` lists its options:

    python -m experiments.zero_shot birds100 --seeds 3 --row "RPML=rpml" --out assets/results/birds100-zero-shot.json

`campaign` measures the declared rows of many records within a budget of minutes, the most important first:

    python -m experiments.campaign --budget 60 --runs runs/campaign

`benchmark` measures every method with one encoder and one budget for each data set, which the page Benchmark ranks:

    python -m experiments.benchmark --budget 20 --dataset digits

Each other command writes one JSON file, named by `--out`, with the command itself, the versions, the protocol and every
seed's results. (`pair_charts` draws SVG files from such a record.) `assets/results/findings.toml` says what each
record shows, and the page Results displays both. `make benchmark` runs `tests/benchmarks`, which asserts ratios of
costs, partly with functions of this package.
"""
