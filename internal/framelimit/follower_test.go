// SPDX-License-Identifier: Apache-2.0

package framelimit

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/net/http2"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// followed is what a follower says of pieces in all.
func followed(pieces ...[]byte) (cost, updates int) {
	f := newFollower()
	for _, p := range pieces {
		c, u := f.follow(p)
		cost, updates = cost+c, updates+u
	}
	return cost, updates
}

// split cuts bytes where drawn.
func split(p []byte, lengths []byte) (pieces [][]byte) {
	for _, n := range lengths {
		n := min(int(n), len(p))
		pieces = append(pieces, p[:n])
		p = p[n:]
	}
	return append(pieces, p)
}

// What a client sent costs what its frames cost, as the library has written them, wherever what is read begins and ends.
func TestFramesCostWhatTheyAre(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		sent := bytes.NewBufferString(http2.ClientPreface)
		framer := http2.NewFramer(sent, nil)
		framer.AllowIllegalWrites = true
		cost, updates := 0, 0
		for range rapid.IntRange(0, 20).Draw(t, "frames") {
			payload := bytes.Repeat([]byte{byte(rapid.IntRange(0, 255).Draw(t, "byte"))}, rapid.SampledFrom([]int{0, 1, 4, 5, 6, 8, 9, 10, 31, 32, 33, 300, 16 << 10}).Draw(t, "length"))
			kind := http2.FrameType(rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0x10, 0xfa}).Draw(t, "kind"))
			if err := framer.WriteRawFrame(kind, http2.Flags(rapid.Byte().Draw(t, "flags")), rapid.Uint32Range(0, 1<<31-1).Draw(t, "stream"), payload); err != nil {
				t.Fatal(err)
			}
			switch kind {
			case http2.FrameHeaders:
				cost += 8 + len(payload)/32
			case http2.FrameContinuation:
				cost += 1 + len(payload)/32
			case http2.FrameWindowUpdate:
				updates++
			default:
				cost++
			}
		}
		pieces := split(sent.Bytes(), rapid.SliceOf(rapid.Byte()).Draw(t, "reads"))
		if gotCost, gotUpdates := followed(pieces...); gotCost != cost || gotUpdates != updates {
			t.Fatalf("%d and %d updates, want %d and %d", gotCost, gotUpdates, cost, updates)
		}
	})
}

// Whatever comes is followed, and costs the same wherever what is read begins and ends.
func FuzzFollow(f *testing.F) {
	settings := http2.ClientPreface + "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00"
	f.Add([]byte(settings), []byte{1, 30, 2})
	f.Add([]byte(settings+"\x00\x00\x20\x01\x04\x00\x00\x00\x01"), []byte{24, 0, 9})
	f.Add([]byte(settings+"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"), []byte{255})
	f.Fuzz(func(t *testing.T, sent, lengths []byte) {
		cost, updates := followed(sent)
		if gotCost, gotUpdates := followed(split(sent, lengths)...); gotCost != cost || gotUpdates != updates {
			t.Errorf("%d and %d updates, in one piece %d and %d", gotCost, gotUpdates, cost, updates)
		}
		byByte := slices.Collect(slices.Chunk(sent, 1))
		if gotCost, gotUpdates := followed(byByte...); gotCost != cost || gotUpdates != updates {
			t.Errorf("a byte at a time %d and %d updates, in one piece %d and %d", gotCost, gotUpdates, cost, updates)
		}
	})
}

func BenchmarkFollow(b *testing.B) {
	sent := bytes.NewBufferString(http2.ClientPreface)
	framer := http2.NewFramer(sent, nil)
	for range 100 {
		if err := framer.WriteData(1, false, make([]byte, 16<<10)); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(sent.Len()))
	b.ReportAllocs()
	for b.Loop() {
		followed(sent.Bytes())
	}
}
