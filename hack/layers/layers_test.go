// SPDX-License-Identifier: Apache-2.0

// Package layers_test holds the tree to the rule of who may import whom (ARCHITECTURE.md).
package layers_test

import (
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "fairlead.io/fairlead/"

// mayImport lists, for each room, the other rooms, or parts of them, that it may import. Kubernetes, GoBGP, netlink and others stop at the rooms
// below.
var (
	mayImport = map[string][]string{
		"fsm":       {},
		"api":       {"fsm"},
		"cluster":   {"fsm", "api", "internal/connlimit", "internal/filelock", "internal/framelimit", "internal/freeport", "internal/mapped", "internal/private", "internal/safeyaml", "internal/smallfile", "internal/spelling", "internal/testkit"}, // freeport, private and testkit for its tests
		"dataplane": {"fsm", "api", "internal"},
		"k8s":       {"fsm", "internal/safeyaml", "internal/spelling"},
		"internal":  {},
		"sim":       {"fsm", "api", "cluster", "dataplane", "k8s", "internal"},
		"cmd":       {"fsm", "api", "cluster", "dataplane", "deploy", "k8s", "internal", "sim"},
	}
	stopsAt = map[string][]string{
		"k8s.io/":                     {"k8s", "e2e", "sim/kube", "sim/stage", "sim/workload", "sim/whatif", "cmd/internal/simguest"},
		"k8s.io/client-go/kubernetes": {"e2e", "sim/kube"}, // knows every group there is: most of a binary
		"k8s.io/client-go/apply":      {"e2e", "sim/kube"},
		"github.com/osrg/gobgp":       {"dataplane/bgp/gobgp", "dataplane/bgp/testswitch", "e2e/bench"},
		"github.com/hashicorp/":       {"cluster", "sim/guest/journal", "cmd/internal/simguest"},
		"go.etcd.io/bbolt":            {"cluster/store/disk"},
		"github.com/spf13/cobra":      {"cmd"},
		"github.com/tidwall/":         {"fsm", "dataplane/bgp"}, // trees of which the next state shares what did not change
		"github.com/vishvananda/":     {"dataplane/steer", "dataplane/nat", "dataplane/l2", "dataplane/flows", "dataplane/tunnel", "internal/nftally"},
		"github.com/google/nft":       {"dataplane/steer", "dataplane/nat", "dataplane/tunnel"},
		"github.com/mdlayher/":        {"dataplane/steer", "dataplane/nat", "dataplane/l2", "internal/nftally"},
		"github.com/cilium/ebpf":      {"dataplane/sock/program"},
		"github.com/pelletier/go":     {"dataplane/bgp/legacy"},
		"github.com/tetratelabs/":     {"sim/vm"},
		"github.com/anishathalye/":    {"sim/check"},
		// For tests, and for what only tests import.
		module + "internal/testkit": {"dataplane/bgp/birdtest", "dataplane/bgp/frrtest", "dataplane/bgp/gobgptest", "dataplane/bgp/hostile", "internal/mounttest", "internal/netnstest", "internal/socktest", "e2e"},
	}
)

func TestRoomsImportOnlyWhatTheyMay(t *testing.T) {
	lookAtRooms(t)
	seen := 0
	for _, line := range append(imports(t), imports(t, "GOOS=wasip1", "GOARCH=wasm")...) {
		fields := strings.Fields(line)
		from := strings.TrimPrefix(fields[0], module)
		room, _, _ := strings.Cut(from, "/")
		allowed, ruled := mayImport[room]
		for _, imported := range fields[1:] {
			if to, ours := strings.CutPrefix(imported, module); ours && ruled {
				seen++
				if !within(to, room) && !within(to, allowed...) {
					t.Errorf("%s imports %s; %s may import %v", from, to, room, allowed)
				}
			}
			for prefix, rooms := range stopsAt {
				if strings.HasPrefix(imported, prefix) && !within(from, rooms...) {
					t.Errorf("%s imports %s, which stops at %v", from, imported, rooms)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d imports were looked at", seen)
	}
}

// within tells whether a package is in one of some folders.
func within(pkg string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return pkg == f || strings.HasPrefix(pkg, f+"/") })
}

// imports lists what packages import on a platform, a line each.
func imports(t *testing.T, platform ...string) []string {
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...")
	list.Env = append(list.Environ(), platform...)
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// lookAtRooms opens the folders of all rooms: go test repeats an old result until something changes that the test itself
// opened, and what go list opens does not count.
func lookAtRooms(t *testing.T) {
	for _, room := range append(slices.Collect(maps.Keys(mayImport)), "e2e") {
		err := filepath.WalkDir(filepath.Join("..", "..", room), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			t.Fatal(err)
		}
	}
}
