// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"net/netip"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/e2e/lab"
)

// What clients were told is wrong where no order explains it, and right where one does, whatever became of calls whose end nobody knows.
func TestHistoriesAreJudged(t *testing.T) {
	t.Parallel()
	at := func(c call, began, ended int) call {
		c.key, c.began, c.ended = "r", time.Duration(began), time.Duration(ended)
		return c
	}
	put := func(value string, how told) call { return call{put: true, value: value, told: how} }
	get := func(value string) call { return call{client: 1, value: value, told: done} }
	for name, test := range map[string]struct {
		calls []call
		wrong bool
	}{
		"in-order":                      {[]call{at(get(""), 1, 2), at(put("a", done), 3, 4), at(get("a"), 5, 6)}, false},
		"at-once":                       {[]call{at(put("a", done), 1, 9), at(get(""), 2, 3), at(get("a"), 4, 5)}, false},
		"acknowledged-and-lost":         {[]call{at(put("a", done), 1, 2), at(put("b", done), 3, 4), at(get("a"), 5, 6)}, true},
		"first-write-lost":              {[]call{at(put("a", done), 1, 2), at(get(""), 3, 4)}, true},
		"old-value-after-the-new-one":   {[]call{at(put("a", done), 1, 2), at(put("b", unknown), 3, 9), at(get("b"), 4, 5), at(get("a"), 6, 7)}, true},
		"refused-and-done":              {[]call{at(put("a", refused), 1, 2), at(get("a"), 3, 4)}, true},
		"unknown-and-never-done":        {[]call{at(put("a", unknown), 1, 2), at(get(""), 3, 4)}, false},
		"unknown-and-done-much-later":   {[]call{at(put("a", unknown), 1, 2), at(get(""), 3, 4), at(get("a"), 5, 6)}, false},
		"unknown-and-done-before-begun": {[]call{at(get("a"), 1, 2), at(put("a", unknown), 3, 4)}, true},
	} {
		if wrong, _ := judge(test.calls); (len(wrong) > 0) != test.wrong {
			t.Errorf("%s: judged %q", name, wrong)
		}
	}
}

// The switch may have what the record wants, or wanted within the bound, and nothing else; last resorts are nobody's fault.
func TestTheSwitchIsJudged(t *testing.T) {
	t.Parallel()
	p, n1, n2, n3 := prefix(0), lab.NodeAddress(1), lab.NodeAddress(2), lab.NodeAddress(3)
	const tick = 100 * time.Millisecond
	l := &ledger{}
	l.asked = []reading{{begin: 0, hops: hops{p: {n1}}}, {begin: 100 * tick, hops: hops{p: {n2}}}}
	for i := range time.Duration(200) { // the record follows at 105
		want := hops{p: {n1}}
		if i >= 105 {
			want = hops{p: {n2}}
		}
		l.readings = append(l.readings, reading{i * tick, (i + 1) * tick, want})
	}
	for name, test := range map[string]struct {
		at    time.Duration
		hops  []netip.Addr
		last  bool
		lost  bool
		wrong int
	}{
		"as-wanted":                {at: 50, hops: []netip.Addr{n1}},
		"just-changed":             {at: 108, hops: []netip.Addr{n1, n2}},
		"former-one-for-too-long":  {at: 130, hops: []netip.Addr{n1}, wrong: 1},
		"before-it-was-committed":  {at: 102, hops: []netip.Addr{n2}, wrong: 1},
		"never-wanted":             {at: 50, hops: []netip.Addr{n1, n3}, wrong: 1},
		"last-resort":              {at: 130, hops: []netip.Addr{n1}, last: true},
		"none":                     {at: 50, wrong: 1},
		"none-after-a-restart":     {at: 50, lost: true},
		"where-the-record-is-dark": {at: 250, hops: []netip.Addr{n3}},
	} {
		v := view{begin: test.at * tick, end: test.at*tick + tick/2, bound: 10 * tick, lastResort: map[netip.Prefix]bool{p: test.last}, forgot: test.lost}
		if test.hops != nil {
			v.ecmp = []birdtest.Entry{{Prefix: p, NextHops: test.hops}}
		}
		if wrong := judgeBorder([]view{v}, l, []netip.Prefix{p}); len(wrong) != test.wrong {
			t.Errorf("%s: judged %q", name, wrong)
		}
	}
}

// A next hop that manifests asked for and then no longer may have been in the record between two readings.
func TestHopsThatCameAndWentAreNotJudged(t *testing.T) {
	t.Parallel()
	p, n1, n2 := prefix(0), lab.NodeAddress(1), lab.NodeAddress(2)
	l := &ledger{
		asked: []reading{{begin: 0, hops: hops{p: {n1}}}, {begin: time.Second, hops: hops{p: {n1, n2}}}, {begin: 2 * time.Second, hops: hops{p: {n1}}}},
		readings: []reading{{0, beat, hops{p: {n1}}}, {3 * time.Second, 4 * time.Second, hops{p: {n1}}},
			{10 * time.Second, 11 * time.Second, hops{p: {n1}}}, {time.Minute, time.Minute, hops{p: {n1}}}},
	}
	if !l.mayHave(p, n2, time.Second, 2*time.Second) {
		t.Error("it may have had the hop between the readings")
	}
	if l.mayHave(p, n2, 20*time.Second, 30*time.Second) {
		t.Error("it cannot have had the hop so much later")
	}
}
