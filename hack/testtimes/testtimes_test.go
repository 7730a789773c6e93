// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestEventsBecomeTables(t *testing.T) {
	packages, tests, err := read(strings.NewReader(`{"Action":"pass","Package":"fairlead.io/fairlead/a","Test":"TestOne","Elapsed":7}
{"Action":"pass","Package":"fairlead.io/fairlead/a","Test":"TestOne/row","Elapsed":6}
{"Action":"skip","Package":"fairlead.io/fairlead/a","Test":"TestNone"}
{"Action":"pass","Package":"fairlead.io/fairlead/b","Test":"TestTwo","Elapsed":8}
{"Action":"pass","Package":"fairlead.io/fairlead/b","Elapsed":9}
{"Action":"fail","Package":"fairlead.io/fairlead/a","Test":"TestThree","Elapsed":2}
`))
	if err != nil || len(packages) != 2 || packages[0] != (timed{pkg: "a", seconds: 9, tests: 2}) || len(tests) != 3 || tests[0].test != "TestTwo" {
		t.Fatalf("%v, %v, %v", packages, tests, err)
	}
	var out bytes.Buffer
	byPackage(&out, append(packages, timed{pkg: "c", seconds: 1, tests: 4}))
	if text := out.String(); !strings.Contains(text, "| `a` | 2 | 9 |") || !strings.Contains(text, "| all others | 4 | 1 |") {
		t.Errorf("%s", text)
	}
}

func TestProgramsAreCountedByName(t *testing.T) {
	got := programs(`11 execve("/tmp/x/it.test", ["/tmp/x/it.test", "-test.run=^A$"], 0x7ff /* 9 vars */) = 0
12 execve("/usr/sbin/ip", ["ip", "link"], 0x7ff /* 9 vars */) = 0
13 execve("/usr/local/bin/ip", ["ip", "link"], 0x7ff /* 9 vars */) = -1 ENOENT (No such file or directory)
14 execve("/usr/sbin/ip", ["ip", "addr"], 0x7ff /* 9 vars */) = 0
15 execve("/proc/self/fd/9", ["simguest", "{}"], 0x7ff /* 9 vars */) = 0
`)
	if got != "2 ip, 1 simulated process" {
		t.Errorf("%q", got)
	}
}

func TestWrongCallsAreUsageErrors(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := run(t.Context(), nil, &out, &errOut); code != 2 || errOut.Len() == 0 {
		t.Errorf("%d, %q", code, errOut.String())
	}
	if code := run(t.Context(), []string{t.TempDir() + "/none"}, &out, &errOut); code != 1 {
		t.Errorf("exit %d for a file that is not there", code)
	}
}
