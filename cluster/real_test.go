// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/cluster/transport"
	"fairlead.io/fairlead/cluster/transport/transporttest"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/freeport"
	"fairlead.io/fairlead/internal/mounttest"
	"fairlead.io/fairlead/internal/testkit"
)

// realGroup is a group whose members have folders and loopback ports of their own, with TLS between them.
type realGroup struct {
	*group
	dirs      map[string]string
	addresses map[string]string
	tls       transporttest.Certificate
	folders   map[string]*disk.Folder
}

func newRealGroup(t testing.TB, names ...string) *realGroup {
	t.Helper()
	if parallel, ok := t.(interface{ Parallel() }); ok {
		parallel.Parallel() // they mostly wait
	}
	r := &realGroup{
		group: newGroup(t, names...), dirs: map[string]string{}, addresses: map[string]string{}, folders: map[string]*disk.Folder{},
	}
	r.tuning = Tuning{SnapshotInterval: time.Hour, Stabilization: 200 * time.Millisecond}
	r.tls = transporttest.New(t)
	for _, name := range names {
		l, err := freeport.Listen(netip.MustParseAddr("127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		r.addresses[name] = l.Addr().String()
		_ = l.Close() // only to find a free port; a member listens there again and again
		r.dirs[name] = filepath.Join(t.TempDir(), name)
	}
	r.change = r.equip
	return r
}

// equip gives a member its folder and its port.
func (r *realGroup) equip(m *member, o *Options) {
	folder, err := disk.Open(r.dirs[m.name], m.name)
	if err != nil {
		r.t.Fatalf("open folder of %s: %v", m.name, err)
	}
	var listener net.Listener
	testkit.Until(r.t, "the port is free again", func() bool {
		listener, err = net.Listen("tcp", r.addresses[m.name])
		return err == nil
	})
	prove, err := transport.TLS(r.tls.Server(), r.tls.Name)
	if err != nil {
		r.t.Fatal(err)
	}
	tr, err := transport.Listen(transport.Options{Listener: listener, Prove: prove, Dial: r.tls.Dial, Log: r.log})
	if err != nil {
		r.t.Fatalf("listen: %v", err)
	}
	r.folders[m.name] = folder
	o.Stores, o.Path, o.Transport, o.Instance = folder.Stores(), folder.Path(), tr, folder.Identity().Instance
	for i := range o.Bootstrap.Members {
		o.Bootstrap.Members[i].Address = r.addresses[o.Bootstrap.Members[i].Name]
	}
}

func (r *realGroup) stop(name string) {
	r.members[name].stop()
	if f := r.folders[name]; f != nil {
		if err := f.Close(); err != nil {
			r.t.Fatalf("close folder: %v", err)
		}
		delete(r.folders, name)
	}
}

func (r *realGroup) stopAll() {
	for _, name := range r.names() {
		r.stop(name)
	}
}

// wipe loses a member's folder.
func (r *realGroup) wipe(name string) {
	if err := os.RemoveAll(r.dirs[name]); err != nil {
		r.t.Fatalf("wipe: %v", err)
	}
}

func TestRealGroupAgreesAndComesBackFromDisk(t *testing.T) {
	r := newRealGroup(t, "a", "b", "c")
	r.startAll()
	defer r.stopAll()
	for i := range 20 {
		mustPropose(t, r.leader(), put(i))
	}
	r.settle()
	r.stopAll()
	r.startAll()
	r.settle()
	if !has(r.leader().state, 19) {
		t.Fatal("an acknowledged command is lost")
	}
}

// The same address, an empty folder: the case that a name on the messages is for.
func TestRealMemberThatLostItsFolderIsReplacedAtTheSameAddress(t *testing.T) {
	r := newRealGroup(t, "a", "b", "c")
	r.startAll()
	defer r.stopAll()
	mustPropose(t, r.leader(), put(1))
	victim := r.followers()[0].name
	old := r.folders[victim].Identity().Instance
	r.stop(victim)
	r.wipe(victim)
	r.start(victim)
	now := r.folders[victim].Identity().Instance
	testkit.Until(t, "the new server votes and the old one is gone", func() bool {
		voters := r.voters()
		return len(voters) == 3 && slices.Contains(voters, ServerID(victim, now)) && !slices.Contains(voters, ServerID(victim, old))
	})
	r.settle()
}

// A member whose disk is full ends with the path and the remedy; the others go on, and with more space it comes back
// with everything.
func TestRealFullDiskEndsThatMemberOnlyAndLosesNothing(t *testing.T) {
	r := newRealGroup(t, "a", "b", "c")
	mount := mounttest.Tmpfs(t, "512k")
	r.dirs["b"] = filepath.Join(mount, "data")
	r.startAll()
	defer r.stopAll()
	b := r.members["b"]
	acknowledged := 0
	testkit.Until(t, "the disk is full", func() bool {
		p := put(acknowledged)
		p.Command.(*fsm.PutRegister).Spec = make([]byte, 32<<10) // few commits fill it, each of which waits for the disks of others
		if leader := r.leader(); leader != b || !isClosed(b.ended) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if _, err := leader.node.Propose(ctx, Bulk, p); err == nil {
				acknowledged++
			}
		}
		return isClosed(b.ended)
	})
	var fault *store.Error
	if !errors.As(b.err, &fault) || !errors.Is(b.err, syscall.ENOSPC) || !strings.HasPrefix(fault.Path, r.dirs["b"]) || fault.Remedy == "" {
		t.Fatalf("it ended with %v", b.err)
	}
	r.stop("b")
	mustPropose(t, r.leader(), put(acknowledged))
	mounttest.Remount(t, mount, "64m", 0)
	r.start("b")
	r.settle()
	for i := range acknowledged + 1 {
		if !has(b.state, i) {
			t.Fatalf("command %d was acknowledged and is lost", i)
		}
	}
}
