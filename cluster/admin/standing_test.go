// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/pki"
)

var updateTable = flag.Bool("update", false, "write the table of who may call what")

// standingOf has something against m9, x9 and the serial number 9f, and knows the members m1 and m2.
func standingOf() Standing {
	return Standing{
		Revoked: func(id pki.Identity, serial string, _ time.Time) string {
			if id.Name == "revoked" || serial == "9f" {
				return "revoked by operator/alice"
			}
			return ""
		},
		Serves: func(member string) bool { return member == "x" || member == "m2" },
	}
}

func gateFor(t *testing.T, now time.Time) *gate {
	t.Helper()
	s, err := NewServer(ServerOptions{
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: func() time.Time { return now }, Standing: standingOf(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.gate
}

// cases are the ways in which a caller of a role comes. Good is how it should.
func cases(role pki.Role, now time.Time) map[string]func() (Caller, http.Header) {
	caller := func(name, serial string, until time.Time) Caller {
		c := Caller{Identity: pki.Identity{Role: role, Name: name}, Membership: pki.Membership{Group: "g1"}}
		if role != Nobody {
			number, _ := new(big.Int).SetString(serial, 16)
			c.Certificate, c.Serial = &x509.Certificate{SerialNumber: number, NotAfter: until}, serial
		}
		return c
	}
	by := func(member string) (Caller, http.Header) {
		c := Caller{Identity: pki.Identity{Role: pki.Member, Name: member}, Membership: pki.Membership{Group: "g1"}, Serial: "1"}
		c.Certificate = &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: now.Add(time.Hour)}
		h := http.Header{}
		h.Set(headerActor, string(role)+"/x")
		h.Set(headerForwardedBy, member)
		h.Set(headerSerial, "4f")
		return c, h
	}
	direct := func(name, serial string, until time.Time) func() (Caller, http.Header) {
		return func() (Caller, http.Header) { return caller(name, serial, until), http.Header{} }
	}
	after := now.Add(time.Hour)
	out := map[string]func() (Caller, http.Header){"good": direct("x", "4f", after)}
	if role == Nobody {
		return out
	}
	out["revoked"] = direct("revoked", "4f", after)
	out["serial"] = direct("x", "9f", after)
	out["expired"] = direct("x", "4f", now.Add(-time.Second))
	out["by-server"] = func() (Caller, http.Header) { return by("m2") }
	out["by-removed"] = func() (Caller, http.Header) { return by("removed") }
	out["by-server-for-serial"] = func() (Caller, http.Header) {
		c, h := by("m2")
		h.Set(headerSerial, "9f")
		return c, h
	}
	if role == pki.Member {
		out["removed"] = direct("removed", "4f", after)
	}
	return out
}

// columns are the cases, in the order of the table.
var columns = []string{"good", "by-server", "removed", "by-removed", "expired", "revoked", "serial", "by-server-for-serial"}

// Who may call what, by role, and by how the caller stands with the group: the whole of it is in testdata, to be read. Nobody
// whose certificate is over or was revoked may call anything, whichever way he comes, and nobody by way of a member that was removed.
func TestRoleByProcedureByStanding(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	g := gateFor(t, now)
	may := func(role pki.Role, how, procedure string) (string, bool) {
		make, ok := cases(role, now)[how]
		if !ok {
			return "", false
		}
		caller, header := make()
		_, err := g.admit(WithCaller(context.Background(), caller), connect.Spec{Procedure: procedure}, connect.Peer{}, header)
		if err == nil {
			return "yes", true
		}
		return "-", true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-46s %-9s %s\n", "procedure", "role", strings.Join(columns, " "))
	var procedures []string
	for _, m := range methods(t) {
		procedures = append(procedures, m.procedure)
	}
	slices.Sort(procedures)
	for _, procedure := range procedures {
		for _, role := range append(pki.Roles(), Nobody) {
			line := fmt.Sprintf("%-46s %-9s", strings.TrimPrefix(procedure, "/fairlead.v1."), role)
			any := false
			for _, how := range columns {
				answer, asked := may(role, how, procedure)
				any = any || answer == "yes"
				line += fmt.Sprintf(" %-*s", len(how), answer)
				if forbidden := how != "good" && how != "by-server" && how != "removed"; asked && answer == "yes" && forbidden {
					t.Errorf("%s: %s may call although %s", procedure, role, how)
				}
			}
			if any {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
			}
		}
	}
	path := filepath.Join("testdata", "access.txt")
	if *updateTable {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != b.String() {
		t.Errorf("%s holds (%v)\n%s\nnow it is\n%s", path, err, want, &b)
	}
}

// A stream ends with the standing of whoever opened it.
func TestStreamsEndWithTheStandingOfTheirCallers(t *testing.T) {
	t.Parallel()
	var s streams
	ctx, cancel := context.WithCancelCause(t.Context())
	over := s.begin(stream{Caller{Identity: pki.Identity{Role: pki.Agent, Name: "n1"}}, "p", cancel})
	s.endStale(func(Caller, string) *Refusal { return nil })
	if ctx.Err() != nil {
		t.Fatal("ended for nothing")
	}
	s.endStale(func(c Caller, procedure string) *Refusal {
		return &Refusal{Code: Forbidden, What: procedure, Why: c.Actor()}
	})
	if cause := context.Cause(ctx); cause == nil || !strings.Contains(cause.Error(), "agent/n1") {
		t.Errorf("ended for %v", cause)
	}
	over()
	if len(s.open) != 0 {
		t.Error("it is remembered")
	}
}

func TestSignaturesTellWhoReallyAsked(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Caller{
		"operator/alice":                                  {},
		"operator/alice (certificate 4f1a)":               {Serial: "4f1a"},
		"operator/alice (by way of m2)":                   {ForwardedBy: "m2"},
		"operator/alice (certificate 4f1a, by way of m2)": {Serial: "4f1a", ForwardedBy: "m2"},
	} {
		c.Identity = pki.Identity{Role: pki.Operator, Name: "alice"}
		if got := c.Signature(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A member that has no record yet says so to whoever asks for what is in it, or has it changed: it would tell of an empty cluster, or of a format
// that is too old. What a group needs to come about, and what asks how its members are, is answered all the same.
func TestAMemberThatIsStartingSaysSo(t *testing.T) {
	t.Parallel()
	var starting atomic.Bool
	starting.Store(true)
	standing := standingOf()
	standing.Starting = func() (why, remedy string) {
		if !starting.Load() {
			return "", ""
		}
		return "m1 is starting", "try again in some seconds"
	}
	g := &gate{table: accessTable(), standing: standing, now: time.Now}
	waits := 0
	for procedure, rule := range accessTable() {
		asked := false // of a record, by people or agents
		switch service, _, _ := strings.Cut(strings.TrimPrefix(procedure, "/fairlead.v1."), "/"); service {
		case "RecordService", "EnrolService":
			asked = !slices.Contains(rule.roles, Nobody) && !slices.Equal(rule.roles, []pki.Role{pki.Member})
		}
		for _, role := range rule.roles {
			caller := Caller{Identity: pki.Identity{Role: role, Name: "x"}, Membership: pki.Membership{Group: "g1", Epoch: 1}}
			starting.Store(false)
			if refusal := g.refuse(caller, procedure); refusal != nil {
				t.Errorf("%s by %s, of a member that has its record: %v", procedure, role, refusal)
			}
			starting.Store(true)
			refusal := g.refuse(caller, procedure)
			if refused := refusal != nil; refused != asked {
				t.Errorf("%s by %s: %v", procedure, role, refusal)
				continue
			}
			if refusal != nil {
				waits++
				if !errors.Is(refusal, NotReady) || !strings.Contains(refusal.Error(), "is starting") || !strings.Contains(refusal.Error(), "try again") {
					t.Errorf("%s by %s: %v", procedure, role, refusal)
				}
			}
		}
	}
	if waits == 0 {
		t.Error("nothing waits for the record")
	}
}
