// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"pgregory.net/rapid"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

type method struct {
	procedure string
	looks     bool // it has no side effects, says the API's definition
	streams   bool
	input     protoreflect.MessageDescriptor
}

func methods(t testing.TB) []method {
	t.Helper()
	var out []method
	protoregistry.GlobalFiles.RangeFilesByPackage(fairleadv1.File_fairlead_v1_common_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				options, _ := m.Options().(*descriptorpb.MethodOptions)
				out = append(out, method{
					procedure: "/" + string(service.FullName()) + "/" + string(m.Name()),
					looks:     options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS,
					streams:   m.IsStreamingClient() || m.IsStreamingServer(),
					input:     m.Input(),
				})
			}
		}
		return true
	})
	if len(out) < 15 {
		t.Fatalf("only %d methods found", len(out))
	}
	return out
}

func TestTableKnowsEveryMethodAndNoOther(t *testing.T) {
	t.Parallel()
	table := accessTable()
	for _, m := range methods(t) {
		rule, ok := table[m.procedure]
		if !ok {
			t.Errorf("%s is not in the table", m.procedure)
			continue
		}
		delete(table, m.procedure)
		if len(rule.roles) == 0 || rule.maxMessage == 0 {
			t.Errorf("%s: no roles or no bound: %+v", m.procedure, rule)
		}
		if m.streams != (rule.within == 0) {
			t.Errorf("%s: streams %v, bounded to %s", m.procedure, m.streams, rule.within)
		}
		if rule.own == ownNode && m.input.Fields().ByName("node") == nil || rule.own == ownName && m.input.Fields().ByName("name") == nil {
			t.Errorf("%s: its request does not say whom it is about", m.procedure)
		}
	}
	for procedure := range table {
		t.Errorf("%s is in the table and not in the API", procedure)
	}
}

func TestAgentsSpeakForTheirNodeAlone(t *testing.T) {
	t.Parallel()
	for procedure, rule := range accessTable() {
		speaks := func(r pki.Role) bool { return r == pki.Agent || r == pki.Host }
		if slices.ContainsFunc(rule.roles, speaks) && (rule.own != ownNode || !slices.Equal(rule.roles, slices.DeleteFunc(slices.Clone(rule.roles), func(r pki.Role) bool { return !speaks(r) }))) {
			t.Errorf("%s: %+v", procedure, rule)
		}
	}
}

// Balancing §15: whoever gets hold of a host outside the cluster can learn what its programs get to, and nothing else.
// Rule: balancing §15.
func TestHostsOutsideMayDoNothingButFollow(t *testing.T) {
	t.Parallel()
	var have []string
	for procedure, rule := range accessTable() {
		if slices.Contains(rule.roles, pki.Host) {
			have = append(have, procedure)
		}
	}
	slices.Sort(have)
	if want := []string{
		fairleadv1connect.AgentServiceAcknowledgeProcedure, fairleadv1connect.AgentServiceHeartbeatProcedure, fairleadv1connect.AgentServiceSyncProcedure,
		fairleadv1connect.EnrolServiceRenewProcedure,
	}; !slices.Equal(have, want) {
		t.Errorf("they may call %v", have)
	}
}

// Whoever calls what, by whichever way: a viewer changes nothing, an agent leaves the group alone, only an
// operator administers it, and nobody gets more by going through a member than he has himself.
func TestPropertyRolesAreKept(t *testing.T) {
	t.Parallel()
	all, table := methods(t), accessTable()
	testkit.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(all).Draw(t, "method")
		caller := Caller{
			Identity:   pki.Identity{Role: rapid.SampledFrom(append(pki.Roles(), Nobody, "", "root")).Draw(t, "role"), Name: "x"},
			Membership: pki.Membership{Group: rapid.SampledFrom([]string{"", "g1"}).Draw(t, "group")},
		}
		if rapid.Bool().Draw(t, "forwarded") {
			caller.ForwardedBy = "m2"
		}
		if table[m.procedure].admit(caller, m.procedure) != nil {
			return
		}
		service := m.input.ParentFile().Services().Get(0).Name()
		switch role := caller.Identity.Role; {
		case role == pki.Viewer && !m.looks:
			t.Fatalf("a viewer may call %s", m.procedure)
		case role == Nobody && m.procedure != fairleadv1connect.EnrolServiceEnrolProcedure:
			t.Fatalf("a caller without certificate may call %s", m.procedure)
		case role == pki.Agent && service != "AgentService" && m.procedure != fairleadv1connect.EnrolServiceRenewProcedure:
			t.Fatalf("an agent may call %s", m.procedure)
		case service == "RaftService" && !m.looks && role != pki.Operator:
			t.Fatalf("%s may call %s", role, m.procedure)
		case service == "JoinService" && role != pki.Member:
			t.Fatalf("%s may call %s", role, m.procedure)
		case role != Nobody && !slices.Contains(pki.Roles(), role):
			t.Fatalf("unknown role %q may call %s", role, m.procedure)
		case caller.ForwardedBy != "" && caller.Membership.Group == "":
			t.Fatalf("an empty member hands on %s", m.procedure)
		}
		direct := caller
		direct.ForwardedBy = ""
		if table[m.procedure].admit(direct, m.procedure) != nil {
			t.Fatalf("%s may call %s only through a member", caller.Actor(), m.procedure)
		}
	})
}

// Boot ids are bounded in whatever agents send, by what the record takes.
func TestBootIDsAreBounded(t *testing.T) {
	t.Parallel()
	table, seen := accessTable(), 0
	caller := Caller{Identity: pki.Identity{Role: pki.Agent, Name: "n1"}}
	for _, m := range methods(t) {
		boot := m.input.Fields().ByName("boot")
		if boot == nil || !slices.Contains(table[m.procedure].roles, pki.Agent) {
			continue
		}
		seen++
		kind, err := protoregistry.GlobalTypes.FindMessageByName(m.input.FullName())
		if err != nil {
			t.Fatal(err)
		}
		for length, want := range map[int]Code{maxBoot: "", maxBoot + 1: Invalid} {
			message := kind.New()
			message.Set(m.input.Fields().ByName("node"), protoreflect.ValueOfString("n1"))
			message.Set(boot, protoreflect.ValueOfString(strings.Repeat("x", length)))
			refusal := table[m.procedure].admitMessage(caller, m.procedure, message.Interface())
			if (refusal == nil) != (want == "") || refusal != nil && refusal.Code != want {
				t.Errorf("%s with %d bytes: %v", m.procedure, length, refusal)
			}
			if _, err := fsm.Fit(fsm.Proposal{Command: &fsm.RegisterBoot{Node: "n1", Boot: fsm.BootID(strings.Repeat("x", length))}}); (err == nil) != (want == "") {
				t.Errorf("the record takes other boot ids: of %d bytes: %v", length, err)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d calls of agents name a boot", seen)
	}
}
