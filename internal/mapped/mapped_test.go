// SPDX-License-Identifier: Apache-2.0

package mapped

import (
	"slices"
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

func TestOnlyWhatIsAsInTheFileIsShed(t *testing.T) {
	want := []mapping{{0x400000, 0x2466000}, {0x2466000, 0x47f9000}}
	if got := untouched(strings.NewReader(someMaps), "/usr/bin/fairlead"); !slices.Equal(got, want) {
		t.Errorf("shed: %#x, want %#x", got, want)
	}
	replaced := strings.ReplaceAll(someMaps, "/usr/bin/fairlead", "/usr/bin/fairlead (deleted)")
	if got := untouched(strings.NewReader(replaced), "/usr/bin/fairlead (deleted)"); !slices.Equal(got, want) {
		t.Errorf("shed of a program that was replaced: %#x, want %#x", got, want)
	}
	want = []mapping{{0x48ac000, 0x48ad000}}
	if got := shared(strings.NewReader(someMaps), "/usr/bin/fairlead"); !slices.Equal(got, want) {
		t.Errorf("shed of what is shared: %#x, want %#x", got, want)
	}
}
