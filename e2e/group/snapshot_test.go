// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

// What `raft snapshot` says of a snapshot is what is on the leader's disk, also where nothing was new.
func TestSnapshotSaysWhatIsOnTheDisk(t *testing.T) {
	l := started(t, lab.Options{})
	l.Agreed()
	for range 2 {
		leader := l.Leader()
		out, stderr, code := l.CLI("raft", "snapshot", "-o", "json")
		if code != 0 {
			t.Fatalf("snapshot: %s", stderr)
		}
		var said struct {
			ID        string `json:"id"`
			Index     uint64 `json:"index"`
			Term      uint64 `json:"term"`
			SizeBytes int64  `json:"sizeBytes"`
		}
		if err := json.Unmarshal([]byte(out), &said); err != nil {
			t.Fatal(err)
		}
		var meta struct {
			ID          string
			Index, Term uint64
		}
		folder := filepath.Join(leader.DataDir, "snapshots", said.ID)
		text, err := os.ReadFile(filepath.Join(folder, "meta.json"))
		if err == nil {
			err = json.Unmarshal(text, &meta)
		}
		if err != nil {
			t.Fatalf("of %s, as it says: %v", out, err)
		}
		state, err := os.Stat(filepath.Join(folder, "state.bin"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(said), fmt.Sprint(struct {
			ID          string
			Index, Term uint64
			Size        int64
		}{meta.ID, meta.Index, meta.Term, state.Size()}); got != want || said.Term == 0 {
			t.Errorf("it says %s, and there is %s", got, want)
		}
	}
}
