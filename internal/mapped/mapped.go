// SPDX-License-Identifier: Apache-2.0

// Package mapped has the kernel take back memory that only shows what is in files: the kernel maps 64 KiB around whatever is touched,
// and keeps it mapped.
package mapped

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Shed has the kernel take back what this process has mapped of a program's or library's file, by its absolute path without links. What is
// needed again is mapped again, in less than a millisecond: the file stays in the machine's cache as long as there is room, as it would
// otherwise. Nothing depends on it: where the kernel does not tell or refuses, everything stays mapped. Whoever calls it makes sure that
// nobody unmaps the file meanwhile: what else comes to stand there would lose its content.
func Shed(file string) { shed("/proc/self/smaps", file, untouched) }

// ShedShared does so with a file that is mapped to be read as others write it.
func ShedShared(file string) { shed("/proc/self/maps", file, shared) }

func shed(from, file string, find func(text io.Reader, file string) []mapping) {
	text, err := os.Open(from)
	if err != nil {
		return
	}
	defer text.Close()
	for _, m := range find(text, file) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// mappingOf reads a line of proc_pid_maps(5) about a file: addresses, permissions, offset, device, inode, path.
func mappingOf(fields []string) (m mapping, permissions, file string, ok bool) {
	if len(fields) < 6 || strings.HasSuffix(fields[0], ":") {
		return mapping{}, "", "", false
	}
	first, last, _ := strings.Cut(fields[0], "-")
	from, noFrom := strconv.ParseUint(first, 16, 64)
	to, noTo := strconv.ParseUint(last, 16, 64)
	return mapping{uintptr(from), uintptr(to)}, fields[1], strings.Join(fields[5:], " "), noFrom == nil && noTo == nil
}

// shared finds in the text of proc_pid_maps(5) where a file is mapped for reading, and shared.
func shared(text io.Reader, file string) (out []mapping) {
	for lines := bufio.NewScanner(text); lines.Scan(); {
		if m, permissions, of, ok := mappingOf(strings.Fields(lines.Text())); ok && of == file && permissions == "r--s" {
			out = append(out, m)
		}
	}
	return out
}

// untouched finds in the text of proc_pid_smaps(5) where a file is mapped that may not be written to, and was not: what was, as by a debugger
// or when a program is linked to its place, is in no file.
func untouched(text io.Reader, file string) (out []mapping) {
	var at mapping
	candidate := false
	for lines := bufio.NewScanner(text); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2:
		case !strings.HasSuffix(fields[0], ":"):
			m, permissions, of, ok := mappingOf(fields)
			at, candidate = m, ok && of == file && (permissions == "r--p" || permissions == "r-xp")
		case candidate && fields[0] == "Anonymous:" && fields[1] == "0":
			out = append(out, at)
		}
	}
	return out
}
