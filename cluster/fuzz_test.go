// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"fairlead.io/fairlead/fsm"
)

// state is one that somebody else wrote.
type state []byte

func (s state) Write(w io.Writer) error {
	_, err := w.Write(s)
	return err
}

// FuzzBackups reads files that may be a backup: as they are, and around what they hold, with a sum that is right. What records may hold
// is drawn in fsm.
func FuzzBackups(f *testing.F) {
	s := fsm.New()
	data, err := fsm.EncodeEntry(0, []fsm.Proposal{{Actor: "test", Reason: "fuzz", AtUnixMilli: 1_790_000_000_000, Command: &fsm.InitGroup{Group: "g", Format: fsm.NewestFormat}}})
	if err != nil {
		f.Fatal(err)
	}
	if err := s.ApplyEntries([]fsm.LogEntry{{Index: 1, Term: 1, Data: data}})[0][0].Err(); err != nil {
		f.Fatal(err)
	}
	for _, of := range []*fsm.State{fsm.New(), s} {
		var file, inside bytes.Buffer
		if err := errors.Join(WriteBackup(&file, BackupHeader{Index: 7, Term: 2, ServerID: "m1"}, of.Freeze()), of.Freeze().Write(&inside)); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes(), false)
		f.Add(inside.Bytes(), true)
	}
	f.Add([]byte(backupMagic+"{}\n\xff\xff\xff\xff"), false)
	f.Fuzz(func(t *testing.T, file []byte, inside bool) {
		if inside {
			var wrapped bytes.Buffer
			if err := WriteBackup(&wrapped, BackupHeader{Index: 7, Term: 2, ServerID: "m1"}, state(file)); err != nil {
				t.Fatal(err)
			}
			file = wrapped.Bytes()
		}
		restored := fsm.New()
		header, err := readBackup(bytes.NewReader(file), restored.Restore)
		if err != nil {
			if !errors.Is(err, ErrNotABackup) {
				t.Errorf("refused with %v", err)
			}
			return
		}
		var again bytes.Buffer
		if err := WriteBackup(&again, header, restored.Freeze()); err != nil {
			t.Fatalf("it was read, and cannot be written: %v", err)
		}
		second := fsm.New()
		if got, err := readBackup(&again, second.Restore); err != nil || got != header || second.Digest() != restored.Digest() {
			t.Errorf("written again it is %+v, %s, not %+v, %s (%v)", got, second.Digest(), header, restored.Digest(), err)
		}
	})
}
