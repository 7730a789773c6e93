// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/wire"
	"fairlead.io/fairlead/internal/testkit"
)

// Google's library, given the file that Schema prints, reads what Append wrote as the same values, and writes
// it as the same bytes: it knows nothing of this package, so neither schema nor bytes can be wrong alone.
func TestPropertyProtobufReadsWhatAppendWrote(t *testing.T) {
	file := parseProto(t, sampleSchema(t))
	desc, err := protodesc.NewFile(file, new(protoregistry.Files))
	if err != nil {
		t.Fatal(err)
	}
	messageType := dynamicpb.NewMessageType(desc.Messages().ByName("sample"))
	testkit.Check(t, func(t *rapid.T) {
		v := genSample().Draw(t, "value")
		data, err := wire.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		message := messageType.New()
		if err := proto.Unmarshal(data, message.Interface()); err != nil {
			t.Fatalf("protobuf refuses %x: %v", data, err)
		}
		sameStruct(t, "sample", reflect.ValueOf(*v), message)
		again, err := proto.MarshalOptions{Deterministic: true}.Marshal(message.Interface())
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("protobuf writes %x, we %x (%v)", again, data, err)
		}
	})
}

// sameStruct compares a struct with the message that protobuf made of its bytes.
func sameStruct(t *rapid.T, path string, v reflect.Value, m protoreflect.Message) {
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		t.Fatalf("%s: not in the schema: %x", path, unknown)
	}
	for i := range v.NumField() {
		goField := v.Type().Field(i)
		if goField.Tag.Get("pb") == "inline" {
			inside := v.Field(i)
			if inside.IsNil() {
				inside = reflect.New(inside.Type().Elem())
			}
			sameStruct(t, path, inside.Elem(), m)
			continue
		}
		number, err := strconv.Atoi(goField.Tag.Get("pb"))
		if err != nil {
			continue
		}
		path := path + "." + goField.Name
		f := m.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(number))
		switch field := v.Field(i); {
		case f.IsList():
			list := m.Get(f).List()
			if list.Len() != field.Len() {
				t.Fatalf("%s: protobuf sees %d elements of %d", path, list.Len(), field.Len())
			}
			for j := range field.Len() {
				sameValue(t, path, field.Index(j), list.Get(j))
			}
		case field.Kind() == reflect.Pointer:
			if m.Has(f) == field.IsNil() {
				t.Fatalf("%s: nil %v, protobuf sees it %v", path, field.IsNil(), m.Has(f))
			}
			if !field.IsNil() {
				sameValue(t, path, field, m.Get(f))
			}
		default:
			sameValue(t, path, field, m.Get(f))
		}
	}
}

func sameValue(t *rapid.T, path string, v reflect.Value, p protoreflect.Value) {
	var want, got any
	switch x := v.Interface().(type) {
	case netip.Addr:
		want, _ = x.MarshalBinary()
		got = p.Bytes()
	case vip:
		want, _ = netip.Addr(x).MarshalBinary()
		got = p.Bytes()
	case netip.Prefix:
		want, _ = x.MarshalBinary()
		got = p.Bytes()
		if !x.IsValid() {
			want = []byte{} // MarshalBinary has a byte for the length of no prefix
		}
	case groupID:
		want, got = x[:], p.Bytes()
		if x == (groupID{}) {
			want = []byte{}
		}
	case time.Duration:
		want, got = x.Nanoseconds(), p.Int()
	case []byte:
		want, got = x, p.Bytes()
	default:
		switch v.Kind() {
		case reflect.Struct:
			sameStruct(t, path, v, p.Message())
			return
		case reflect.Pointer:
			sameStruct(t, path, v.Elem(), p.Message())
			return
		}
		want, got = fmt.Sprint(v), fmt.Sprint(p.Interface())
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Fatalf("%s: protobuf sees %v, want %v", path, got, want)
	}
}

func sampleSchema(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	if err := wire.Schema(&text, "fairlead.test", []wire.Named{{Value: &sample{}, Comment: "Every shape."}}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// The compiler reads the file as this test does.
func TestSchemaCompiles(t *testing.T) {
	checkWithProtoc(t, sampleSchema(t))
}

func checkWithProtoc(t *testing.T, text string) {
	t.Helper()
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		t.Skip("no protoc on this machine (apt-get install protobuf-compiler)")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "record.proto"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "set")
	if text, err := exec.Command(protoc, "-I", dir, "--descriptor_set_out", out, "record.proto").CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v\n%s", err, text)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(raw, &set); err != nil {
		t.Fatal(err)
	}
	for _, m := range set.File[0].MessageType {
		for _, f := range m.Field {
			f.JsonName = nil
		}
	}
	if got, want := parseProto(t, text), set.File[0]; !proto.Equal(got, want) {
		t.Fatalf("read here as\n%v\nby protoc as\n%v", got, want)
	}
}

var (
	protoMessage = regexp.MustCompile(`^message (\w+) \{$`)
	protoField   = regexp.MustCompile(`^  (repeated )?(\w+) (\w+) = (\d+);`)
)

// parseProto reads as much of proto3 as Schema writes.
func parseProto(t *testing.T, text string) *descriptorpb.FileDescriptorProto {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("record.proto"), Syntax: proto.String("proto3")}
	for _, line := range strings.Split(text, "\n") {
		if pkg, ok := strings.CutPrefix(line, "package "); ok {
			file.Package = proto.String(strings.TrimSuffix(pkg, ";"))
		} else if m := protoMessage.FindStringSubmatch(line); m != nil {
			file.MessageType = append(file.MessageType, &descriptorpb.DescriptorProto{Name: proto.String(m[1])})
		} else if m := protoField.FindStringSubmatch(line); m != nil {
			message := file.MessageType[len(file.MessageType)-1]
			message.Field = append(message.Field, parseField(t, file.GetPackage(), m))
		}
	}
	return file
}

func parseField(t *testing.T, pkg string, parts []string) *descriptorpb.FieldDescriptorProto {
	t.Helper()
	number, err := strconv.ParseInt(parts[4], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	f := &descriptorpb.FieldDescriptorProto{
		Name: proto.String(parts[3]), Number: proto.Int32(int32(number)),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}
	if parts[1] != "" {
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	if scalar, ok := descriptorpb.FieldDescriptorProto_Type_value["TYPE_"+strings.ToUpper(parts[2])]; ok {
		f.Type = descriptorpb.FieldDescriptorProto_Type(scalar).Enum()
	} else {
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
		f.TypeName = proto.String("." + pkg + "." + parts[2])
	}
	return f
}
