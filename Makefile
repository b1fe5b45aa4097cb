# Needs only Python 3.11 or newer and make. `make app` starts the app, `make app FOLDER=~/photos` to browse a folder;
# `make test` runs the tests in minutes.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: app setup dev test test-slow test-all check benchmark wheel mutants lock docs

app: setup
	@echo "Starting the app. The first start takes about half a minute; later ones take seconds."
	$(BIN)/python -m udml_core app $(FOLDER)

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

# Builds the wheel, installs it into an empty environment outside the checkout, and runs `udml` and the app there.
wheel: dev
	tests/try_wheel.sh $(PYTHON)

# Writes the site of the documents, with the lessons and the library; a broken link is an error.
docs: dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	$(BIN)/python -m experiments.make_site
	$(BIN)/python -m mkdocs build --strict --quiet

# Pins every package that requirements.txt needs, for all systems and Python versions. PyTorch and CUDA are left out: their
# builds differ from machine to machine.
UNLOCKED := torch triton cuda-bindings cuda-pathfinder cuda-toolkit nvidia-cublas nvidia-cuda-cupti nvidia-cuda-nvrtc \
	nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-curand nvidia-cusolver nvidia-cusparse \
	nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx
lock: dev
	$(BIN)/python -m uv pip compile requirements.txt --output-file requirements.lock --universal --python-version 3.11 \
		--generate-hashes --no-annotate --no-header $(addprefix --no-emit-package ,$(UNLOCKED))

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is required; this is " + sys.version.split()[0] + ". Name another: make app PYTHON=python3.12")'
	$(PYTHON) -m venv .venv

# An interrupted setup, or a system without Debian's python3-venv, leaves a Python without pip.
# Packages with the hashes of requirements.lock first, so that what follows has only PyTorch to add: with or without CUDA,
# from an index or a folder of wheels, as pip is set up.
.venv/ready: requirements.txt requirements.lock | .venv/bin/python
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv .venv
	@echo "Installing PyTorch, Streamlit and about 100 packages that they need into .venv, once: 2 GB on disk, and several"
	@echo "more where PyTorch comes with CUDA. About 5 minutes on a fast connection; pip shows its progress below."
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -r requirements.txt
	@touch $@
	@echo "Installed. The next start takes seconds."

.venv/ready-dev: requirements-dev.txt .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
