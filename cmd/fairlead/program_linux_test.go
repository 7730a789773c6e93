// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const someMaps = `00400000-02466000 r-xp 00000000 fe:00 1337                               /usr/bin/fairlead
Rss:               20696 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
02466000-047f9000 r--p 02066000 fe:00 1337                               /usr/bin/fairlead
Anonymous:             0 kB
047f9000-047fa000 r--p 043f9000 fe:00 1337                               /usr/bin/fairlead
Anonymous:             4 kB
047fa000-048ac000 rw-p 043f9000 fe:00 1337                               /usr/bin/fairlead
Anonymous:             0 kB
048ac000-048ad000 r--s 00000000 fe:00 1337                               /usr/bin/fairlead
Anonymous:             0 kB
c000000000-c004000000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7fd0993d7000-7fd09952d000 r-xp 00026000 fe:00 42                         /usr/lib/x86_64-linux-gnu/libc.so.6
Anonymous:             0 kB
`

func TestOnlyTheProgramAsItIsInItsFileIsShed(t *testing.T) {
	want := []mapping{{0x400000, 0x2466000}, {0x2466000, 0x47f9000}}
	if got := untouched(strings.NewReader(someMaps), "/usr/bin/fairlead"); !slices.Equal(got, want) {
		t.Errorf("shed: %#x, want %#x", got, want)
	}
	replaced := strings.ReplaceAll(someMaps, "/usr/bin/fairlead", "/usr/bin/fairlead (deleted)")
	if got := untouched(strings.NewReader(replaced), "/usr/bin/fairlead (deleted)"); !slices.Equal(got, want) {
		t.Errorf("shed of a program that was replaced: %#x, want %#x", got, want)
	}
}

func TestShedProgramIsNoLongerResident(t *testing.T) {
	before := residentFile(t)
	shed()
	if after := residentFile(t); after > before*3/4 {
		t.Errorf("%d KB of files were resident, %d are", before, after)
	}
}

// residentFile is how much of files this process has mapped, in KB.
func residentFile(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "RssFile:" {
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the kernel does not tell RssFile")
	return 0
}
