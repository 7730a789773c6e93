// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ballast is the file that fills a disk.
const ballast = "ballast"

// folder is where a member keeps its data, on a disk of its own if there are such. What is fsync'ed there is in memory: such a member is
// killed, but its machine does not lose power.
func (l *Lab) folder(name string) string {
	l.t.Helper()
	if l.o.Disk == 0 {
		return filepath.Join(l.dir, name)
	}
	disk := filepath.Join(l.dir, "disk-"+name)
	err := os.Mkdir(disk, 0o700)
	if err == nil {
		err = unix.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", l.o.Disk))
	}
	if err != nil {
		l.t.Fatalf("disk of %s: %v; does TestMain call MainIn with --mount?", name, err)
	}
	l.t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }) // it goes with its namespace
	return filepath.Join(disk, name)
}

// Fill leaves no room on the member's disk.
func (m *Member) Fill() {
	m.t.Helper()
	f, err := os.OpenFile(filepath.Join(filepath.Dir(m.DataDir), ballast), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		m.t.Fatalf("fill the disk of %s: %v", m.Name, err)
	}
}

// Drain makes room again.
func (m *Member) Drain() {
	m.t.Helper()
	if err := os.Remove(filepath.Join(filepath.Dir(m.DataDir), ballast)); err != nil {
		m.t.Fatal(err)
	}
}
