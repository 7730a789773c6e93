// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

const mib = 1 << 20

func TestMemoryLimitIsTheLeastOfTheGroupsOfTheProcess(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64 // 0: none
	}{
		{"container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2147483648\n"}, 2048 * mib},
		{"container without a limit", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		{"pod", map[string]string{
			"proc/self/cgroup":                       "0::/pod/container\n",
			"sys/fs/cgroup/pod/memory.max":           "104857600\n",
			"sys/fs/cgroup/pod/container/memory.max": "max\n",
		}, 100 * mib},
		{"unit in a slice", map[string]string{
			"proc/self/cgroup":                                       "0::/system.slice/fairlead.service\n",
			"sys/fs/cgroup/system.slice/memory.max":                  "1073741824\n",
			"sys/fs/cgroup/system.slice/fairlead.service/memory.max": "536870912\n",
		}, 512 * mib},
		{"container that is told its path on the host", map[string]string{
			"proc/self/cgroup": "0::/kubepods/pod1/c\n", "sys/fs/cgroup/memory.max": "536870912\n",
		}, 512 * mib},
		{"group outside of what is mounted", map[string]string{
			"proc/self/cgroup": "0::/../../other\n", "sys/fs/cgroup/memory.max": "536870912\n",
		}, 512 * mib},
		{"version 1", map[string]string{
			"proc/self/cgroup":                             "9:cpu,cpuacct:/a\n4:hugetlb,memory:/a\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "268435456\n",
		}, 256 * mib},
		{"nobody tells", nil, 0},
		{"other words", map[string]string{"proc/self/cgroup": "0:\n\nno\n"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit, limited := memoryLimit(machineOf(c.files))
			if limited != (c.want > 0) || limited && limit != c.want {
				t.Errorf("%d, %v; want %d", limit, limited, c.want)
			}
		})
	}
}

func TestMemoryIsKeptBelowTheLimitUnlessItIsSaidHowMuch(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	limited := machineOf(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000000000\n"})
	for _, c := range []struct {
		said string
		root fstest.MapFS
		want int64
	}{{"1GiB", limited, math.MaxInt64}, {"", nil, math.MaxInt64}, {"", limited, 900_000_000}} { // Go itself has obeyed GOMEMLIMIT already
		heedMemoryLimit(func(string) string { return c.said }, c.root)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("with GOMEMLIMIT=%q: %d, want %d", c.said, got, c.want)
		}
	}
}

func machineOf(texts map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range texts {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}
