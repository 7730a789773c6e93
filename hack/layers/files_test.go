// SPDX-License-Identifier: Apache-2.0

package layers_test

import "testing"

// readsWhole lists, by package, what reads a file however large it is.
var readsWhole = map[string]func(name string) (instead string){
	"os": func(name string) string {
		if name == "ReadFile" {
			return "package internal/smallfile"
		}
		return ""
	},
}

// Files that people name are read up to a bound. What is left out reads files of its own and of the kernel, or belongs to tests and development.
func TestFilesThatPeopleNameAreBounded(t *testing.T) {
	lookAtFiles(t, false, []string{
		"cluster/store", "dataplane/agent", "dataplane/bgp", "dataplane/flows", "dataplane/steer", "cmd/fairlead-driver-haproxy/internal/haproxy",
		"cmd/internal/dev", "e2e", "hack", "internal", "sim",
	}, readsWhole)
}
