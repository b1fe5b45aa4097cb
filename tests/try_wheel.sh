#!/usr/bin/env bash
# Build the wheel, install it into an empty environment, and use it from a folder that is not the checkout: the commands,
# and the app in a real browser.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
# A process that still ends may write there.
trap 'rm -rf "$work" 2>/dev/null || { sleep 5; rm -rf "$work"; }' EXIT
git archive HEAD | tar -x -C "$work" --one-top-level=source

began=$SECONDS
"${1:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check wheel
"$work/venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work" "$work/source"
wheel=$(ls "$work"/*.whl)
size=$(stat -c %s "$wheel")
echo "$(basename "$wheel"): $size bytes"
[ "$size" -lt 35000000 ] || { echo "The wheel must be smaller than 35 MB, of which the examples take 24."; exit 1; }
# The tested versions; CONSTRAINTS=/dev/null takes the newest.
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel" -c "${CONSTRAINTS:-requirements.txt}"
installed=$((SECONDS - began))

checkout=$PWD
cd "$work"
export UDML_CACHE="$work/cache" UDML_RUNS="$work/runs" UDML_MAPS=0 PATH="$work/venv/bin:$PATH"
udml methods > methods.txt
grep -q "^rpml: " methods.txt
udml datasets > datasets.txt
grep -q "^fashion-mini " datasets.txt
udml train --dataset digits --backbone pixels --method pca --set dimension=16 --json > run.json
python -c 'import json; run = json.load(open("run.json")); assert run["state"] == "done", run'
python -m udml_core runs
udml lessons course > files.txt
grep -q "course/index.html" files.txt

mkdir home
PYTHONPATH="$checkout" "$checkout/.venv/bin/python" -m tests.try_app "$work/venv/bin/udml-explorer" "$work/home"
echo "The empty environment was installed in $installed s."
