// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	l := newLab(t)
	before := picture(l.node)
	s := l.steer()
	l.apply(s, wanted(vip4, vip6))
	t.Log(l.node.Run("ip", "rule"), l.node.Run("ip", "-6", "rule"), l.node.Run("ip", "route", "show", "table", "101"), l.node.Run("ip", "route", "show", "table", "102"))
	t.Log(l.node.Run("nft", "list", "table", "inet", "fairlead-steer"))
	wantWord(t, l.client, vip4, 80, "pod")
	wantWord(t, l.client, vip6, 80, "pod")
	wantRefused(t, l.client, vip4, 81)
	wantRefused(t, l.client, vip6, 81)
	wantRefused(t, l.client, vip4, 22)
	wantRefused(t, l.client, vip6, 22)
	l.apply(s, wanted())
	if after := picture(l.node); before != after {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	t.Log(l.log)
}
