// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

func once(t *testing.T, data, manifests string) (Picture, error) {
	t.Helper()
	var out bytes.Buffer
	err := Run(context.Background(), Options{
		Members: 3, Manifests: manifests, Data: data, Once: true, Timeout: testkit.Patience, JSON: true, Version: "test",
		Stdout: &out, Stderr: &bytes.Buffer{}, Level: slog.LevelError,
	})
	var p Picture
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &p); err != nil {
			t.Fatalf("not only JSON on standard output: %v in %s", err, out.String())
		}
	}
	return p, err
}

const quickstart = "../../../examples/quickstart"

// The quickstart shows a route with two next hops, an IPv6 one, and a Service that stays pending; the switch holds
// just what the record says. A second run over the same folder takes up where the first one ended.
func TestOnceConvergesAndAgainOverTheSameFolder(t *testing.T) {
	parallel(t)
	data := filepath.Join(t.TempDir(), "data")
	first, err := once(t, data, quickstart)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first.Routes, first.Switch.RIB) {
		t.Errorf("routes %v, the switch %v", first.Routes, first.Switch.RIB)
	}
	var two, v6, pending bool
	for _, r := range first.Routes {
		two = two || len(r.NextHops) == 2
		v6 = v6 || strings.HasSuffix(r.Prefix, "/128")
	}
	for _, s := range first.Services {
		pending = pending || s.Pending != "" && len(s.Addresses) == 0
	}
	if !two || !v6 || !pending {
		t.Errorf("two next hops %t, IPv6 %t, pending with a reason %t", two, v6, pending)
	}
	second, err := once(t, data, quickstart)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(second.Routes, first.Routes) || second.Members[0].Applied <= first.Members[0].Applied {
		t.Errorf("the second run forgot: %v at %d after %v at %d",
			second.Routes, second.Members[0].Applied, first.Routes, first.Members[0].Applied)
	}
}

// What the switch is sent is not always a path for each address: a prefix in the place of addresses, one beside them, nothing at all. A folder
// of which nothing can be announced is at rest, too.
func TestOnceEndsWhereTheSwitchHasWhatItIsSent(t *testing.T) {
	parallel(t)
	for folder, want := range map[string][]string{
		"no-route": {}, "otherwise": {"198.51.100.0/31", "203.0.113.0/24", "203.0.113.0/32"},
	} {
		p, err := once(t, "", filepath.Join("testdata", folder))
		if err != nil {
			t.Errorf("%s: %v", folder, err)
		}
		have := []string{}
		for _, r := range p.Switch.RIB {
			have = append(have, r.Prefix)
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s: the switch has %v, want %v", folder, have, want)
		}
	}
}

// What a folder does not have any more is taken back before all is at rest: a Service of before does not come to be shown beside one that has
// its address now.
func TestOnceWaitsUntilWhatIsGoneIsTakenBack(t *testing.T) {
	parallel(t)
	data, manifests := filepath.Join(t.TempDir(), "data"), t.TempDir()
	for _, name := range []string{"old", "new"} {
		write := func(file, text string) {
			if err := os.WriteFile(filepath.Join(manifests, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("pool.yaml", "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: p, namespace: metallb-system}\nspec: {addresses: [198.51.100.7/32]}\n")
		write("service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: "+name+", namespace: default}\nspec:\n  type: LoadBalancer\n  ports: [{port: 80, protocol: TCP}]\n")
		p, err := once(t, data, manifests)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Services) != 1 || p.Services[0].Name != "default/"+name || !slices.Equal(p.Services[0].Addresses, []string{"198.51.100.7"}) {
			t.Errorf("with %s alone in the folder there are %+v", name, p.Services)
		}
	}
}

// The files of a folder name each other, and commands look relative names up from the file that has them.
func TestAFolderIsKnownByItsWholePath(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, remove, err := folder("data")
	if err != nil || dir != filepath.Join(here, "data") {
		t.Errorf("%s, %v", dir, err)
	}
	remove()
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a folder that was asked for: %v", err)
	}
}

func TestOnceFailsOnAManifestThatCannotBeUsed(t *testing.T) {
	parallel(t)
	dir := t.TempDir()
	entries, err := os.ReadDir(quickstart)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(quickstart, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("203.0.113.10"), []byte("203.0.113.999"))
		if err := os.WriteFile(filepath.Join(dir, e.Name()), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err = once(t, "", dir)
	if err == nil || !strings.Contains(err.Error(), "web.yaml:") || !strings.Contains(err.Error(), "spec.externalIPs[0]") {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
}

// What is left out of a manifest that is used otherwise is shown, as is what of advertisements is not as they ask for, and is no failure.
func TestOnceWarnsOfWhatIsLeftOut(t *testing.T) {
	parallel(t)
	manifests := t.TempDir()
	if err := os.CopyFS(manifests, os.DirFS(quickstart)); err != nil {
		t.Fatal(err)
	}
	odd := "apiVersion: v1\nkind: Service\nmetadata: {name: odd, annotations: {fairlead.io/scheduler: fastest}}\nspec: {ports: [{port: 80}]}\n" +
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: at-a-node}\nspec: {ports: [{port: 80}], externalIPs: [192.0.2.11]}\n" + // left to the node, and in nobody's way
		"---\napiVersion: fairlead.io/v1alpha1\nkind: BGPAdvertisement\nmetadata: {name: lost}\nspec: {ipAddressPools: [nowhere]}\n"
	if err := os.WriteFile(filepath.Join(manifests, "odd.yaml"), []byte(odd), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := once(t, "", manifests)
	if err != nil || len(p.Problems) > 0 {
		t.Fatalf("%v, problems %q", err, p.Problems)
	}
	if len(p.Warnings) != 2 || !strings.Contains(p.Warnings[0], "odd.yaml:") || !strings.Contains(p.Warnings[0], `"fastest" is unknown`) ||
		p.Warnings[1] != "advertisements lost: invalid: there is no IPAddressPool nowhere, which spec.ipAddressPools names; check its spelling, or add it" {
		t.Errorf("warnings %q", p.Warnings)
	}
	var table strings.Builder
	if err := draw(&table, Picture{Warnings: p.Warnings}); err != nil || !strings.Contains(table.String(), "\nWARNINGS\nodd.yaml:") || strings.Contains(table.String(), "PROBLEMS") {
		t.Errorf("%v\n%s", err, table.String())
	}
}

const policy = `
apiVersion: balancing.elf.io/v1beta1
kind: BalancingPolicy
metadata: {name: legacy-db}
spec:
  frontend: {addressMatcher: {ip: "169.254.77.1", toPorts: [{port: "5432", protocol: TCP}]}}
  backend: {addressEndpoint: {addresses: ["192.0.2.21", "192.0.2.22"], toPorts: [{port: "6432", protocol: TCP}]}}
`

// Policies of client-side balancing are shown with what the group resolved them to.
func TestPoliciesAreShown(t *testing.T) {
	parallel(t)
	manifests := t.TempDir()
	if err := os.CopyFS(manifests, os.DirFS(quickstart)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(manifests, "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var out testkit.Log
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{
			Members: 1, Manifests: manifests, Data: filepath.Join(t.TempDir(), "data"), Version: "test",
			Stdout: &out, Stderr: &bytes.Buffer{}, Level: slog.LevelError,
		})
	}()
	testkit.Eventually(t, "what the group should show", func() error { return shows(&out, "BalancingPolicy/legacy-db  169.254.77.1:5432/tcp  2         -") })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

// A member is stopped and started from outside by name or number, and what cannot be done says why.
func TestOrdersReachARunningDev(t *testing.T) {
	parallel(t)
	data := filepath.Join(t.TempDir(), "data")
	ctx, stop := context.WithCancel(context.Background())
	var out testkit.Log
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{
			Members: 3, Manifests: quickstart, Data: data, Version: "test", JSON: true,
			Stdout: &out, Stderr: &bytes.Buffer{}, Level: slog.LevelError,
		})
	}()
	testkit.Eventually(t, "what the group should show", func() error { return Order(ctx, data, "kill", "2") })
	testkit.Eventually(t, "what the group should show", func() error { return shows(&out, `"name": "m2",`+"\n"+`      "running": false`) })
	if err := Order(ctx, data, "kill", "m2"); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("killed twice: %v", err)
	}
	if err := Order(ctx, data, "start", "7"); err == nil || !strings.Contains(err.Error(), "no member") {
		t.Errorf("started a stranger: %v", err)
	}
	if err := Order(ctx, data, "start", "m2"); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if err := Order(context.Background(), data, "kill", "1"); err == nil || !strings.Contains(err.Error(), "no `fairlead dev` runs") {
		t.Errorf("an order to nobody: %v", err)
	}
}

// The command line goes on finding the group that it found when a second dev process starts, which says how to find its own. What
// an earlier one left behind is replaced.
func TestASecondDevLeavesTheContextToTheFirst(t *testing.T) {
	parallel(t)
	home := t.TempDir()
	at := filepath.Join(home, "config", "context.yaml")
	if err := os.Mkdir(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(home, "ended", "context.yaml"), at); err != nil {
		t.Fatal(err)
	}
	begin := func(name string) (data string, said *testkit.Log, end func()) {
		data, said = filepath.Join(home, name), &testkit.Log{}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- Run(ctx, Options{Members: 1, Manifests: quickstart, Data: data, Version: "test", Stdout: &testkit.Log{}, Stderr: said, ContextLink: at})
		}()
		testkit.Eventually(t, "what the group should show", func() error {
			if !runs(data) {
				return fmt.Errorf("%s takes no orders", name)
			}
			return shows(said, "Ctrl-C ends it")
		})
		return data, said, func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	leadsTo := func(data string) {
		t.Helper()
		if target, _ := os.Readlink(at); target != filepath.Join(data, "context.yaml") {
			t.Errorf("the link leads to %q", target)
		}
	}
	first, said, endFirst := begin("a")
	leadsTo(first)
	if err := shows(said, "export"); err == nil {
		t.Error("the first one asks for an export")
	}
	second, said, endSecond := begin("b")
	leadsTo(first)
	for _, text := range []string{"export FAIRLEAD_CONTEXT=" + filepath.Join(second, "context.yaml"), "runs over " + first} {
		if err := shows(said, text); err != nil {
			t.Error(err)
		}
	}
	endSecond()
	leadsTo(first)
	endFirst()
	if _, err := os.Lstat(at); err == nil {
		t.Error("the link is left behind")
	}
}

// parallel is t.Parallel without the race detector: GoBGP writes variables of its package whenever a speaker starts.
func parallel(t *testing.T) {
	t.Helper()
	if !testkit.RaceDetector {
		t.Parallel()
	}
}

// shows fails unless a text was written.
func shows(log *testkit.Log, text string) error {
	if log.Count(text) == 0 {
		return fmt.Errorf("not shown yet: %s in\n%s", text, log)
	}
	return nil
}
