#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries our programs at sockets beside those of Cilium and Calico at one cgroup (balancing §16.1): fetches their sources by the Go module
# proxy, compiles them (clang and the headers of libbpf are installed if they are missing), and runs the test that loads them.
#   hack/others/run.sh [CILIUM'S VERSION [CALICO'S]]
set -euo pipefail
cd "$(dirname "$0")/../.."

cilium=${1:-v1.17.6} calico=${2:-v1.11.0-cni-plugin.0.20250813170300-a0db560f0520}
command -v clang >/dev/null && [ -e /usr/include/bpf/bpf_helpers.h ] ||
	apt-get install -y -qq --no-install-recommends clang libbpf-dev libc6-dev >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && go mod init others >/dev/null 2>&1 && go mod download "github.com/cilium/cilium@$cilium" "github.com/projectcalico/calico@$calico")
compile() { # a source into an object, with flags
	local source=$1 object=$2
	shift 2
	clang -O2 -g --target=bpf -w "$@" -c "$source" -o "$work/$object"
}
modules=$(go env GOMODCACHE)

bpf=$modules/github.com/cilium/cilium@$cilium/bpf
features=(SKIP_DEBUG HAVE_SOCKET_COOKIE ENABLE_IPV4 ENABLE_IPV6 ENABLE_NODEPORT)
features+=(ENABLE_SOCKET_LB_FULL ENABLE_SOCKET_LB_TCP ENABLE_SOCKET_LB_UDP ENABLE_SOCKET_LB_PEER) # as in place of kube-proxy
compile "$bpf/bpf_sock.c" cilium.o -mcpu=v3 -std=gnu99 -nostdinc -I"$bpf" -I"$bpf/include" -D__NR_CPUS__="$(nproc --all)" "${features[@]/#/-D}"

bpf=$modules/github.com/projectcalico/calico@$calico/felix/bpf-gpl
compile "$bpf/connect_balancer.c" calico.o -fno-stack-protector -I"$bpf" -I/usr/include/bpf -I"/usr/include/$(uname -m)-linux-gnu" \
	-DCALI_LOG_LEVEL=CALI_LOG_LEVEL_OFF -DCALI_LOG_PFX=CTLB -DCALI_DROP_WORKLOAD_TO_HOST=false -DCALI_FIB_LOOKUP_ENABLED=false \
	-DCALI_COMPILE_FLAGS=8 -DBPF_CORE_SUPPORTED -D__BPFTOOL_LOADER__

CILIUM=$work/cilium.o CALICO=$work/calico.o go test -tags others -count=1 -v -run BesideOthers ./dataplane/sock/program
