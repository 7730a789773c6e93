#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of a package on another kernel and processor: hack/kernels/run.sh ARCH KERNEL PACKAGE [TEST FLAGS]
#   hack/kernels/run.sh arm64 6.1 ./dataplane/sock/program -test.run Balancing
# ARCH is amd64 or arm64, KERNEL a series that Debian has packages of: 5.10, 6.1, 6.12. The machine is emulated (QEMU), has no network and no disk, and
# ends with its tests. Debian's packages are fetched once, into the cache folder; they are not installed, but for QEMU and cpio.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# -ge 3 ] || { sed -n '3,6s/^# //p' "$0" >&2; exit 2; }
arch=$1 series=$2 package=$3
shift 3
case $arch in
amd64) qemu=(qemu-system-x86_64 -machine q35 -cpu max) console=ttyS0 needs=qemu-system-x86 ;;
arm64) qemu=(qemu-system-aarch64 -machine virt -cpu max,pauth-impdef=on) console=ttyAMA0 needs=qemu-system-arm ;;
*) echo "kernels: no architecture $arch; there are amd64 and arm64" >&2; exit 2 ;;
esac
export PATH="$PATH:/usr/sbin:/sbin"
for tool in "${qemu[0]}" cpio depmod; do
	command -v "$tool" >/dev/null || { apt-get install -y -qq --no-install-recommends "$needs" cpio kmod >&2; break; }
done

cache=${XDG_CACHE_HOME:-$HOME/.cache}/fairlead/kernels/$arch
mkdir -p "$cache/lists/partial" "$cache/archives/partial"
apt() { # of that architecture, beside what this machine knows of its own
	local tool=$1
	shift
	"apt-$tool" -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o Dir::State::lists="$cache/lists" -o Dir::Cache="$cache" \
		-o Dir::State::status=/dev/null -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$cache/sources.list" -o Dir::Etc::SourceParts=/dev/null "$@"
}
update() { # learn what Debian has of it, in three releases, from where this machine has its own packages
	local from
	from=$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/$' | sort -u | head -1)
	printf "deb ${from:?apt knows no archive of Debian} %s main\n" bullseye bookworm trixie >"$cache/sources.list"
	apt get update >&2
}
fetch() { # a package, unpacked in a folder of its name, which it prints
	if [ ! -d "$cache/$1" ]; then
		(cd "$cache" && apt get download "$1" >&2 && dpkg-deb -x "$1"_*.deb "$1.part" && rm "$1"_*.deb && mv "$1.part" "$1")
	fi
	echo "$cache/$1"
}
[ -e "$cache/sources.list" ] || update
newest=$(find "$cache" -maxdepth 1 -name "linux-image-$series.*-cloud-$arch" | sort -V | tail -1)
if [ -z "$newest" ]; then
	update
	newest=$(apt cache search --names-only "^linux-image-$series\.[^ ]*-cloud-$arch\$" | cut -d' ' -f1 | sort -V | tail -1)
	[ -n "$newest" ] || { echo "kernels: Debian has no kernel $series for $arch" >&2; exit 1; }
fi
kernel=$(fetch "$(basename "$newest")")
[ -d "$kernel/lib" ] || ln -s usr/lib "$kernel/lib"
tools=$cache/tools # that tests call, and what they are linked with
if [ ! -d "$tools" ]; then
	apt get install -t bookworm -y --no-install-recommends --download-only iproute2 nftables coreutils netbase dash grep sed procps >&2
	for package_file in "$cache"/archives/*.deb; do dpkg-deb -x "$package_file" "$tools.part"; done
	rm -rf "$tools.part"/usr/share "$tools.part"/var "$tools.part"/usr/lib/*/perl* "$cache"/archives/*.deb
	ln -sf dash "$tools.part/bin/sh"
	mv "$tools.part" "$tools"
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,modules,src}
version=$(ls "$kernel/lib/modules")
[ -e "$kernel/lib/modules/$version/modules.dep" ] || depmod -b "$kernel" "$version"
nft=$(find "$kernel/lib/modules" -name 'nft_*.ko*' -printf '%f\n' | cut -d. -f1 | sort)
# In the order of what they need of each other. The machine has nobody who would load one that is asked for.
for module in veth vxlan bridge tun tcp_diag udp_diag nf_tables $nft nf_conntrack_netlink cls_bpf sch_ingress af_packet; do
	modprobe -d "$kernel" -S "$version" --show-depends "$module" 2>/dev/null || true # not every kernel has each
done |
	sed -n 's/^insmod \([^ ]*\) *$/\1/p' | awk '!seen[$0]++' | nl -w4 -nrz -s' ' | while read -r number file; do
	case $file in
	*.xz) xz -dc "$file" >"$root/modules/$number.ko" ;;
	*) cp "$file" "$root/modules/$number.ko" ;;
	esac
done
cp -r "$tools/." "$root/"
export GOOS=linux GOARCH=$arch CGO_ENABLED=0
go build -trimpath -o "$root/init" ./hack/kernels/init
go test -c -o "$root/test" "$package"
cp -r "$package/." "$root/src/"
echo "-test.v -test.timeout=30m $*" >"$root/arguments"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$root.cpio"
trap 'rm -rf "$root" "$root.cpio"' EXIT

log=$(mktemp)
"${qemu[@]}" -smp 2 -m 2G -nographic -no-reboot -nic none -kernel "$kernel"/boot/vmlinuz-* -initrd "$root.cpio" \
	-append "console=$console quiet panic=-1" </dev/null | tee "$log"
code=$(tr -d "\r" <"$log" | sed -n "s/^init: tests ended with \([0-9]*\)$/\1/p")
rm -f "$log"
[ -n "$code" ] || { echo "kernels: the machine ended before its tests did" >&2; exit 1; }
exit "$code"
