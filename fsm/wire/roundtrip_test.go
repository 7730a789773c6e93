// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/wire"
	"fairlead.io/fairlead/internal/testkit"
)

// Whatever the type, a value comes back from its bytes as it was.
func TestPropertyDecodeReturnsWhatAppendWrote(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		goType := genType(2).Draw(t, "type")
		compiled, err := wire.Compile(goType)
		if err != nil {
			t.Fatal(err)
		}
		v := drawValue(t, goType)
		before := rapid.SliceOf(rapid.Byte()).Draw(t, "before")
		data, err := compiled.Append(before, v)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(data, before) {
			t.Fatalf("what stood before was changed: %x, was %x", data, before)
		}
		got := reflect.New(goType)
		if err := compiled.Decode(data[len(before):], got.Interface()); err != nil {
			t.Fatalf("decode %x: %v", data[len(before):], err)
		}
		if !reflect.DeepEqual(got.Interface(), v) {
			t.Fatalf("got  %+v\nwant %+v", got.Elem(), reflect.ValueOf(v).Elem())
		}
	})
}

// Bytes that were tampered with are refused, or are the one encoding of another value. This is what makes
// equal digests mean equal records.
func TestPropertyAcceptedBytesAreCanonical(t *testing.T) {
	accepted := 0
	testkit.Check(t, func(t *rapid.T) {
		goType := genType(2).Draw(t, "type")
		compiled, err := wire.Compile(goType)
		if err != nil {
			t.Fatal(err)
		}
		data, err := compiled.Append(nil, drawValue(t, goType))
		if err != nil {
			t.Fatal(err)
		}
		for range 10 { // most are refused
			tampered := tamper(t, bytes.Clone(data))
			got := reflect.New(goType)
			if err := compiled.Decode(tampered, got.Interface()); err != nil {
				if !got.Elem().IsZero() {
					t.Fatalf("left half a value behind: %+v", got.Elem())
				}
				continue
			}
			accepted++
			again, err := compiled.Append(nil, got.Interface())
			if err != nil || !bytes.Equal(again, tampered) {
				t.Fatalf("accepted %x, writes %x (%v)", tampered, again, err)
			}
		}
	})
	if accepted == 0 {
		t.Fatal("nothing was accepted: the test shows nothing")
	}
}

// tamper changes, drops, doubles, swaps or inserts a few bytes.
func tamper(t *rapid.T, data []byte) []byte {
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		if len(data) == 0 {
			return []byte{rapid.Byte().Draw(t, "only")}
		}
		i := rapid.IntRange(0, len(data)-1).Draw(t, "from")
		j := rapid.IntRange(i, len(data)).Draw(t, "to")
		cut := bytes.Clone(data[i:j])
		switch rapid.SampledFrom([]string{"set", "drop", "double", "append", "zero"}).Draw(t, "how") {
		case "set":
			data[i] = rapid.SampledFrom([]byte{0, 1, 2, 8, 10, 0x7f, 0x80, 0xff}).Draw(t, "byte")
		case "drop":
			data = append(data[:i:i], data[j:]...)
		case "double":
			data = append(data[:j:j], append(cut, data[j:]...)...)
		case "append":
			data = append(data, cut...)
		case "zero":
			data = append(data[:i:i], append([]byte{0}, data[i:]...)...)
		}
	}
	return data
}

// FuzzDecode looks for bytes that are accepted and are not what Append writes, and for panics.
//
// go test ./fsm/wire -run '^$' -fuzz FuzzDecode -fuzztime 1m
func FuzzDecode(f *testing.F) {
	for seed := range 8 {
		data, err := wire.Append(nil, genSample().Example(seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{0x08, 0x00})       // an explicit zero
	f.Add([]byte{0x18, 0x80, 0x00}) // a zero in two bytes
	f.Fuzz(func(t *testing.T, data []byte) {
		var v sample
		if err := wire.Decode(data, &v); err != nil {
			return
		}
		again, err := wire.Append(nil, &v)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("accepted %x, writes %x (%v)", data, again, err)
		}
	})
}

// A value passed by value gives the bytes that a pointer to it gives.
func TestAppendTakesValuesAndPointers(t *testing.T) {
	v := genSample().Example(1)
	byPointer, err := wire.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	byValue, err := wire.Append(nil, *v)
	if err != nil || !bytes.Equal(byValue, byPointer) {
		t.Fatalf("by value %x (%v), by pointer %x", byValue, err, byPointer)
	}
}

func TestAppendLeavesOutWhatIsNoPartOfTheValue(t *testing.T) {
	data, err := wire.Append(nil, &sample{hidden: 1, Cache: map[string]int{"a": 1}})
	if err != nil || len(data) != 0 {
		t.Fatalf("%x, %v", data, err)
	}
}

func TestAppendIntoLargeEnoughBufferDoesNotAllocate(t *testing.T) {
	v := genSample().Example(3)
	buf, err := wire.Append(nil, v)
	if err != nil || len(buf) < 100 {
		t.Fatalf("%d bytes, %v", len(buf), err)
	}
	if n := testing.AllocsPerRun(100, func() { buf, _ = wire.Append(buf[:0], v) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// Decoded values share nothing with the bytes they came from.
func TestDecodeKeepsNoReferenceToItsInput(t *testing.T) {
	data, err := wire.Append(nil, &sample{Name: "name", Raw: []byte("raw"), Raws: [][]byte{[]byte("raws")}})
	if err != nil {
		t.Fatal(err)
	}
	var v sample
	if err := wire.Decode(data, &v); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if v.Name != "name" || string(v.Raw) != "raw" || string(v.Raws[0]) != "raws" {
		t.Fatalf("changed with the input: %+v", v)
	}
}
