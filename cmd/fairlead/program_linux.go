// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// shedEvery is how often agents and members shed their program: what is needed then comes back in less than a millisecond.
const shedEvery = 30 * time.Second

// shedProgram has the kernel take back, every so often until ctx ends, the pages of the program's file that this process has
// mapped: it maps 64 KiB around whatever is touched, and a start touches something nearly everywhere. What is needed again
// is mapped again: the file stays in the machine's cache as long as there is room, as it would otherwise. It gives back what it does not
// need of its own memory, too.
func shedProgram(ctx context.Context, every time.Duration) {
	var own thrift
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			shed()
			own.giveBack()
		}
	}
}

// shed does so once. Nothing depends on it: where the kernel does not tell or refuses, everything stays mapped.
func shed() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	for _, m := range untouched(maps, program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// untouched finds in the text of proc_pid_smaps(5) where a file is mapped that may not be written to, and was not: what was,
// as by a debugger or when a program is linked to its place, is in no file.
func untouched(text io.Reader, file string) (out []mapping) {
	lines := bufio.NewScanner(text)
	var at mapping
	candidate := false
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		if !strings.HasSuffix(fields[0], ":") { // addresses, permissions, offset, device, inode, path
			candidate = len(fields) > 5 && strings.Join(fields[5:], " ") == file && (fields[1] == "r--p" || fields[1] == "r-xp")
			first, last, _ := strings.Cut(fields[0], "-")
			from, noFrom := strconv.ParseUint(first, 16, 64)
			to, noTo := strconv.ParseUint(last, 16, 64)
			candidate = candidate && noFrom == nil && noTo == nil
			at = mapping{uintptr(from), uintptr(to)}
		} else if candidate && fields[0] == "Anonymous:" && fields[1] == "0" {
			out = append(out, at)
		}
	}
	return out
}
