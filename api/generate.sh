#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the Go of the API definitions. Needs protoc (Debian: protobuf-compiler); the plugins come from go.mod.
set -eu
cd "$(dirname "$0")"
if ! command -v protoc >/dev/null; then
	echo "generate the API: protoc is missing: install protobuf-compiler" >&2
	exit 1
fi
plugin() { go tool -n "$1"; }
protoc -I . \
	--plugin=protoc-gen-go="$(plugin protoc-gen-go)" --go_out=. --go_opt=paths=source_relative \
	--plugin=protoc-gen-connect-go="$(plugin protoc-gen-connect-go)" --connect-go_out=. \
	--connect-go_opt=paths=source_relative,simple \
	fairlead/v1/*.proto
gofmt -l -w fairlead
