# The two commands: `make demo` shows the main job, `make test` runs every check.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: demo test quick soak mutate bench compare clean

demo: $(READY)
	@$(BIN)/python demo/run.py

test: $(READY)
	@begun=$$(date +%s); $(BIN)/nox --no-venv; code=$$?; \
		echo "make test: exit code $$code after $$(($$(date +%s) - begun)) s"; exit $$code

quick: $(READY)
	@$(BIN)/nox --no-venv -s quick

# Minutes: `make soak SOAK_MINUTES=5`; again what failed: `make soak SOAK_SEED=17`
soak: $(READY)
	@$(BIN)/nox --no-venv -s soak

mutate: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group mutate
	@$(BIN)/nox --no-venv -s mutate

bench: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	@$(BIN)/nox --no-venv -s bench

compare: $(READY)
	@$(BIN)/nox --no-venv -s compare -- $(ARGS)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; say which with make PYTHON=python3.12"; exit 1; }
	@command -v git >/dev/null || { echo "git is needed"; exit 1; }
	@echo "Setting up .venv, which is done once and takes a minute or two"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $(READY)

clean:
	rm -rf build .demo .pytest_cache .ruff_cache .hypothesis .coverage*
