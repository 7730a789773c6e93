# SPDX-License-Identifier: Apache-2.0
# Bare `make` prints this help. Every target does the set-up that it needs, and never asks.

SHELL      := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO     ?= go
BIN    := bin/fairlead
ARGS   ?=
SEEDS  ?= 1..50
FOR    ?= 10m
# Programs and tests are compiled alike, in whatever folder the checkout is: each package is compiled once for all of them.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath)
# Everything that decides also builds for the simulator's machine: several members run in one such process there.
WASI_PACKAGES := $(shell cat hack/wasi-packages.txt)

.PHONY: help setup build run test test-fast test-servers test-times test-wasi race lint vuln generate bench demo sim sim-ci explore attacks torture mutants kernel others image clean

help: ## print this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: ## install what building and testing need (Debian packages when root), else say what is missing
	@hack/setup.sh

build: ## build bin/fairlead and bin/fairlead-driver-haproxy
	@mkdir -p bin
	@$(GO) build -o $(dir $(BIN)) ./cmd/fairlead ./cmd/fairlead-driver-haproxy

run: ## three members, a switch and nodes on this machine, no root: make run ARGS="--once -o json"
	@hack/setup.sh --build-only 1>&2
	@echo "building $(BIN): some minutes the first time, then seconds" 1>&2
	@$(MAKE) --no-print-directory build 1>&2
	@exec $(BIN) dev $(ARGS)

test-fast: ## what needs no root, no servers and no simulated worlds: before each commit
	@hack/setup.sh --build-only 1>&2
	@$(GO) run ./hack/testrun -set fast $(ARGS)

test: ## everything that this machine allows; names what it skipped
	@hack/setup.sh 1>&2
	@$(MAKE) --no-print-directory test-wasi test-servers
	@PATH="$$PATH:/usr/sbin:/sbin" $(GO) run ./hack/testrun $(ARGS)

# Once on a machine, and before the tests: those that run in a network namespace could not fetch what it is built from.
test-servers: ## build the Kubernetes API server, etcd, GoBGP 3 and the older release that tests start, unless they are there
	@cd dataplane/bgp/gobgptest/v3 && for p in gobgpd gobgp; do $(GO) tool -n $$p >/dev/null; done
	@$(GO) run ./e2e/release/fetch || echo "tests of upgrades will fail or be skipped" >&2
	@$(GO) run ./e2e/kubetest/kubebin >/dev/null || echo "tests that need a Kubernetes API server will be skipped" >&2

test-wasi: ## build everything that decides for GOOS=wasip1
	@echo "building for wasip1: $(words $(WASI_PACKAGES)) packages"
	@GOOS=wasip1 GOARCH=wasm $(GO) build -trimpath $(WASI_PACKAGES)

test-times: ## what the tests' time goes into, as tables: the whole of `make test`, then the 40 dearest tests alone
	@command -v strace >/dev/null || apt-get -qq install -y strace 1>&2
	@mkdir -p bin && $(MAKE) --no-print-directory test ARGS="-fresh -events bin/tests.json" 1>&2
	@PATH="$$PATH:/usr/sbin:/sbin" $(GO) run ./hack/testtimes bin/tests.json

race: ## the tests of packages that have goroutines, under the race detector
	@hack/setup.sh 1>&2
	@$(MAKE) --no-print-directory test-servers
	@PATH="$$PATH:/usr/sbin:/sbin" $(GO) run ./hack/testrun -set race $(ARGS)

lint: ## gofmt, who may import whom, and golangci-lint, go vet in it; built from hack/lint
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt'ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@$(GO) test ./hack/layers
	@linter=$$(cd hack/lint && $(GO) tool -n golangci-lint) && "$$linter" run $(ARGS)

vuln: ## known vulnerabilities that our programs can reach; built from hack/vuln: make vuln ARGS=-newest
	@$(GO) run ./hack/vuln $(ARGS)

generate: ## remake generated files
	@hack/setup.sh 1>&2
	@$(GO) generate ./...

bench: ## benchmarks: make bench ARGS="--only NAME --json FILE"
	@hack/setup.sh 1>&2
	@$(MAKE) --no-print-directory build 1>&2
	@$(GO) run ./e2e/bench $(ARGS)

demo: ## requests all along while parts are killed, in network namespaces (root): make demo ARGS="--json FILE"
	@hack/setup.sh 1>&2
	@$(MAKE) --no-print-directory build 1>&2
	@$(GO) build -o bin/demo ./e2e/demo
	@exec bin/demo --fairlead $(BIN) $(ARGS)

sim: ## simulated worlds under faults, one a seed: make sim SEEDS=1..200
	@hack/setup.sh --build-only 1>&2
	@$(MAKE) --no-print-directory build 1>&2
	@exec $(BIN) sim run --seeds $(SEEDS) --save sim/testdata/regressions $(ARGS)

sim-ci: ## equal seeds are equal runs, and seeds 1..50 hold: make sim-ci ARGS="equal known"
	@$(MAKE) --no-print-directory build 1>&2
	@hack/sim.sh $(ARGS)

ATTACKS := ^(TestStrangersAtPortsHurtNobody|TestDriversThatMeanHarmHurtNobody|TestInsidersWhoFloodCostNothing|TestBytesOfANeighbourEnd.*|TestSpeakers?.*|TestWrongCertificatesAreRefused)$$

explore: ## look for what nobody knows yet: make explore FOR=10m
	@hack/explore.sh $(FOR)

attacks: ## strangers, insiders and neighbours who mean harm, at three real members: make attacks FOR=60s
	@hack/setup.sh 1>&2
	@FAIRLEAD_ATTACK_FOR=$(or $(FOR),60s) PATH="$$PATH:/usr/sbin:/sbin" $(GO) test -count=1 -timeout 30m -v -run '$(ATTACKS)' ./e2e/group

torture: ## real members, a switch and clients under faults that a seed draws: make torture FOR=30m SEED=7 ARGS="-torture.only kill"
	@hack/setup.sh 1>&2
	@PATH="$$PATH:/usr/sbin:/sbin" $(GO) test -count=1 -timeout 0 -v -run '^TestTorture$$' ./e2e/torture -torture.for=$(FOR) -torture.seed=$(or $(SEED),0) -torture.round=$(or $(ROUND),40s) $(ARGS)

mutants: ## are planted bugs caught by the simulator's rules: make mutants ARGS="--only NAME --json FILE --write"
	@hack/setup.sh --build-only 1>&2
	@$(GO) run ./sim/mutants/hunt $(ARGS)

kernel: ## tests of a package on another kernel, emulated: make kernel ARGS="arm64 6.1 ./dataplane/sock/program"
	@hack/kernels/run.sh $(ARGS)

others: ## our programs at sockets beside those of Cilium and Calico, compiled from their sources
	@hack/others/run.sh $(ARGS)

image: ## container image for amd64 and arm64 in bin/fairlead-image.tar, and in Docker where that runs
	@$(GO) run ./hack/image $(ARGS) --out bin/fairlead-image.tar
	@if docker info >/dev/null 2>&1; then docker load -i bin/fairlead-image.tar; \
	else echo "no Docker daemon: load the archive with ctr, podman or skopeo"; fi

clean: ## remove what was built
	@rm -rf bin
