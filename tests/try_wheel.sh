#!/usr/bin/env bash
# Build the library's wheel, install it into an empty environment, and use it from a folder that is not the checkout.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
# A process that still ends may write there.
trap 'rm -rf "$work" 2>/dev/null || { sleep 5; rm -rf "$work"; }' EXIT
git archive HEAD | tar -x -C "$work" --one-top-level=source

"${1:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check wheel
"$work/venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work" "$work/source"
wheel=$(ls "$work"/*.whl)
size=$(stat -c %s "$wheel")
echo "$(basename "$wheel"): $size bytes"
[ "$size" -lt 15000000 ] || { echo "The wheel must be smaller than 15 MB."; exit 1; }
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"

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
