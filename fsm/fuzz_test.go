// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm/wire"
)

// FuzzSnapshots reads records that somebody else wrote, with sums that are right, as those of a file that was made to be restored: it is
// refused, or is a record that is written and read again as it is.
func FuzzSnapshots(f *testing.F) {
	for _, s := range snapshotsToFuzz(f) {
		f.Add(recordsOf(f, s))
	}
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, records []byte) {
		whole, ok := withSums(t, records)
		if !ok {
			return
		}
		s := New()
		if err := s.Restore(bytes.NewReader(whole)); err != nil {
			return
		}
		var first, second bytes.Buffer
		if err := s.Freeze().Write(&first); err != nil {
			t.Fatalf("it was read, and cannot be written: %v", err)
		}
		again := New()
		if err := again.Restore(bytes.NewReader(first.Bytes())); err != nil || again.Digest() != s.Digest() {
			t.Fatalf("written, and read again as %s, not %s (%v)", again.Digest(), s.Digest(), err)
		}
		if err := again.Freeze().Write(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("written again it is another file (%v)", err)
		}
	})
}

// snapshotsToFuzz are an empty record, and one with a row of several kinds.
func snapshotsToFuzz(t testing.TB) []*State {
	t.Helper()
	s := New()
	for i, c := range []Command{
		&InitGroup{Group: "g", Format: NewestFormat, Settings: Settings{HistoryLimit: 4}},
		&ReportMember{Server: "m1-a1", Name: "m1", Raft: "203.0.113.1:7444", API: "203.0.113.1:7443", Format: NewestFormat, Version: "0.1.0", Run: "r1"},
		&PutPool{Pool: Pool{Name: "main", AutoAssign: true, Ranges: []Range{{From: netip.MustParseAddr("192.0.2.10"), To: netip.MustParseAddr("192.0.2.20")}}}},
		&PutNode{ID: "n1", UID: "u1", Version: 5, Addresses: []netip.Addr{netip.MustParseAddr("198.51.100.1")}, Eligible: true},
		&RegisterBoot{Node: "n1", Boot: "b1"},
		&PutService{Service: Service{ID: "a/b", UID: "u2", Version: 7, Frontends: []Frontend{{Port: Port{Protocol: TCP, Number: 443}}}}},
		&Allocate{Address: netip.MustParseAddr("192.0.2.10"), Service: "a/b", Pool: "main", Ports: []Port{{Protocol: TCP, Number: 443}}},
		&SetRoute{Prefix: HostPrefix(netip.MustParseAddr("192.0.2.10")), Hops: []HopSpec{{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}}},
		&PutEnrolment{ID: EnrolmentID(strings.Repeat("0a", 32)), Node: "n2", TTL: time.Hour},
		&PutPeer{Peer: Peer{Name: "tor", Address: netip.MustParseAddr("203.0.113.254"), ASN: 64512, IPv4: true, HoldTime: 9 * time.Second}},
		&RegisterHost{ID: "edge", Boot: "b2", Addresses: []netip.Addr{netip.MustParseAddr("198.51.100.77")}, Admit: true},
	} {
		_, epoch, _ := s.Identity()
		data, err := EncodeEntry(epoch, []Proposal{{Actor: "test", Reason: "fuzz", AtUnixMilli: 1_790_000_000_000, Command: c}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ApplyEntries([]LogEntry{{Index: Index(i + 1), Term: 1, Data: data}})[0][0].Err(); err != nil {
			t.Fatal(err)
		}
	}
	return []*State{New(), s}
}

// recordsOf are those of a snapshot, up to the zero that ends them.
func recordsOf(t testing.TB, s *State) []byte {
	t.Helper()
	var out []byte
	for i, table := range Tables() {
		for _, r := range List[Record](s.Read(), table) {
			data, err := wire.Append(nil, r)
			if err != nil {
				t.Fatal(err)
			}
			out = framed(binary.AppendUvarint(out, uint64(i)+1), data)
		}
	}
	return append(out, 0)
}

func framed(out, data []byte) []byte {
	return append(binary.AppendUvarint(out, uint64(len(data))), data...)
}

// withSums makes a snapshot of records whose sums and number are as they should be, if they can be read.
func withSums(t testing.TB, records []byte) ([]byte, bool) {
	t.Helper()
	in := &unframer{r: summed{r: bufio.NewReader(bytes.NewReader(records))}}
	s := New()
	tx := s.begin()
	n, err := in.records(tx)
	if err != nil {
		return nil, false
	}
	head, err := wire.Append(nil, &SnapshotHeader{Applied: 100, Digest: s.digest, Format: NewestFormat})
	if err != nil {
		t.Fatal(err)
	}
	read := records[:len(records)-in.r.r.Buffered()]
	out := append(framed([]byte(snapshotMagic), head), read...)
	foot, err := wire.Append(nil, &SnapshotFooter{Records: n, Sum: checksum(0, out)})
	if err != nil {
		t.Fatal(err)
	}
	return framed(out, foot), true
}
