# Each recipe is a command that you can also type yourself. `make help` lists them.
# As a variable of the environment: a recipe's shell reads no name as code.
export STACK ?= l4-qat
export VLLM ?= real-vllm
export PROJECT
SERVER ?= sim
PROVIDER ?= stand-in
# Prefer the distribution's Python: one built from source, as pyenv does, usually lacks profile-guided optimization, and
# each process of a run starts a fifth slower.
PYTHON ?= $(firstword $(shell for python in /usr/bin/python3 python3; do \
  $$python -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python; done) python3)
LOCAL = .venv/bin/bezel local
OPTIONS = --server $(SERVER) --provider $(PROVIDER) $(if $(MODEL),--model $(MODEL))

# Many container images set it; each of the hundreds of processes of a test run would then compile the SDKs again.
unexport PYTHONDONTWRITEBYTECODE

# Outside the clone, so that a second clone reuses the type check of unchanged packages.
export MYPY_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/bezel/mypy
# Outside the clone as well: collecting the constants of all modules takes a fresh clone's tests 10 s.
export HYPOTHESIS_STORAGE_DIRECTORY ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/bezel/hypothesis

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev up preview outputs down recover check fast test rules test-wide test-long clients contract lint types reports site forge forge-down gitops truth compiled

help: ## list the recipes
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

setup: ## install what `make up` needs: uv, .venv, the Pulumi CLI, once
	@$(PYTHON) tools/toolchain

setup-dev: ## install what lint and tests need too: HAProxy, Chromium
	@$(PYTHON) tools/toolchain dev

up: setup ## deploy STACK (l4-qat) on the embedded cloud, check, price it
	@$(LOCAL) up "$$STACK" $(OPTIONS)

preview: setup ## show the changes that `make up` would make
	@$(LOCAL) preview "$$STACK" $(OPTIONS)

outputs: setup ## print the stack's outputs as JSON
	@$(LOCAL) outputs "$$STACK"

down: setup ## destroy STACK; the last one ends the embedded cloud
	@$(LOCAL) down "$$STACK" $(OPTIONS)

recover: setup ## after a kill: unlock STACK and reconcile unfinished changes
	@$(LOCAL) recover "$$STACK"

check: ## run lint, type checks, import rules and the fast tests
	@$(MAKE) --no-print-directory -j3 fast lint types

# One process collects the tests, for seconds, in which lint and types use the other core.
fast: setup-dev
	@.venv/bin/pytest -q -n 2 --dist worksteal -m "not slow"

lint: setup-dev ## check formatting, imports between packages and workflow files
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@PYTHONPATH=$$(echo packages/* bootstrap components plugin policies services smoke stacks | tr " " :):. .venv/imports/bin/lint-imports
	@.venv/bin/shellcheck components/bezel_components/node/*.sh tests/support/components/*.sh
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	@.venv/bin/zizmor --offline --quiet .github/workflows
	@.venv/bin/python tools/toolchain/go_programs.py actionlint -- -ignore 'unexpected key "queue"' -shellcheck .venv/bin/shellcheck -pyflakes=

types: setup-dev ## check types (mypy, strict)
	@.venv/bin/mypy
	@cd tools/toolchain && ../../.venv/bin/mypy --config-file ../../pyproject.toml --explicit-package-bases *.py

test: ## run lint, types and the tests of every rule, on the engine
	@$(MAKE) --no-print-directory -j3 rules lint types

rules: setup-dev
	@.venv/bin/pytest -q -n 6 --dist worksteal --timeout 300 -m "not wide and not long"

test-wide: setup-dev ## run further cases of what `make test` tries: variants
	@.venv/bin/pytest -q -n 6 --dist worksteal --timeout 300 -m "wide and not long"

test-long: setup-dev ## run tests that take minutes each: more stacks, many kills
	@.venv/bin/pytest -q -n 3 --dist worksteal --timeout 900 -m "long and not clients and not gitops"

clients: setup-dev ## run Google's, OpenAI's and other clients on the embedded cloud
	@.venv/bin/pytest -q -n 2 --dist loadfile --timeout 900 -m clients tests/clients

compiled: setup-dev
	@folder=$$(.venv/bin/python tools/toolchain/compiled_engine.py) && export PYTHONPATH="$$folder" && \
	  .venv/bin/python -c 'import bezel_bench, sys; sys.exit(bezel_bench.ENGINE != "compiled")' && \
	  .venv/bin/pytest -q -n 2 --dist worksteal --timeout 300 -m "not long and not clients" packages/bench/tests/client packages/bench/tests/test_[cs]*.py tests/bench/test_compiled_engine.py

contract: setup-dev ## compare the simulated vLLM with a real one in VLLM (a folder)
	@nice .venv/bin/python -m tools.vllm.contract "$$VLLM"

reports: setup-dev ## regenerate docs/fidelity.md and reliability.md from results
	@.venv/bin/python -m tools.docs.reports

site: setup-dev ## build the documents as a site into site/, every link checked
	@$(PYTHON) tools/toolchain site
	@.venv/bin/python -m tools.site

forge: setup-dev ## start a forge with a pull request; `make forge-down` ends it
	@.venv/bin/python -m tools.forge up $(if $(PROJECT),"$$PROJECT")

forge-down: setup-dev
	@.venv/bin/python -m tools.forge down

gitops: setup-dev ## run the workflow files on a forge and a runner (needs Go)
	@.venv/bin/pytest -v --timeout 600 -m gitops tests/gitops

truth: setup-dev
	@.venv/bin/python -m tools.bench.truth
