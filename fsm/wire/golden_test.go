// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/wire"
)

// Golden files hold one value of each command kind and record with every field set, and a whole snapshot, in
// the encoding of each format: testdata/format1 is what members of format 1 wrote. Every release reads them
// all. A new field or kind needs a new format, so -update writes only the newest format's folder; once that
// is released, its files are never edited.
var update = flag.Bool("update", false, "write the golden files of the newest format, and record.proto")

func goldenDir() string { return filepath.Join("testdata", fmt.Sprintf("format%d", fsm.NewestFormat)) }

// golden is a file: what it is, the value as JSON for the reader of a diff, and the bytes in hexadecimal.
type golden struct {
	title string
	value string
	data  []byte
}

func (g golden) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n%s\n", g.title, g.value)
	for rest := g.data; len(rest) > 0; {
		n := min(len(rest), 32)
		fmt.Fprintf(&b, "%x\n", rest[:n])
		rest = rest[n:]
	}
	return b.String()
}

func parseGolden(t *testing.T, text string) golden {
	t.Helper()
	title, rest, ok := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
	value, digits, ok2 := strings.Cut(rest, "\n}\n")
	if !ok || !ok2 {
		t.Fatalf("not a golden file: %q", text)
	}
	data, err := hex.DecodeString(strings.ReplaceAll(digits, "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	return golden{title: title, value: value + "\n}", data: data}
}

// current compares a golden file of the newest format with what this release writes.
func current(t *testing.T, name string, want golden) {
	t.Helper()
	path := filepath.Join(goldenDir(), name+".golden")
	if *update {
		if err := os.MkdirAll(goldenDir(), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want.text()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./fsm/wire -update writes it)", err)
	}
	if g := parseGolden(t, string(have)); g.title != want.title || !sameJSON(t, g.value, want.value) || !bytes.Equal(g.data, want.data) {
		t.Errorf("%s holds\n%s\nthis release writes\n%s", path, have, want.text())
	}
}

// released calls f with every golden file of every format whose name starts with prefix.
func released(t *testing.T, prefix string, f func(t *testing.T, g golden)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "format*", prefix+"*.golden"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files (%v)", err)
	}
	for _, path := range files {
		t.Run(path, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f(t, parseGolden(t, string(text)))
		})
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sameJSON leaves out in which order fields stand, which is that of the struct and no matter of the format.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// readsAs compares a value with what its golden file tells. Fields of later formats are missing there, and zero here.
func readsAs(t *testing.T, have any, want string) {
	t.Helper()
	var h, w any
	text := toJSON(t, have)
	if err := errors.Join(json.Unmarshal([]byte(text), &h), json.Unmarshal([]byte(want), &w)); err != nil {
		t.Fatal(err)
	}
	omitUnset(t, have, h, w)
	if where := differs(h, w); where != "" {
		t.Errorf("at %s: reads as\n%s\nwant\n%s", where, text, want)
	}
}

// omitUnset takes from the JSON of a record what nothing is told of, and a record without anything in it has as well: the
// zero of a state has a name.
func omitUnset(t *testing.T, record, have, want any) {
	t.Helper()
	fields, isObject := have.(map[string]any)
	told, _ := want.(map[string]any)
	if _, isRecord := record.(fsm.Record); !isRecord || !isObject {
		return
	}
	var unset map[string]any
	if err := json.Unmarshal([]byte(toJSON(t, reflect.New(reflect.TypeOf(record).Elem()).Interface())), &unset); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(fields, func(key string, value any) bool {
		_, wanted := told[key]
		return !wanted && reflect.DeepEqual(value, unset[key])
	})
}

// differs names the first place where have is not what was wanted.
func differs(have, want any) string {
	w, isObject := want.(map[string]any)
	h, both := have.(map[string]any)
	if !isObject || !both {
		hs, bothLists := have.([]any)
		ws, isList := want.([]any)
		if !bothLists || !isList || len(hs) != len(ws) {
			if reflect.DeepEqual(have, want) {
				return ""
			}
			return "."
		}
		for i := range ws {
			if at := differs(hs[i], ws[i]); at != "" {
				return fmt.Sprintf("[%d]%s", i, at)
			}
		}
		return ""
	}
	for key := range maps.Keys(w) {
		if at := differs(h[key], w[key]); at != "" {
			return key + "." + at
		}
	}
	for key, value := range h {
		if _, told := w[key]; !told && !isZero(value) {
			return key
		}
	}
	return ""
}

// isZero tells whether JSON holds nothing but zeros.
func isZero(value any) bool {
	if fields, ok := value.(map[string]any); ok {
		for _, v := range fields {
			if !isZero(v) {
				return false
			}
		}
		return true
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}

// A command's golden file is a log entry that holds it alone.
func TestCommandEncodingsAreCurrent(t *testing.T) {
	for _, c := range fsm.Kinds() {
		name := reflect.TypeOf(c).Elem().Name()
		t.Run(name, func(t *testing.T) {
			fillAll(reflect.ValueOf(c).Elem(), name, new(byte))
			p := fsm.Proposal{Actor: "operator", Reason: "golden", AtUnixMilli: 1_790_000_000_000, Command: c}
			data, err := fsm.EncodeEntry(7, []fsm.Proposal{p})
			if err != nil {
				t.Fatal(err)
			}
			title := fmt.Sprintf("Command %d, %s, alone in an entry of epoch 7.", c.Kind(), name)
			current(t, "command-"+strings.ToLower(name), golden{title: title, value: toJSON(t, p), data: data})
		})
	}
}

func TestReleasedCommandsDecodeAndEncodeToTheSameBytes(t *testing.T) {
	released(t, "command-", func(t *testing.T, g golden) {
		epoch, proposals, err := fsm.DecodeEntry(g.data)
		if err != nil {
			t.Fatal(err)
		}
		readsAs(t, proposals[0], g.value)
		again, err := fsm.EncodeEntry(epoch, proposals)
		if err != nil || !bytes.Equal(again, g.data) {
			t.Errorf("written as %x (%v), want %x", again, err, g.data)
		}
	})
}

// records lists an empty record of every table.
func records() []fsm.Record {
	return []fsm.Record{
		&fsm.Group{}, &fsm.Member{}, &fsm.Pool{}, &fsm.Allocation{}, &fsm.Service{}, &fsm.Route{}, &fsm.Peer{},
		&fsm.Advertisement{}, &fsm.Node{}, &fsm.NodeConfig{}, &fsm.LoadBalancer{}, &fsm.Binding{}, &fsm.Operation{},
		&fsm.Lease{}, &fsm.Register{}, &fsm.Hold{}, &fsm.SourceView{}, &fsm.Grave{}, &fsm.Enrolment{},
		&fsm.Driver{}, &fsm.Drain{}, &fsm.L2Advertisement{}, &fsm.Move{}, &fsm.Policy{},
		&fsm.Host{},
		&fsm.Tunnel{},
		&fsm.Number{},
		&fsm.Revocation{},
	}
}

func TestRecordEncodingsAreCurrent(t *testing.T) {
	for i, r := range records() {
		if r.Table() != fsm.Tables()[i] {
			t.Fatalf("table %d is %s, this test has a record of %s", i+1, fsm.Tables()[i], r.Table())
		}
		name := reflect.TypeOf(r).Elem().Name()
		t.Run(name, func(t *testing.T) {
			fillAll(reflect.ValueOf(r).Elem(), name, new(byte))
			data, err := wire.Append(nil, r)
			if err != nil {
				t.Fatal(err)
			}
			current(t, "record-"+strings.ToLower(name),
				golden{title: fmt.Sprintf("Record of table %d, %s.", i+1, r.Table()), value: toJSON(t, r), data: data})
		})
	}
	if len(records()) != len(fsm.Tables()) {
		t.Fatalf("%d records for %d tables", len(records()), len(fsm.Tables()))
	}
}

func TestReleasedRecordsDecodeAndEncodeToTheSameBytes(t *testing.T) {
	byTable := map[string]reflect.Type{}
	for _, r := range records() {
		byTable[string(r.Table())] = reflect.TypeOf(r).Elem()
	}
	released(t, "record-", func(t *testing.T, g golden) {
		_, table, _ := strings.Cut(strings.TrimSuffix(g.title, "."), ", ")
		r := reflect.New(byTable[table]).Interface()
		if err := wire.Decode(g.data, r); err != nil {
			t.Fatal(err)
		}
		readsAs(t, r, g.value)
		again, err := wire.Append(nil, r)
		if err != nil || !bytes.Equal(again, g.data) {
			t.Errorf("written as %x (%v), want %x", again, err, g.data)
		}
	})
}

// fillAll sets every field to something that is not zero and that no other field has.
func fillAll(v reflect.Value, name string, n *byte) {
	*n++
	switch x := v.Addr().Interface().(type) {
	case *netip.Addr:
		*x = netip.AddrFrom4([4]byte{192, 0, 2, *n})
		return
	case *netip.Prefix:
		*x = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, 100, *n}), 32)
		return
	case *time.Duration:
		*x = time.Duration(*n) * time.Second
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(int64(*n) * -1000)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.String:
		v.SetString(fmt.Sprintf("%s-%d", strings.ToLower(name), *n))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillAll(v.Index(i), name, n)
		}
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if inlined(f) {
				v.FieldByIndex(f.Index).Set(reflect.New(f.Type.Elem()))
			}
		}
		for _, f := range inOrder(v.Type()) {
			fillAll(v.FieldByIndex(f.Index), f.Name, n)
		}
	default:
		panic(fmt.Sprintf("no sample of %s yet", v.Type()))
	}
}

func inlined(f reflect.StructField) bool { return f.Tag.Get("pb") == "inline" }

// inOrder lists the exported fields of a struct by their numbers, those of inlined structs among them: where they stand in it may change.
func inOrder(t reflect.Type) []reflect.StructField {
	fields := slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		return !f.IsExported() || inlined(f) || len(f.Index) > 1 && !inlined(t.FieldByIndex(f.Index[:1]))
	})
	number := func(f reflect.StructField) int {
		n, _ := strconv.Atoi(f.Tag.Get("pb")) // none where fields have no numbers
		return n
	}
	slices.SortStableFunc(fields, func(a, b reflect.StructField) int { return number(a) - number(b) })
	return fields
}
