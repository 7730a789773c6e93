#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building and testing need. Safe to repeat; never asks. With --build-only: only what `make run` needs.
set -euo pipefail

go_wanted=1.26
build_only=${1:-}

say() { echo "setup: $*" >&2; }

if ! command -v go >/dev/null; then
	say "Go is missing: install Go $go_wanted or newer and put it on PATH"
	exit 1
fi
have=$(go env GOVERSION | sed 's/^go//')
if [ "$(printf '%s\n%s\n' "$go_wanted" "$have" | sort -V | head -1)" != "$go_wanted" ]; then
	say "Go $have is too old: install Go $go_wanted or newer"
	exit 1
fi
[ "$build_only" = --build-only ] && exit 0

# tool -> Debian package
declare -A package=([chromium-headless-shell]=chromium-headless-shell [dig]=dnsutils [bird]=bird2 [birdc]=bird2 [haproxy]=haproxy [vtysh]=frr [ip]=iproute2 [nft]=nftables [tcpdump]=tcpdump [protoc]=protobuf-compiler)
export PATH="$PATH:/usr/sbin:/sbin"
missing=()
for tool in "${!package[@]}"; do
	command -v "$tool" >/dev/null || missing+=("${package[$tool]}")
done
[ "${#missing[@]}" -eq 0 ] && exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	say "tests that need these will be skipped: ${missing[*]}"
	say "to run them too: apt-get install ${missing[*]}   (as root, on Debian)"
	exit 0
fi
say "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# Installing a daemon starts it; ours are started by the tests alone.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
	trap 'rm -f "$policy"' EXIT
fi
if ! { apt-get -qq update && apt-get -qq install -y --no-install-recommends "${missing[@]}"; } >&2; then
	say "not installed: ${missing[*]}; tests that need them will be skipped"
fi
