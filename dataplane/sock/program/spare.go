// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"maps"

	"fairlead.io/fairlead/dataplane/sock"
)

// Spare has rules leave the sockets of these cgroups alone, and of no others.
func (p *Program) Spare(want map[sock.Own]bool) error {
	have := map[sock.Own]bool{}
	var key sockOwnKey
	var one uint32
	if err := each(p.maps.Own, "own", &key, &one, func() { have[sock.Own{Cgroup: key.Cgroup, Rule: key.Rule}] = true }); err != nil {
		return err
	}
	both := func(o sock.Own, _ bool) bool { return have[o] && want[o] }
	add, gone := maps.Clone(want), maps.Clone(have)
	maps.DeleteFunc(add, both)
	maps.DeleteFunc(gone, both)
	if err := put(p.maps.Own, "own", owns(add), make([]uint32, len(add))); err != nil {
		return err
	}
	return drop(p.maps.Own, "own", owns(gone))
}

func owns(in map[sock.Own]bool) (out []sockOwnKey) {
	for o := range in {
		out = append(out, sockOwnKey{Cgroup: o.Cgroup, Rule: o.Rule})
	}
	return out
}
