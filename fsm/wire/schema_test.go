// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm/wire"
)

func TestSchemaDescribesEachStructOnce(t *testing.T) {
	type Endpoint struct {
		Address  netip.Addr `pb:"2"`
		NodePort uint16     `pb:"1"`
		LBInfo   []string   `pb:"3"`
	}
	type Service struct {
		ID        groupID    `pb:"1"`
		Endpoints []Endpoint `pb:"2"`
		Spare     *Endpoint  `pb:"3"`
		State     state      `pb:"4"`
		Skipped   any        `pb:"-"`
	}
	var got strings.Builder
	err := wire.Schema(&got, "fairlead.test", []wire.Named{
		{Value: Service{}, Comment: "What clients dial."}, {Value: &Endpoint{}, Comment: "Said already."},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `syntax = "proto3";

package fairlead.test;

// What clients dial.
message Service {
  bytes id = 1; // groupID: 16 bytes, or none for zeroes
  repeated Endpoint endpoints = 2;
  Endpoint spare = 3;
  uint32 state = 4; // state
}

message Endpoint {
  uint32 node_port = 1;
  bytes address = 2; // address: 4 bytes, or 16 and the zone's name
  repeated string lb_info = 3;
}
`
	if got.String() != want {
		t.Fatalf("got\n%s\nwant\n%s", &got, want)
	}
}

type generic[T any] struct {
	A T `pb:"1"`
}

func TestSchemaRefusesWhatAProtoFileCannotName(t *testing.T) {
	type inner struct { // there is a wire_test.inner too
		A bool `pb:"1"`
	}
	type clash struct {
		NodeID string `pb:"1"`
		NodeId string `pb:"2"`
	}
	type pair struct {
		A sample `pb:"1"`
		B inner  `pb:"2"`
	}
	for name, c := range map[string]struct {
		value     any
		path, why string
	}{
		"generic":      {generic[int]{}, "wire_test.generic[int]", "no name that a .proto file could use"},
		"unnamed":      {struct{}{}, "struct {}", "no name that a .proto file could use"},
		"same-fields":  {clash{}, "clash.NodeId", "another field becomes node_id too"},
		"same-names":   {pair{}, "wire_test.inner", "wire_test.inner has that name already"},
		"no-encoding":  {generic[float64]{}, "generic[float64].A", "float64 has several zeroes and no NaN equals itself: use an integer with a unit"},
		"not-a-struct": {5, "int", "not a struct"},
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, wire.Schema(io.Discard, "fairlead.test", []wire.Named{{Value: c.value}}), c.path, c.why)
		})
	}
}

func TestSchemaReturnsTheWritersError(t *testing.T) {
	pipe, w := io.Pipe()
	want := errors.New("full")
	pipe.CloseWithError(want)
	if err := wire.Schema(w, "fairlead.test", nil); !errors.Is(err, want) {
		t.Fatalf("got %v", err)
	}
}
