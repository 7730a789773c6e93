// SPDX-License-Identifier: Apache-2.0

package appliedstate

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/internal/testkit"
)

// full returns routes in which no field has its zero value, so that a field that the format forgets is seen.
func full(t *testing.T) bgp.Routes {
	r := bgp.Routes{Revision: bgp.Revision{Epoch: 2, Index: 77}, Peers: make([]bgp.Peer, 2)}
	paths := make([]bgp.Path, 2)
	for i := range 2 {
		fill(t, reflect.ValueOf(&paths[i]).Elem())
		fill(t, reflect.ValueOf(&r.Peers[i]).Elem())
		paths[i].PathID = 0 // follows from the others
	}
	return r
}

func fill(t *testing.T, v reflect.Value) {
	switch v.Interface().(type) {
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.MustParseAddr("2001:db8::1")))
		return
	case netip.Prefix:
		v.Set(reflect.ValueOf(netip.MustParsePrefix("203.0.113.0/24")))
		return
	case time.Duration:
		v.SetInt(int64(90 * time.Second))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.String:
		v.SetString("text \"\n")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(3)
	default:
		t.Fatalf("no value for %s", v.Type())
	}
}

func TestWhatWasSavedIsLoaded(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir(), "group-a")
	if r, err := f.Load(); r != nil || err != nil {
		t.Fatalf("before the first save: %v, %v", r, err)
	}
	want := full(t)
	for _, r := range []bgp.Routes{{Revision: bgp.Revision{Epoch: 1, Index: 1}}, want} {
		if err := f.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := f.Load()
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("loaded %+v, %v\nwant %+v", got, err, want)
	}
}

func TestFileIsForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := In(folder, "g").Save(full(t)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	if info, _ := entries[0].Info(); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// Whatever happens to the file, what is loaded is what was saved, or nothing.
func TestPropertyDamagedFileIsRefused(t *testing.T) {
	folder := t.TempDir()
	f := In(folder, "g")
	if err := f.Save(full(t)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(folder, FileName)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Check(t, func(t *rapid.T) {
		bad := append([]byte(nil), good...)
		if rapid.Bool().Draw(t, "truncate") {
			bad = bad[:rapid.IntRange(0, len(bad)-1).Draw(t, "length")]
		} else {
			at := rapid.IntRange(0, len(bad)-1).Draw(t, "byte")
			bad[at] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
		}
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := f.Load(); r != nil || !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), name) {
			t.Fatalf("loaded %v, %v", r, err)
		}
	})
}

func TestFileOfAnotherGroupIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := In(folder, "group-a").Save(full(t)); err != nil {
		t.Fatal(err)
	}
	if r, err := In(folder, "group-b").Load(); r != nil || !errors.Is(err, ErrForeign) {
		t.Errorf("loaded %v, %v", r, err)
	}
}

func TestFailedSaveLeavesTheOldState(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	f := In(folder, "g")
	old := bgp.Routes{Revision: bgp.Revision{Epoch: 1, Index: 5}}
	if err := f.Save(old); err != nil {
		t.Fatal(err)
	}
	// A folder stands where the new file is to be written.
	if err := os.Mkdir(filepath.Join(folder, FileName+".tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(full(t)); err == nil {
		t.Error("no error")
	}
	if got, err := f.Load(); err != nil || got.Revision != old.Revision {
		t.Errorf("loaded %v, %v", got, err)
	}
}
