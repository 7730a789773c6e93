// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

func files() []protoreflect.FileDescriptor {
	return []protoreflect.FileDescriptor{
		fairleadv1.File_fairlead_v1_common_proto,
		fairleadv1.File_fairlead_v1_raft_proto,
		fairleadv1.File_fairlead_v1_join_proto,
		fairleadv1.File_fairlead_v1_record_proto,
		fairleadv1.File_fairlead_v1_agent_proto,
	}
}

func changes(method protoreflect.MethodDescriptor) bool {
	options, _ := method.Options().(*descriptorpb.MethodOptions)
	return options.GetIdempotencyLevel() != descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}

// hasField looks in the message itself and in the header of a client stream.
func hasField(message protoreflect.MessageDescriptor, name protoreflect.Name, kind protoreflect.Kind) bool {
	if header := message.Fields().ByName("header"); header != nil {
		message = header.Message()
	}
	field := message.Fields().ByName(name)
	return field != nil && field.Kind() == kind
}

func TestEveryChangeToTheGroupCarriesForceAndReason(t *testing.T) {
	methods := fairleadv1.File_fairlead_v1_raft_proto.Services().ByName("RaftService").Methods()
	changing := 0
	for i := range methods.Len() {
		method := methods.Get(i)
		if !changes(method) {
			continue
		}
		changing++
		if !hasField(method.Input(), "force", protoreflect.BoolKind) {
			t.Errorf("%s: no bool force", method.Name())
		}
		if !hasField(method.Input(), "reason", protoreflect.StringKind) {
			t.Errorf("%s: no string reason", method.Name())
		}
	}
	if changing == 0 {
		t.Error("RaftService changes nothing")
	}
}

func TestEveryAgentRequestNamesItsNode(t *testing.T) {
	methods := fairleadv1.File_fairlead_v1_agent_proto.Services().ByName("AgentService").Methods()
	for i := range methods.Len() {
		if !hasField(methods.Get(i).Input(), "node", protoreflect.StringKind) {
			t.Errorf("%s: no string node", methods.Get(i).Name())
		}
	}
}

func TestEveryFileIsOfTheVersionItsPathNames(t *testing.T) {
	for _, file := range files() {
		if file.Package() != "fairlead.v1" {
			t.Errorf("%s: package %s", file.Path(), file.Package())
		}
		if !strings.HasPrefix(file.Path(), "fairlead/v1/") {
			t.Errorf("%s: outside fairlead/v1", file.Path())
		}
	}
}
