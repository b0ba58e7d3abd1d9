# Every recipe is a line that you could type yourself. `make help` lists them.
STACK ?= l4-qat
SERVER ?= sim
PROVIDER ?= stand-in
# The distribution's own Python where it suits: one that was built by hand, as pyenv does, is mostly not optimized with a
# profile, and every process of a run starts a fifth slower.
PYTHON ?= $(firstword $(shell for one in /usr/bin/python3 python3; do \
  $$one -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$one; done) python3)
LOCAL = .venv/bin/bezel local
HOW = --server $(SERVER) --provider $(PROVIDER) $(if $(MODEL),--model $(MODEL))

# Container images like to set it: each of the hundreds of processes of a test run would compile the SDKs anew.
unexport PYTHONDONTWRITEBYTECODE

# Beside what else is kept outside the clone: types of packages that have not changed are not worked out again.
export MYPY_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/bezel/mypy
# Nor is each module read again for its constants, which generated examples take up: a fresh clone's tests would for 10 s.
export HYPOTHESIS_STORAGE_DIRECTORY ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/bezel/hypothesis

.DEFAULT_GOAL := help
.PHONY: help setup up preview outputs down recover check test test-long lint types reports mutate kills contract

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

setup: ## uv, .venv, the Pulumi CLI, HAProxy and Chromium; nothing to do the second time
	@$(PYTHON) tools/toolchain

up: setup ## deploy STACK (l4-qat) on the embedded cloud, check it, measure it, price it
	@$(LOCAL) up $(STACK) $(HOW)

preview: setup ## what `make up` would change
	@$(LOCAL) preview $(STACK) $(HOW)

outputs: setup ## the stack's outputs as JSON
	@$(LOCAL) outputs $(STACK)

down: setup ## destroy STACK and stop the embedded cloud
	@$(LOCAL) down $(STACK) $(HOW)

recover: setup ## after a kill: unlock STACK and find out how its unfinished changes ended (`make up` does it too)
	@$(LOCAL) recover $(STACK)

check: setup lint types ## lint, types, import rules and the fast tests
	@.venv/bin/pytest -q -n 3 --dist worksteal -m "not slow"

lint: setup ## ruff, the import table, the workflow files
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@.venv/imports/bin/lint-imports
	@.venv/bin/shellcheck components/node/*.sh tests/support/components/*.sh
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	@.venv/bin/zizmor --offline --quiet .github/workflows

types: setup ## mypy, strict
	@.venv/bin/mypy
	@cd tools/toolchain && ../../.venv/bin/mypy --config-file ../../pyproject.toml --explicit-package-bases *.py
	@cd tools/pulumi/host && MYPYPATH=../../.. ../../../.venv/bin/mypy --config-file ../../../pyproject.toml --explicit-package-bases *.py

test: check ## what has to hold, with the real engine on the embedded cloud
	@.venv/bin/pytest -q -n 4 --dist worksteal --timeout 300 -m "slow and not long"

test-long: setup ## each further stack deployed, and lives of kills: what takes minutes by itself
	@.venv/bin/pytest -q -n 3 --dist worksteal --timeout 900 -m long

reports: setup ## docs/fidelity.md and docs/reliability.md, of the tables in tests/results
	@.venv/bin/python -m tools.docs.reports

mutate: setup ## take each rule out in turn and see which test notices; goes on where it stopped
	@.venv/bin/python -m tools.mutation.mutate --record

kills: setup ## kill each part of a run at boundaries of the wire; goes on where it stopped
	@.venv/bin/python -m tools.measure.kills

contract: setup ## run the tests of the vLLM contract against a real one in FOLDER (see tools/vllm/contract.py)
	@.venv/bin/python -m tools.vllm.contract $(FOLDER) --record
