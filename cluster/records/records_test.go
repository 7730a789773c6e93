// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	apirecords "fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
)

var update = flag.Bool("update", false, "write the golden files anew")

func furnished(t *testing.T) (*grouptest.Group, *records.Service) {
	g := grouptest.NewGroup(t)
	furnish(t, g)
	return g, records.New(records.Options{Member: "m1", Record: g, Leader: g, Sessions: func() map[fsm.PeerName]string {
		return map[fsm.PeerName]string{"tor": "established"}
	}})
}

func get(t *testing.T, s *records.Service, req *fairleadv1.GetRequest) *fairleadv1.GetResponse {
	t.Helper()
	answer, err := s.Get(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// The documents are what scripts rely on: a golden file may gain fields, and lose or change none.
func TestDocumentsAreAsReleased(t *testing.T) {
	t.Parallel()
	g, s := furnished(t)
	g.Apply(t, &fsm.BeginDrain{Of: fsm.DrainNode, Name: "n2"})
	for _, k := range apirecords.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			answer := get(t, s, &fairleadv1.GetRequest{Kind: k.Name})
			var got bytes.Buffer
			for _, d := range answer.GetDocuments() {
				d := strings.ReplaceAll(d, g.Read().Digest().String(), "(the record's)")
				if err := json.Indent(&got, []byte(d), "", "  "); err != nil {
					t.Fatal(err)
				}
				got.WriteByte('\n')
			}
			golden := filepath.Join("testdata", k.Name+".golden")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("got\n%swant\n%s", got.Bytes(), want)
			}
		})
	}
}

// Whom the addresses of a pool are sent to is seen at the pool, by what speakers go by.
func TestPoolsSayWhomTheyAreAnnouncedTo(t *testing.T) {
	t.Parallel()
	g, s := furnished(t)
	says := func(pool, want string) {
		t.Helper()
		var d apirecords.Pool
		answer := get(t, s, &fairleadv1.GetRequest{Kind: "pools", Name: pool})
		if err := json.Unmarshal([]byte(answer.GetDocuments()[0]), &d); err != nil || d.BGP != want {
			t.Errorf("pool %s: %q, want %q (%v)", pool, d.BGP, want, err)
		}
	}
	says("edge", "by default")
	says("six", "every peer")
	g.Apply(t, &fsm.PutAdvertisement{Advertisement: fsm.Advertisement{
		Name: fsm.Unadvertised, Pools: []fsm.PoolName{"edge", "six"}, Peers: []fsm.PeerName{fsm.Nobody}, Terms: fsm.AdvertisementTerms{Fallback: true},
	}})
	says("edge", "by default")
	says("six", "nobody")
	g.Apply(t, &fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "all"}})
	says("edge", "by all, default")
	says("six", "by all")
}

// What tables show must be in the documents, and no document may lack a name or hold a null list.
func TestColumnsNameFieldsThatExist(t *testing.T) {
	t.Parallel()
	g, s := furnished(t)
	g.Apply(t, &fsm.BeginDrain{Of: fsm.DrainNode, Name: "n2"})
	for _, k := range apirecords.Kinds() {
		answer := get(t, s, &fairleadv1.GetRequest{Kind: k.Name})
		if len(answer.GetDocuments()) == 0 {
			t.Errorf("%s: the furnished record has none", k.Name)
		}
		for _, d := range answer.GetDocuments() {
			var fields map[string]any
			if err := json.Unmarshal([]byte(d), &fields); err != nil {
				t.Fatal(err)
			}
			if name, _ := fields["name"].(string); name == "" {
				t.Errorf("%s: no name in %s", k.Name, d)
			}
			for _, c := range k.Columns {
				first, _, _ := strings.Cut(c.Path, ".")
				if _, ok := fields[first]; !ok {
					t.Errorf("%s: column %s shows %s, which is not in %s", k.Name, c.Title, c.Path, d)
				}
			}
		}
		if k.Columns[0].Path != "name" {
			t.Errorf("%s: the first column is %s, not the name", k.Name, k.Columns[0].Path)
		}
	}
}

func TestEveryObjectIsFoundByItsNameAndListedInOrder(t *testing.T) {
	t.Parallel()
	g, s := furnished(t)
	for _, k := range apirecords.Kinds() {
		var names []string
		for _, d := range get(t, s, &fairleadv1.GetRequest{Kind: k.Aliases[0]}).GetDocuments() {
			var named struct{ Name string }
			if err := json.Unmarshal([]byte(d), &named); err != nil {
				t.Fatal(err)
			}
			names = append(names, named.Name)
			one := get(t, s, &fairleadv1.GetRequest{Kind: k.Name, Name: named.Name})
			if len(one.GetDocuments()) != 1 || one.GetDocuments()[0] != d {
				t.Errorf("%s %s: got %v", k.Name, named.Name, one.GetDocuments())
			}
			if r := one.GetRevision(); fsm.Index(r.GetIndex()) != g.Read().Applied() || r.GetEpoch() != 1 {
				t.Errorf("%s %s: revision %v", k.Name, named.Name, r)
			}
		}
		if !slices.IsSorted(names) {
			t.Errorf("%s: %v are not sorted", k.Name, names)
		}
	}
}

func TestOtherNamesOfAnObject(t *testing.T) {
	t.Parallel()
	g, s := furnished(t)
	g.Apply(t, &fsm.PutService{Service: fsm.Service{ID: "shop/mail", UID: "u"}},
		&fsm.Allocate{Address: addr("192.0.2.10"), Service: "shop/mail", Ports: []fsm.Port{{Protocol: fsm.UDP, Number: 53}}, SharingKey: "edge"})
	for _, c := range []struct {
		kind, name string
		want       int
	}{
		{"allocations", "192.0.2.10", 2},
		{"allocations", "192.0.2.10 shop/web", 1},
		{"routes", "192.0.2.10", 1},
		{"routes", "192.0.2.10/32", 1},
		{"members", "m1", 1},
		{"members", "m1-a1b2", 1},
		{"group", "group", 1},
	} {
		if got := len(get(t, s, &fairleadv1.GetRequest{Kind: c.kind, Name: c.name}).GetDocuments()); got != c.want {
			t.Errorf("%s %s: %d documents, want %d", c.kind, c.name, got, c.want)
		}
	}
}

func TestUnknownKindNamesTheKinds(t *testing.T) {
	t.Parallel()
	_, s := furnished(t)
	_, get := s.Get(t.Context(), &fairleadv1.GetRequest{Kind: "cats"})
	_, describe := s.Describe(t.Context(), &fairleadv1.DescribeRequest{Kind: "cats", Name: "tom"})
	for _, err := range []error{get, describe} {
		if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "routes, peers") {
			t.Errorf("error %v", err)
		}
	}
	_, err := s.Get(t.Context(), &fairleadv1.GetRequest{Kind: "routes", Name: "192.0.2.77"})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("unknown name: %v", err)
	}
}

func TestPagesJoinToTheWholeList(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	const n = 1203
	for i := range n {
		name := fsm.NodeID(fmt.Sprintf("n%04d", i))
		g.Apply(t, &fsm.PutNode{ID: name, Eligible: i%7 == 0})
	}
	s := records.New(records.Options{Record: g, Leader: g})
	for name, c := range map[string]struct {
		limit  uint32
		filter map[string]string
		want   int
	}{
		"own-limit":      {0, nil, n},
		"small":          {100, nil, n},
		"larger-than-ok": {1 << 31, nil, n},
		"filtered":       {10, map[string]string{"eligible": "true"}, 172},
		"nothing":        {10, map[string]string{"name": "n9999"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			req := &fairleadv1.GetRequest{Kind: "nodes", Limit: c.limit, Filter: c.filter}
			seen := map[string]bool{}
			for {
				answer := get(t, s, req)
				if len(answer.GetDocuments()) > 1000 || c.limit > 0 && len(answer.GetDocuments()) > int(c.limit) {
					t.Fatalf("a page of %d", len(answer.GetDocuments()))
				}
				for _, d := range answer.GetDocuments() {
					if seen[d] {
						t.Fatalf("twice: %s", d)
					}
					seen[d] = true
				}
				if !answer.GetMore() {
					break
				}
				req.After = answer.GetNext()
			}
			if len(seen) != c.want {
				t.Errorf("%d objects, want %d", len(seen), c.want)
			}
		})
	}
}

func TestFilterLooksIntoLists(t *testing.T) {
	t.Parallel()
	_, s := furnished(t)
	answer := get(t, s, &fairleadv1.GetRequest{Kind: "routes", Filter: map[string]string{"services": "shop/web"}})
	if len(answer.GetDocuments()) != 1 {
		t.Errorf("%v", answer)
	}
	answer = get(t, s, &fairleadv1.GetRequest{Kind: "routes", Filter: map[string]string{"services": "shop"}})
	if len(answer.GetDocuments()) != 0 {
		t.Errorf("%v", answer)
	}
}

// Former releases kept passwords that stood in URLs of drivers; viewers may read the record.
func TestPasswordsInTheRecordAreNotShown(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutDriver{Driver: fsm.Driver{Name: "shop/clb", URL: "https://u:hunter2@192.0.2.7/v1"}})
	s := records.New(records.Options{Record: g, Leader: g})
	listed := get(t, s, &fairleadv1.GetRequest{Kind: "drivers"})
	told, err := s.Describe(t.Context(), &fairleadv1.DescribeRequest{Kind: "driver", Name: "shop/clb"})
	if err != nil {
		t.Fatal(err)
	}
	if shown := listed.String() + told.String(); strings.Contains(shown, "hunter2") || !strings.Contains(shown, "https://192.0.2.7/v1") {
		t.Errorf("shown: %s", shown)
	}
}

// The steps of an object stay readable after it is gone, and go on when one of that name comes back.
func TestDescribeRemembersWhatIsGone(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	s := records.New(records.Options{Record: g, Leader: g})
	describe := func() *fairleadv1.DescribeResponse {
		t.Helper()
		answer, err := s.Describe(t.Context(), &fairleadv1.DescribeRequest{Kind: "node", Name: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	changes := func(answer *fairleadv1.DescribeResponse) []string {
		var out []string
		for _, h := range answer.GetHistory() {
			out = append(out, h.GetChange())
			if h.GetActor() != "operator/alice" || h.GetReason() != "test" || h.GetTerm() != 3 || h.GetTime() != "2023-11-14T22:13:20.123Z" || h.GetRevision().GetIndex() == 0 {
				t.Errorf("step %v", h)
			}
		}
		return out
	}
	g.Apply(t, &fsm.PutNode{ID: "n1", Eligible: true}, &fsm.PutNode{ID: "n1", Why: "cordoned"})
	if got, want := changes(describe()), []string{"joined", "not eligible: cordoned"}; !slices.Equal(got, want) {
		t.Errorf("alive: %q, want %q", got, want)
	}
	g.Apply(t, &fsm.DeleteNode{ID: "n1"})
	gone := describe()
	if gone.GetDocument() != "" {
		t.Errorf("a document of what is gone: %s", gone.GetDocument())
	}
	if got, want := changes(gone), []string{"joined", "not eligible: cordoned", "gone"}; !slices.Equal(got, want) {
		t.Errorf("gone: %q, want %q", got, want)
	}
	g.Apply(t, &fsm.PutNode{ID: "n1", Eligible: true})
	back := describe()
	if got, want := changes(back), []string{"joined", "not eligible: cordoned", "gone", "joined"}; !slices.Equal(got, want) || back.GetDocument() == "" {
		t.Errorf("back: %q, want %q", got, want)
	}
	_, err := s.Describe(t.Context(), &fairleadv1.DescribeRequest{Kind: "node", Name: "n2"})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("never heard of: %v", err)
	}
}

func TestReadsAreServedToLookersOverTLS(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	furnish(t, g)
	clients := serve(t, records.Options{Member: "m1", Record: g, Leader: g})
	for _, role := range []pki.Role{pki.Viewer, pki.Operator, pki.Member} {
		answer, err := clients(role).Record.Get(t.Context(), &fairleadv1.GetRequest{Kind: "services"})
		if err != nil || len(answer.GetDocuments()) != 3 {
			t.Errorf("%s: %v, %v", role, answer, err)
		}
	}
	if _, err := clients(pki.Agent).Record.Get(t.Context(), &fairleadv1.GetRequest{Kind: "services"}); err == nil {
		t.Error("an agent may read the record")
	}
}
