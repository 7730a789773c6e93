#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests and ends with what was skipped, by name and reason.
set -euo pipefail

export PATH="$PATH:/usr/sbin:/sbin"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
go test -json -timeout 30m "$@" ./... >"$log" || status=$?
go run ./hack/testreport <"$log" || status=1
exit "$status"
