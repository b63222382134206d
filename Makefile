# The front door. Every target sets up what it needs; `make help` lists them.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Which suite `make demo` runs: a name from playbooks/suites.
SUITE ?= quick

# Which run `make judge` and `make report` read: a folder.
RUN ?= runs/latest

# Whose runs `make trend` draws: the folder that has their index.jsonl.
RUNS ?= runs

# The checkout's own Ansible, whatever the user's environment says.
# Ansible refuses to run in a locale that is not UTF-8, and ssh forwards ones that are not generated here.
export LC_ALL := C.UTF-8
ANSIBLE := ANSIBLE_CONFIG=$(CURDIR)/ansible.cfg .venv/bin/ansible-playbook

.PHONY: help
help: ## list the targets
	@awk -F ': .*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: ## install what is missing to measure and to build (packages, virtual environment)
	@setup/setup run build

.PHONY: engine
engine: setup ## build engine/build/perch
	@$(MAKE) -C engine

.PHONY: agent
agent: ## pack perch-agent as one file, dist/perch-agent (Python 3.9 and newer)
	@python3 setup/zipapp.py dist/perch-agent

.PHONY: demo
demo: engine ## measure this machine as two hosts, judge, and write a report (SUITE=quick PORT=18600)
	@before=$$(readlink runs/latest); status=0; \
	$(ANSIBLE) -i inventories/local playbooks/site.yml -e plan_suite=$(SUITE) $(if $(filter command%,$(origin PORT)),-e perch_port=$(PORT)) || status=$$?; \
	if [ "$$(readlink runs/latest)" != "$$before" ]; then .venv/bin/perchctl summary runs/latest; fi; \
	exit $$status

.PHONY: judge
judge: ## judge a run again from its folder; fails unless the verdict is PASS (RUN=runs/latest)
	@setup/setup run
	@.venv/bin/perchctl judge "$$RUN_FOLDER"

.PHONY: report
report: ## judge a run again and write its report, whatever the verdict (RUN=runs/latest)
	@setup/setup run
	@.venv/bin/perchctl report "$$RUN_FOLDER"

# RUN, A and B are folders, or names of folders in runs/; where they are handed over or accepted they have no default, for they
# are meant. Words of a person reach the shell as variables, never as a part of its command.
export LABEL FORCE KEY BUNDLE SIGNERS RUNS FABRIC
folder = $(firstword $(wildcard $($(1)) runs/$($(1))) $($(1)))
export RUN_FOLDER = $(call folder,RUN)
export A_FOLDER = $(call folder,A)
export B_FOLDER = $(call folder,B)
given = $(filter command% environment%,$(origin $(1)))
need = $(if $(and $($(1)),$(call given,$(1))),,$(error make $@ needs $(1)=, the folder of a run, such as $(1)=runs/latest))

.PHONY: accept
accept: ## make a run the baseline that later runs are compared with (RUN=, LABEL=, FORCE=reason)
	@:$(call need,RUN)
	@setup/setup run
	@.venv/bin/perchctl accept $${LABEL:+--label "$$LABEL"} $${FORCE:+--force "$$FORCE"} "$$RUN_FOLDER"

.PHONY: compare
compare: ## compare two runs, with confidence intervals (A=, B=)
	@:$(call need,A)$(call need,B)
	@setup/setup run
	@.venv/bin/perchctl compare "$$A_FOLDER" "$$B_FOLDER"

.PHONY: trend
trend: ## draw each test's median over the runs of a fabric into runs/trend.html (RUNS=runs, FABRIC=)
	@setup/setup run
	@.venv/bin/perchctl trend $${FABRIC:+--fabric "$$FABRIC"} "$$RUNS"

.PHONY: bundle
bundle: ## pack a run into one file, for others to verify (RUN=, KEY=ssh key)
	@:$(call need,RUN)
	@setup/setup run
	@.venv/bin/perchctl bundle $${KEY:+--key "$$KEY"} "$$RUN_FOLDER"

.PHONY: verify
verify: ## check that a bundle is whole and its raw outputs give its verdict (BUNDLE=, SIGNERS=)
	@: $(or $(BUNDLE),$(error make verify needs BUNDLE=, the file that make bundle made))
	@setup/setup verify
	@.venv/bin/perchctl verify $${SIGNERS:+--signers "$$SIGNERS"} "$$BUNDLE"

.PHONY: test
test: ## run tests and linters, twelve minutes; the last line counts them
	@setup/setup run build test lint
	@tests/run

.PHONY: test-long
test-long: ## run the tests of agents and soaks, six minutes
	@setup/setup run build test lint
	@tests/run long

.PHONY: test-slow
test-slow: ## run the tests of playbooks and backends, ten minutes
	@setup/setup run build test lint
	@tests/run slow

# The verdict's own test: the table of what it plants is docs/self-test.md.
.PHONY: self-test
self-test: ## plant faults in good runs and check that the verdict finds each; KEEP=DIR keeps the good runs
	@setup/setup run build test
	@tests/self-test/run $(if $(KEEP),--good '$(KEEP)')

.PHONY: soak-test
soak-test: ## plant faults in compressed soaks and check that each is found, 20 minutes (SESSIONS="faults clean"); needs root
	@setup/setup run build test
	@tests/soak/run $(SESSIONS)

.PHONY: lint
lint: ## run the linters
	@setup/setup run build lint
	@tests/lint

.PHONY: bench
bench: ## compare the engine's speed with its peers'
	@setup/setup run build bench
	@$(MAKE) -C engine
	@tests/bench/run

.PHONY: bench-verbs
bench-verbs: ## compare verbs with perftest's speed, on rxe where no RDMA device is (PAIRS=15)
	@setup/setup run build bench uml
	@$(MAKE) -C engine
	@tests/bench/verbs $(PAIRS)

.PHONY: bench-soak
bench-soak: ## measure what recording intervals of 1 s costs a soak (PAIRS=15)
	@setup/setup run build
	@$(MAKE) -C engine
	@tests/bench/soak $(PAIRS)

.PHONY: bench-agent
bench-agent: ## measure the cost of agents: for a flow, for 32 hosts, in memory
	@setup/setup run build
	@$(MAKE) -C engine
	@tests/bench/agent

.PHONY: bench-report
bench-report: ## time judging and rendering of 1,000 to 100,000 records (RECORDS=1000000)
	@setup/setup run
	@tests/bench/report $(RECORDS)

.PHONY: sim-cxi
sim-cxi: ## build the simulated cxi provider (tests/sim_cxi/build/libcxi-fi.so)
	@setup/setup run build
	@$(MAKE) -C tests/sim_cxi

# Packages first, then the machines; PERCH_LAB=NAME is another lab beside the default one.
.PHONY: lab
lab: ## start two virtual machines with RDMA between them, for inventories/lab
	@setup/setup run lab
	@tests/lab/lab up
	@tests/lab/lab status

.PHONY: lab-down
lab-down: ## end the virtual machines of make lab
	@tests/lab/lab down

.PHONY: lab-test
lab-test: ## run the tests that need virtual machines, on their own ones
	@setup/setup run build test lab
	@$(MAKE) -C engine >&2
	@tests/run lab

.PHONY: lab-test-full
lab-test-full: ## run those tests, the ones that boot machines many times, and all of verbs
	@setup/setup run build test lab uml
	@$(MAKE) -C engine >&2
	@tests/run verbs lab-full

.PHONY: examples
examples: ## write the example inventories' variables from the roles' defaults
	@setup/examples

.PHONY: version
version: ## write galaxy.yml's version from engine/src/version.h
	@sed -i "s/^version: .*/version: $$(sed -n 's/^#define PERCH_VERSION "\(.*\)"$$/\1/p' engine/src/version.h)/" galaxy.yml

.PHONY: release
release: ## write source archive, collection, SBOM and SHA256SUMS of the committed tree into dist/
	@setup/setup release
	@setup/release

.PHONY: clean
clean: ## remove what was built; runs are kept
	@$(MAKE) -C engine clean
	@rm -rf .ansible
