# Needs only Python 3.11 or newer and make. `make app` starts the app, `make test` runs the tests in minutes.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: app setup dev test test-slow test-all check benchmark wheel mutants

app: setup
	@echo "Starting the app. The first start takes about half a minute; later ones take seconds."
	$(BIN)/streamlit run serve.py

setup: .venv/ready

dev: .venv/ready-dev

# Four processes with one thread each: some wait for browsers and other processes while two compute. A process that has
# finished takes tests from another; tests/conftest.py says which tests start first. Bytecode is kept, because compiling
# the tests takes a process eight seconds.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive NUMBA_NUM_THREADS=1 \
	$(BIN)/python -m pytest -n 4 --dist worksteal

# Covers every page, every method and a kill; tests/project/test_tiers.py says how.
test: dev
	$(PYTEST) -m "not slow"

test-slow: dev
	$(PYTEST) -m slow

test-all: dev
	$(PYTEST)

check: dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

benchmark: dev
	UDML_BENCHMARK=1 $(BIN)/python -m pytest tests/benchmarks -s

# Breaks the source one line at a time and reports the mutants that no test notices.
mutants: dev
	$(BIN)/python -m tests.mutants

# Builds the library's wheel, installs it into an empty environment outside the checkout, and runs `udml` there.
wheel:
	tests/try_wheel.sh $(PYTHON)

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is required; this is " + sys.version.split()[0] + ". Name another: make app PYTHON=python3.12")'
	$(PYTHON) -m venv .venv

# An interrupted setup, or a system without Debian's python3-venv, leaves a Python without pip.
.venv/ready: requirements.txt requirements-library.txt | .venv/bin/python
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv .venv
	@echo "Installing PyTorch, Streamlit and about 100 packages that they need into .venv, once: 2 GB on disk, and several"
	@echo "more where PyTorch comes with CUDA. About 5 minutes on a fast connection; pip shows its progress below."
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -r requirements.txt
	@touch $@
	@echo "Installed. The next start takes seconds."

.venv/ready-dev: requirements-dev.txt requirements-engines.txt requirements.txt requirements-library.txt .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
