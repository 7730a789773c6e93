// SPDX-License-Identifier: Apache-2.0

// Package origin tells which pod and container a cgroup is of, from the names that kubelets and container runtimes give folders of
// cgroups, and pods' folders of logs. No API server is asked.
package origin

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"fairlead.io/fairlead/dataplane/sock"
)

// Logs is where kubelets keep a folder for each pod, named namespace_name_uid.
const Logs = "/var/log/pods"

// lookEvery bounds how often the folders are looked through: processes that end at once would have it done for each of them.
const lookEvery = time.Second

// Index knows the cgroups of a machine, by their inode numbers. It may be used by several at once.
type Index struct {
	cgroups, logs string
	now           func() time.Time

	mu     sync.Mutex
	known  map[uint64]sock.Origin
	pods   map[string]folder // by UID
	looked time.Time
}

// New makes an Index of the cgroups below a folder, with the names of pods that a folder of logs has. Nothing is read before it is asked.
func New(cgroups, logs string) *Index { return &Index{cgroups: cgroups, logs: logs, now: time.Now} }

// Of tells whose a cgroup is. False: it is gone, or it came within the last second.
func (x *Index) Of(cgroup uint64) (sock.Origin, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.known[cgroup]; !ok && x.now().Sub(x.looked) >= lookEvery {
		x.look()
	}
	o, ok := x.known[cgroup]
	return o, ok
}

// folder is one that is a pod's cgroup.
type folder struct {
	path   string
	cgroup uint64
}

// there is whether it is the pod's still: a folder of this name that is made later is another cgroup.
func (f folder) there() bool {
	var s syscall.Stat_t
	return syscall.Stat(f.path, &s) == nil && s.Ino == f.cgroup
}

// Pods gives the cgroups of pods, by UID, as far as they are there. What a pod's containers have is below it.
func (x *Index) Pods(uids []string) map[string]uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[string]uint64{}
	find := func() (lacks bool) {
		for _, uid := range uids {
			if f, ok := x.pods[uid]; ok && f.there() {
				out[uid] = f.cgroup
			} else {
				delete(out, uid)
				lacks = true
			}
		}
		return lacks
	}
	if find() && x.now().Sub(x.looked) >= lookEvery {
		x.look()
		find()
	}
	return out
}

// look reads the folders anew. What cannot be read, since it goes meanwhile, is left out.
func (x *Index) look() {
	x.looked, x.known, x.pods = x.now(), map[uint64]sock.Origin{}, map[string]folder{}
	names := x.names()
	_ = filepath.WalkDir(x.cgroups, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		o := parse(strings.TrimPrefix(path, x.cgroups))
		if name, ok := names[o.PodUID]; ok {
			o.Namespace, o.Pod = name.namespace, name.pod
		}
		x.known[stat.Ino] = o
		if podFolder.MatchString(d.Name()) {
			x.pods[o.PodUID] = folder{path, stat.Ino}
		}
		return nil
	})
}

type podName struct{ namespace, pod string }

// names are the pods that have a folder of logs, by UID. A name has no underscore (RFC 1123).
func (x *Index) names() map[string]podName {
	out := map[string]podName{}
	entries, err := os.ReadDir(x.logs)
	if err != nil {
		return out // not mounted into the agent's container, or there is no kubelet
	}
	for _, e := range entries {
		if parts := strings.Split(e.Name(), "_"); len(parts) == 3 {
			out[parts[2]] = podName{parts[0], parts[1]}
		}
	}
	return out
}

var (
	// kubepods-burstable-pod1c6f…_….slice with systemd, pod1c6f…-… without. A static pod's is a hash.
	podFolder = regexp.MustCompile(`^(?:.*-)?pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?$`)
	// cri-containerd-4f….scope, crio-4f….scope, docker-4f….scope, or the id alone.
	containerFolder = regexp.MustCompile(`^(?:[a-z-]+-)?([0-9a-f]{64})(?:\.scope)?$`)
)

// parse reads the path of a cgroup, from the root on. What a container nests in its own cgroup is the container's.
func parse(path string) (o sock.Origin) {
	for folder := range strings.SplitSeq(path, "/") {
		if m := podFolder.FindStringSubmatch(folder); m != nil {
			o = sock.Origin{PodUID: strings.ReplaceAll(m[1], "_", "-")}
		} else if m := containerFolder.FindStringSubmatch(folder); m != nil {
			o.Container = m[1]
		}
	}
	return o
}
