// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
)

// shop serves two services under the names that lists go by, and what else the documents may hold.
func shop() *fakeRecord {
	return &fakeRecord{
		names: []string{"shop/api", "shop/web", "zoo/esc"},
		documents: map[string]string{
			"shop/api": `{"name":"shop/api","state":"pending","addresses":[],"ports":[{"port":53}],"readyEndpoints":0,"pending":{"code":"no-pool","text":"no pool: add one"}}`,
			"shop/web": `{"name":"shop/web","state":"active","addresses":[{"address":"203.0.113.10"},{"address":"2001:db8::10"}],"ports":[{"port":443},{"port":80}],"readyEndpoints":2,"pending":null,"version":18446744073709551615}`,
			"zoo/esc":  `{"name":"zoo/esc","state":"\u001b[31mred\nline","addresses":[],"ports":[],"readyEndpoints":0,"pending":null}`,
		},
		history: []*fairleadv1.Transition{
			{Revision: &fairleadv1.Revision{Epoch: 1, Index: 7}, Term: 2, Time: "2026-01-02T03:04:05Z", Actor: "member/m1", Change: "seen", Reason: "view 12"},
			{Revision: &fairleadv1.Revision{Epoch: 1, Index: 9}, Term: 2, Time: "2026-01-02T03:04:06Z", Actor: "operator/alice", Change: "pending -> active"},
		},
	}
}

func TestGetAndDescribeInEveryFormat(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{}, shop())
	for name, args := range map[string][]string{
		"get-services":  {"get", "services"}, // three of them, in two pages
		"get-service":   {"get", "svc", "shop/web"},
		"describe":      {"describe", "service", "shop/web"},
		"describe-gone": {"describe", "service", "gone"},
	} {
		for _, format := range []string{"table", "json", "yaml"} {
			t.Run(name+"/"+format, func(t *testing.T) {
				golden(t, name+"-"+format, w.run([]string{server}, append(args, "-o", format)...).mustPrint(t))
			})
		}
	}
}

func TestFilterGoesToTheGroup(t *testing.T) {
	w := newWorld(t)
	record := shop()
	w.run([]string{w.serve(&fakeRaft{}, record)}, "get", "svc", "--filter", "state=active,uid=7", "--filter", "name=a").mustPrint(t)
	want := map[string]string{"state": "active", "uid": "7", "name": "a"}
	for _, filter := range record.asked() {
		if !maps.Equal(filter, want) {
			t.Errorf("asked for %v", filter)
		}
	}
	if len(record.asked()) != 2 {
		t.Errorf("asked %d times for two pages", len(record.asked()))
	}
}

func TestLinearizableIsAskedFor(t *testing.T) {
	w := newWorld(t)
	record := shop()
	server := w.serve(&fakeRaft{}, record)
	for _, args := range [][]string{{"get", "svc", "shop/web"}, {"describe", "svc", "shop/web"}} {
		w.run([]string{server}, args...).mustPrint(t)
		w.run([]string{server}, append(args, "--linearizable")...).mustPrint(t)
	}
	if got := fmt.Sprint(record.linearizable); got != "[false true false true]" {
		t.Errorf("asked for linearizable reads: %s", got)
	}
}

func TestNamesThatAreNotThereFail(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{}, shop())
	w.run([]string{server}, "get", "routes", "198.51.100.1/32").mustFail(t, exitFailed, "get routes 198.51.100.1/32", "there is none", "`fairlead get routes`")
	w.run([]string{server}, "describe", "svc", "nope").mustFail(t, exitFailed, "describe services nope", "there is none", "`fairlead get services`")
}

func TestEveryKindIsFoundByEachOfItsNames(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{}, &fakeRecord{})
	for _, kind := range records.Kinds() {
		for _, name := range append(kind.Aliases, kind.Name, strings.ToUpper(kind.Name)) {
			var got struct{ Kind string }
			err := json.Unmarshal([]byte(w.run([]string{server}, "get", name, "-o", "json").mustPrint(t)), &got)
			if err != nil || got.Kind != kind.Name {
				t.Errorf("get %s: %+v, %v", name, got, err)
			}
		}
	}
}

func TestCellsShowWhatThePathNames(t *testing.T) {
	for path, want := range map[string]string{
		"name": "a", "missing": "", "missing.deeper": "", "name.deeper": "", "null": "", "yes": "yes", "no": "no",
		"big": "18446744073709551615", "list": "1,2", "list.x": ",", "deep.list.x": "p,q", "revision": "3.18446744073709551615", "empty": "",
		"long": "1,2,3,4,5,6,7,8,… 2 more",
	} {
		document := `{"name":"a","null":null,"yes":true,"no":false,"big":18446744073709551615,"list":[1,2],"empty":[],"long":[1,2,3,4,5,6,7,8,9,10],
			"deep":{"list":[{"x":"p"},{"x":"q"}]},"revision":{"epoch":3,"index":18446744073709551615}}`
		got, err := row(records.Kind{Name: "things", Columns: []records.Column{{Title: "X", Path: path}}}, json.RawMessage(document))
		if err != nil || got[0] != want {
			t.Errorf("%s: %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestDocumentsOfAnotherReleaseFailInOneLine(t *testing.T) {
	w := newWorld(t)
	for _, document := range []string{`[]`, `{"name":`, `7`} {
		record := &fakeRecord{names: []string{"a"}, documents: map[string]string{"a": document}}
		w.run([]string{w.serve(&fakeRaft{}, record)}, "get", "services").mustFail(t, exitFailed, "document of services", "release")
	}
}

func TestLongListsAreReadToTheEnd(t *testing.T) {
	w := newWorld(t)
	record := &fakeRecord{documents: map[string]string{}}
	for i := range 101 {
		name := fmt.Sprintf("n%03d", i)
		record.names, record.documents[name] = append(record.names, name), fmt.Sprintf(`{"name":%q}`, name)
	}
	if lines := strings.Count(w.run([]string{w.serve(&fakeRaft{}, record)}, "get", "nodes").mustPrint(t), "\n"); lines != 102 {
		t.Errorf("%d lines", lines)
	}
}
