// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/fsm/wire"
)

// record is about as large as the largest records of the fsm: twenty fields, most of them set.
type record struct {
	Name             string       `pb:"1"`
	Namespace        string       `pb:"2"`
	UID              string       `pb:"3"`
	Node             string       `pb:"4"`
	Address          netip.Addr   `pb:"5"`
	Prefix           netip.Prefix `pb:"6"`
	Port             uint16       `pb:"7"`
	Protocol         uint8        `pb:"8"`
	Weight           uint32       `pb:"9"`
	State            uint8        `pb:"10"`
	Attempt          uint64       `pb:"11"`
	Since            revision     `pb:"12"`
	Changed          revision     `pb:"13"`
	NextAttemptMilli int64        `pb:"14"`
	Ready            bool         `pb:"15"`
	Draining         bool         `pb:"16"`
	Reason           string       `pb:"17"`
	NextHops         []netip.Addr `pb:"18"`
	Marks            []uint64     `pb:"19"`
	Owner            *revision    `pb:"20"`
}

type revision struct {
	Epoch uint64 `pb:"1"`
	Index uint64 `pb:"2"`
}

func benchRecord() *record {
	return &record{
		Name: "checkout", Namespace: "shop", UID: "0d0e9f5e-6f43-4a5d-8b6e-0d9a5e0c2f11", Node: "node-17",
		Address: netip.MustParseAddr("192.0.2.10"), Prefix: netip.MustParsePrefix("198.51.100.0/24"), Port: 443,
		Protocol: 6, Weight: 1000, State: 3, Attempt: 2, Since: revision{1, 41_000}, Changed: revision{1, 42_000},
		NextAttemptMilli: 1_700_000_000_000, Ready: true, Reason: "driver answered",
		NextHops: []netip.Addr{netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")},
		Marks:    []uint64{1, 2, 300}, Owner: &revision{1, 2},
	}
}

func BenchmarkAppend(b *testing.B) {
	v := benchRecord()
	buf, err := wire.Append(nil, v)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = wire.Append(buf[:0], v)
	}
}

func BenchmarkDecode(b *testing.B) {
	data, err := wire.Append(nil, benchRecord())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var v record
	for b.Loop() {
		if err := wire.Decode(data, &v); err != nil {
			b.Fatal(err)
		}
	}
}
