// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

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
