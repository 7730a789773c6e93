#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles sock.c for all platforms and notes which source that was. Needs clang, llvm-strip, and the headers of libbpf.
set -euo pipefail
cd "$(dirname "$0")"

for tool in clang llvm-strip; do
	command -v "$tool" >/dev/null || { echo "$tool is missing: apt-get install clang llvm libbpf-dev   (on Debian)" >&2; exit 1; }
done

include=$(clang -print-multiarch 2>/dev/null || dpkg-architecture -qDEB_HOST_MULTIARCH)
go tool bpf2go -go-package program -tags linux -target amd64,arm64 -cc clang \
	-type choice -type event sock sock.c -- -O2 -g -Wall -Werror "-I/usr/include/$include"
sha256sum sock.c | cut -d' ' -f1 >sock.sum
