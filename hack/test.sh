#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests and ends with what was skipped, by name and reason. Tests that run whole groups of processes come
# last and one package at a time: they hold the group to times, which it cannot keep beside a compiler.
set -euo pipefail

export PATH="$PATH:/usr/sbin:/sbin"
# Once on a machine, and before the tests: those that run in a network namespace could not fetch what it is built from.
go run ./e2e/kubetest/kubebin >/dev/null || echo "tests that need a Kubernetes API server will be skipped" >&2
mapfile -t all < <(go list ./...)
units=() groups=()
for p in "${all[@]}"; do
	case $p in
	*/e2e/* | */sim | */sim/balancer | */sim/whatif | */sim/mutants) groups+=("$p") ;;
	*) units+=("$p") ;;
	esac
done
report=$(mktemp -d)/testreport
trap 'rm -rf "$(dirname "$report")"' EXIT
go build -o "$report" ./hack/testreport
{
	go test -json -timeout 20m "$@" "${units[@]}" || true
	go test -json -timeout 30m -p 1 "$@" "${groups[@]}" || true
} | "$report"
