#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of packages that have goroutines under the race detector, and ends with what was skipped, by name and reason.
# With --list: prints these packages and runs nothing. Other arguments go to `go test`.
#
# A package has goroutines if one of its Go files, tests included, starts one, uses a channel, or imports what only goroutines
# need. Left out are e2e and deploy, whose tests start programs, in which the detector does not look; and the simulator's worlds,
# which have one thread each and are skipped in a short run anyway.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:/usr/sbin:/sbin"

concurrent='^[[:space:]]*go [[:alpha:]_(]|[^[:alnum:]]go func\(|[^[:alnum:]_]chan[^[:alnum:]_]|"sync("|/)|"golang.org/x/sync/|"testing/synctest"|"net/http/httptest"|\.Parallel\(\)'
tested=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./...)
packages=()
while read -r package dir; do
	case $package in
	*/e2e/* | */deploy | */sim | */sim/balancer | */sim/whatif | */sim/mutants) ;;
	*) if grep -qE "$concurrent" "$dir"/*.go; then packages+=("$package"); fi ;;
	esac
done <<<"$tested"
if [ "${1:-}" = --list ]; then
	printf '%s\n' "${packages[@]}"
	exit
fi

# Once on a machine, and before the tests: those that run in a network namespace could not fetch what it is built from.
go run ./e2e/kubetest/kubebin >/dev/null || echo "tests that need a Kubernetes API server will be skipped" >&2
report=$(mktemp -d)/testreport
trap 'rm -rf "$(dirname "$report")"' EXIT
go build -o "$report" ./hack/testreport
# go vet has looked at the tests in `make lint` and `make test`.
{ go test -json -race -short -vet=off -timeout 10m "$@" "${packages[@]}" || true; } | "$report"
