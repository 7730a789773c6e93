// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// heedMemoryLimit has this process collect garbage before it comes to the memory that its container may have at most, unless
// whoever started it says how much it shall use (GOMEMLIMIT): a heap may become half as large again between two
// collections, and the kernel ends a container that exceeds its limit. root is the machine's file system.
//
// The runtime aims at nine tenths, since it does not count everything: the program's file, and what the kernel keeps for the process.
func heedMemoryLimit(getenv func(string) string, root fs.FS) {
	if getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit, limited := memoryLimit(root); limited {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
}

// memoryLimit is the least limit, in bytes, of the cgroups that this process is in; limited is false where none has one, and
// where the kernel does not tell. See cgroups(7): in version 2 one hierarchy is for everything, in version 1 memory has its own,
// where no limit is a number beyond any memory.
func memoryLimit(root fs.FS) (limit int64, limited bool) {
	limit = math.MaxInt64
	memberships, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(memberships)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
		switch {
		case len(parts) < 3:
		case parts[0] == "0" && parts[1] == "":
			limit = min(limit, limitAlong(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			limit = min(limit, limitAlong(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return limit, limit < math.MaxInt64
}

// limitAlong is the least limit of a group and of those that it is in. A container often sees its own group where the
// hierarchy is mounted, and not the path that leads to it.
func limitAlong(root fs.FS, mount, group, file string) int64 {
	least := int64(math.MaxInt64)
	for group = path.Join("/", group); ; group = path.Dir(group) {
		text, err := fs.ReadFile(root, path.Join(mount, group, file))
		if limit, no := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && no == nil { // "max" is no number
			least = min(least, limit)
		}
		if group == "/" {
			return least
		}
	}
}
