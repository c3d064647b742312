# Everything a newcomer runs. Each target does its own set-up: Python 3.11+ (with venv), make and git are enough.
#
#   make demo     the main job on a small scale: all protocols on one network, a page that plays a run, and the answer
#   make test     all checks, and all tests but the slow ones
#   make test-slow   those in real time or with a cluster of their own
#   make install  the set-up alone          make check   format, lint, types, layers
#   make map      all protocols on the same networks, an hour of CPU
#   make bench    the benchmarks            make fuzz    every property with all its examples, a million inputs a reader
#   make docs     the documentation as a site, in out/site/html
#   make wheel    what `pip install` takes, in dist: a wheel and an sdist
#   make lock     new exact versions        make clean   what the above made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled

# Some machines tell Python to write no bytecode. Each of the hundreds of processes that the tests start would then
# compile all it imports, and pytest rewrite all tests in every worker.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow install check collect bench fuzz docs map wheel lock clean

demo: install
	$(BIN)/roamcast run examples/demo.toml --set duration=70 --replay --quiet --force --out out/demo-replay
	$(BIN)/roamcast campaign examples/campaigns/demo.toml --out out/demo

# The checks beside the compilation, which every worker of the tests would otherwise do for itself. A file's tests run in
# one worker (loadfile): what they share, such as a measured campaign or a browser, is made once; so is Spark's session
# (tests/scheduling.py). Three workers on two cores: those of Spark and of the lab wait a lot. Some tests use real sockets
# and processes: a machine that stands still for a second fails them, so what fails is run once more, with nothing beside it.
AGAIN := --last-failed --last-failed-no-failures none
test: $(READY)
	$(MAKE) --no-print-directory -j3 check $(COMPILED) collect
	$(BIN)/pytest -n 3 --dist loadfile --durations=15 -m "not slow" || $(BIN)/pytest -m "not slow" $(AGAIN)

# One after another: real nodes in real time, and clusters whose workers are killed.
test-slow: install
	$(BIN)/pytest --durations=15 -m slow || $(BIN)/pytest -m slow $(AGAIN)

# It looks at all tests, so that their bytecode is there for the workers.
collect: $(READY)
	$(BIN)/pytest -q -p no:cacheprovider --collect-only > /dev/null

install: $(READY) $(COMPILED)

# What runs and measures need, for this machine: it would be missing in the middle of the first campaign.
$(COMPILED): $(READY) src/roamcast/sim/core/kernel.py src/roamcast/analysis/kernels.py
	@$(BIN)/python -m roamcast compile > /dev/null
	@touch $@

# uv when it is there, since it is ten times faster; pip otherwise. Both install exactly what the lock says, which is
# complete, so nothing is left to resolve. Bytecode is made afterwards, on all cores, of what is likely to be imported.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "roamcast needs Python 3.11 or later; name one with: make PYTHON=python3.12 ...")'
	@if command -v uv >/dev/null; then \
	  echo "setting up $(VENV) with uv"; \
	  { [ -x $(BIN)/python ] || uv venv -q --python "$(PYTHON)" $(VENV); } && \
	  uv pip install -q --python $(BIN)/python --require-hashes -r requirements.lock && \
	  uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .; \
	else \
	  echo "setting up $(VENV) with pip"; \
	  { [ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV); } && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-compile --require-hashes -r requirements.lock && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	fi
	@$(BIN)/python -m compileall -qq -j 0 -x '/(tests|moto|mypy|pip|setuptools|virtualenv|fontTools)/' $(VENV)/lib src || true
	@touch $@

check: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: install
	$(BIN)/python -m bench

map: install
	$(BIN)/python -m studies.map

fuzz: install
	ROAMCAST_EXAMPLES=all $(BIN)/pytest -n 2 --dist loadfile -m hypothesis
	$(BIN)/python -m bench.fuzz

# The version stands in pyproject.toml and nowhere else; CHANGELOG.md says what is new in it.
wheel: install
	rm -rf dist
	$(BIN)/hatchling build -t wheel -t sdist -d dist

# Sphinx is no part of the set-up: this target brings it.
docs: install
	@if command -v uv >/dev/null; then \
	  uv pip install -q --python $(BIN)/python --require-hashes -r requirements-docs.lock; \
	else \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-docs.lock; \
	fi
	$(BIN)/python docs/site/build.py out/site

# The universal lock needs uv; it is a tool for maintainers, not for users.
lock:
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url -q -o requirements.lock --upgrade
	uv pip compile --group docs --constraint requirements.lock --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url -q -o requirements-docs.lock --upgrade

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
