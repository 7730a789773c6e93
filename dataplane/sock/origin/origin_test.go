// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/sock"
)

var container = strings.Repeat("4f", 32)

const uid = "1c6f0000-aaaa-bbbb-cccc-dddddddddddd"

// Balancing §19: whatever the cgroup driver, the runtime and the class of the pod are.
// Rule: balancing §19.
func TestCgroupsNameTheirPod(t *testing.T) {
	under := strings.ReplaceAll(uid, "-", "_")
	pod := sock.Origin{PodUID: uid}
	both := sock.Origin{PodUID: uid, Container: container}
	for path, want := range map[string]sock.Origin{
		"/":                         {},
		"/system.slice/ssh.service": {},
		"/kubepods.slice":           {},
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under + ".slice":                         pod,
		"/kubepods.slice/kubepods-pod" + under + ".slice/cri-containerd-" + container + ".scope":                     both,
		"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + under + ".slice/crio-" + container + ".scope": both,
		"/kubepods/besteffort/pod" + uid + "/" + container:                                                           both,
		"/kubepods/pod" + uid + "/" + container + "/init.scope":                                                      both, // as systemd in a container makes
		"/kubepods/burstable/pod" + strings.Repeat("0a", 16) + "/" + container:                                       {PodUID: strings.Repeat("0a", 16), Container: container},
		"/system.slice/docker-" + container + ".scope":                                                               {Container: container},
		"/docker/" + container:                                 {Container: container},
		"/user.slice/podlike/pod-of-peas":                      {},
		"/kubepods/pod" + uid + "0/" + "abc":                   {},
		"/docker/" + container + "/kubelet/kubepods/pod" + uid: pod, // a node in a container
	} {
		if got := parse(path); got != want {
			t.Errorf("%s is of %+v, want %+v", path, got, want)
		}
	}
}

// Balancing §19: cgroups are known by their number, those that come later within a second; names are the kubelet's.
// Rule: balancing §19.
func TestCgroupsAreFoundByNumber(t *testing.T) {
	root, logs := t.TempDir(), t.TempDir()
	now := time.Unix(0, 0)
	x := New(root, logs)
	x.now = func() time.Time { return now }
	made := func(path string) uint64 {
		t.Helper()
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		var s syscall.Stat_t
		if err := syscall.Stat(path, &s); err != nil {
			t.Fatal(err)
		}
		return s.Ino
	}
	host := made(filepath.Join(root, "system.slice"))
	made(filepath.Join(logs, "shop_web-1_"+uid))
	made(filepath.Join(logs, "lost+found"))
	if o, ok := x.Of(host); !ok || o != (sock.Origin{}) {
		t.Errorf("of the host: %+v, %t", o, ok)
	}
	pod := made(filepath.Join(root, "kubepods", "pod"+uid, container))
	if o, ok := x.Of(pod); ok {
		t.Errorf("looked for it twice in no time, and found %+v", o)
	}
	now = now.Add(lookEvery)
	if o, ok := x.Of(pod); !ok || o != (sock.Origin{Pod: "web-1", Namespace: "shop", PodUID: uid, Container: container}) {
		t.Errorf("of a pod: %+v, %t", o, ok)
	}
	if err := os.RemoveAll(filepath.Join(root, "kubepods")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(lookEvery)
	if _, ok := x.Of(1); ok {
		t.Error("a number that nobody has is somebody's")
	}
	if o, ok := x.Of(pod); ok {
		t.Errorf("of a pod that is gone: %+v", o)
	}
}

// Balancing §6: pods' cgroups are found by UID, in the layout of either driver; one that is made anew is another.
// Rule: balancing §6.
func TestCgroupsOfPodsAreFound(t *testing.T) {
	root, now := t.TempDir(), time.Unix(0, 0)
	x := New(root, t.TempDir())
	x.now = func() time.Time { return now }
	other := strings.ReplaceAll(uid, "1", "2")
	of := func() map[string]uint64 {
		now = now.Add(lookEvery)
		return x.Pods([]string{uid, other})
	}
	number := func(path string) uint64 {
		t.Helper()
		var s syscall.Stat_t
		if err := syscall.Stat(path, &s); err != nil {
			t.Fatal(err)
		}
		return s.Ino
	}
	if got := of(); len(got) != 0 {
		t.Errorf("without cgroups: %v", got)
	}
	for _, path := range []string{
		filepath.Join("kubepods", "pod"+uid), filepath.Join("kubepods", "burstable", "pod"+uid),
		filepath.Join("kubepods.slice", "kubepods-besteffort.slice", "kubepods-besteffort-pod"+strings.ReplaceAll(uid, "-", "_")+".slice"),
	} {
		pod := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Join(pod, container, "nested"), 0o755); err != nil {
			t.Fatal(err)
		}
		if got, want := of(), (map[string]uint64{uid: number(pod)}); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
		// The kubelet makes it anew; the folder of before keeps its number somewhere, so that the new one has another.
		if err := os.Rename(pod, filepath.Join(root, "was")); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(pod, 0o755); err != nil {
			t.Fatal(err)
		}
		if got, want := of(), (map[string]uint64{uid: number(pod)}); !maps.Equal(got, want) {
			t.Errorf("%s, made anew: %v, want %v", path, got, want)
		}
		if err := errors.Join(os.RemoveAll(pod), os.RemoveAll(filepath.Join(root, "was"))); err != nil {
			t.Fatal(err)
		}
		if got := of(); len(got) != 0 {
			t.Errorf("%s is gone: %v", path, got)
		}
	}
}
