// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/compare"
	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/fsm"
)

// Whoever runs recover twice, since its answer was lost, is told again whose folders can never rejoin.
func TestRecoverNamesTheOthersEachTime(t *testing.T) {
	t.Parallel()
	conf := config.Controller{Name: "m1", DataDir: t.TempDir(), Advertise: config.Advertise{Raft: "192.0.2.1:7444"}}
	others := grouped(t, conf)
	edges := Edges{Folder: disk.Open}
	for i := range 3 {
		done, err := Recover(conf, edges, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(done.Others, others) || done.Again != (i > 0) {
			t.Errorf("time %d: %+v", i+1, done)
		}
	}
}

// A folder whose record was found to be another one than the group's is refused, until it becomes a group of its own: it may be the last one there is.
func TestRecoverTakesAFolderWhoseRecordDiffered(t *testing.T) {
	t.Parallel()
	conf := config.Controller{Name: "m1", DataDir: t.TempDir(), Advertise: config.Advertise{Raft: "192.0.2.1:7444"}}
	grouped(t, conf)
	differs := func(set string) (err error) {
		f, openErr := disk.Open(conf.DataDir, conf.Name)
		if openErr != nil {
			t.Fatal(openErr)
		}
		if set != "" {
			err = f.SetDiffers(set)
		}
		return errors.Join(err, agrees(f), f.Close())
	}
	if err := differs("at index 7"); !errors.Is(err, compare.ErrDiffers) {
		t.Fatalf("taken: %v", err)
	}
	if err := differs(""); !errors.Is(err, compare.ErrDiffers) || !strings.Contains(err.Error(), "at index 7") {
		t.Errorf("taken at the next start: %v", err)
	}
	if _, err := Recover(conf, Edges{Folder: disk.Open}, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := differs(""); err != nil {
		t.Errorf("refused though it was recovered: %v", err)
	}
}

// grouped fills a member's folder as one of three, and gives the others.
func grouped(t *testing.T, c config.Controller) (others []cluster.Peer) {
	t.Helper()
	f, err := disk.Open(c.DataDir, c.Name)
	if err != nil {
		t.Fatal(err)
	}
	self := cluster.ServerID(c.Name, f.Identity().Instance)
	others = []cluster.Peer{{ID: "m2-x", Name: "m2", Address: "192.0.2.2:7444"}, {ID: "m3-y", Name: "m3", Address: "192.0.2.3:7444"}}
	servers := []raft.Server{{ID: raft.ServerID(self), Address: raft.ServerAddress(c.Advertise.Raft)}}
	commands := []cluster.Proposal{{Actor: "test", Command: &fsm.InitGroup{Group: "g", Format: fsm.NewestFormat}}}
	for _, m := range append([]cluster.Peer{{ID: self, Name: c.Name, Address: c.Advertise.Raft}}, others...) {
		commands = append(commands, cluster.Proposal{Actor: "test", Command: &fsm.ReportMember{
			Server: fsm.ServerID(m.ID), Name: m.Name, Raft: m.Address, Format: fsm.NewestFormat, Run: "r",
		}})
		if m.ID != self {
			servers = append(servers, raft.Server{ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Address)})
		}
	}
	s := store.NewGuard(f.Path(), f.Stores()).Checked()
	logs := []*raft.Log{{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(raft.Configuration{Servers: servers})}}
	for i, one := range commands {
		epoch := fsm.Epoch(1)
		if i == 0 {
			epoch = 0
		}
		data, err := fsm.EncodeEntry(epoch, []cluster.Proposal{one})
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, &raft.Log{Index: uint64(i) + 2, Term: 1, Type: raft.LogCommand, Data: data})
	}
	if err := errors.Join(s.Log.StoreLogs(logs), s.Stable.SetUint64([]byte("CurrentTerm"), 1), f.Close()); err != nil {
		t.Fatal(err)
	}
	return others
}
