// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// What a member may take, whatever happens to it.
const (
	mostMemory = 300 << 20
	mostDisk   = 48 << 20
	// mostSaid is what it may log a second on average, and suddenly what comes once of a start.
	mostSaid = 24 << 10
	suddenly = 512 << 10
)

// manners is what members took up to the last time somebody looked.
type manners struct {
	at   time.Time
	said map[*lab.Member]int
}

func newManners() *manners { return &manners{time.Now(), map[*lab.Member]int{}} }

// judge tells who took too much since the last round.
func (w *manners) judge(r *run) (wrong []string) {
	took := time.Since(w.at)
	w.at = time.Now()
	for _, m := range r.office.running() {
		memory, err := m.Memory()
		if err != nil || memory > mostMemory {
			wrong = append(wrong, fmt.Sprintf("%s has %d MiB of memory, at most %d are right: %v", m.Name, memory>>20, mostMemory>>20, err))
		}
		disk := onDisk(m.DataDir)
		if disk > mostDisk {
			wrong = append(wrong, fmt.Sprintf("%s keeps %d MiB on disk, at most %d are right", m.Name, disk>>20, mostDisk>>20))
		}
		said := m.Said() - w.said[m]
		w.said[m] = m.Said()
		if most := int(took.Seconds()*mostSaid) + suddenly; said > most {
			wrong = append(wrong, fmt.Sprintf("%s logged %d KiB in %v, at most %d are right", m.Name, said>>10, took, most>>10))
		}
		r.report.took(memory, disk, float64(said)/took.Seconds())
	}
	return wrong
}

// onDisk is how large the files of a folder are.
func onDisk(folder string) (total int) {
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error { // files come and go
		if err == nil {
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				total += int(info.Size())
			}
		}
		return nil
	})
	return total
}
