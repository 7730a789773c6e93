// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/manifests"
)

// operated is what an operator wrote, and a Service.
const operated = `
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: tor, namespace: metallb-system}
spec: {myASN: 65000, peerASN: 65001, peerAddress: 192.0.2.254}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: public, namespace: metallb-system}
spec: {addresses: [203.0.113.0/28]}
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: all, namespace: metallb-system}
spec: {communities: [ours]}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: lan, namespace: metallb-system}
spec: {ipAddressPools: [public]}
---
apiVersion: metallb.io/v1beta1
kind: Community
metadata: {name: names, namespace: metallb-system}
spec: {communities: [{name: ours, value: "65000:1"}]}
---
apiVersion: fairlead.io/v1alpha1
kind: AddressPolicy
metadata: {name: limits}
spec: {maxAddresses: 2}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: LoadBalancer, ports: [{port: 80}]}
`

// drawTenant draws an object of a kind that configures the fabric, of a namespace where no operator writes: with names that others have, and
// others that are like them, as it should be written or not.
func drawTenant(t *rapid.T) string {
	one := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	spec := map[string][]string{
		"BGPPeer":          {"{myASN: 65000, peerASN: 65666, peerAddress: 192.0.2.66}", "{myASN: 65000, peerASN: 65001, peerAddress: 192.0.2.254}", "{peerASN: x}", "{}"},
		"IPAddressPool":    {"{addresses: [8.8.8.0/24]}", "{addresses: [203.0.113.0/30]}", "{addresses: [nonsense]}", "{}"},
		"BGPAdvertisement": {"{communities: [no-advertise]}", "{peers: [none]}", "{}", "{communities: 7}"},
		"L2Advertisement":  {"{}", "{ipAddressPools: [public], interfaces: [none]}"},
		"Community":        {"{communities: [{name: ours, value: \"65000:666\"}]}", "{communities: [{name: \"\", value: x}]}"},
		"BFDProfile":       {"{}"},
		"AddressPolicy":    {"{maxAddresses: 0}", "{externalIPs: [0.0.0.0/0]}"},
	}
	kind := one("kind", "BGPPeer", "IPAddressPool", "BGPAdvertisement", "L2Advertisement", "Community", "BFDProfile", "AddressPolicy")
	group := "fairlead.io/v1alpha1"
	if kind != "AddressPolicy" && rapid.Bool().Draw(t, "MetalLB's") {
		group = "metallb.io/v1beta1"
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: %s, uid: %s}\nspec: %s\n", group, kind,
		one("name", "tor", "public", "all", "lan", "names", "limits", "a"), one("namespace", "a-tenant", "default", "shop", "z-tenant"), one("uid", "a", "z"), one("spec", spec[kind]...))
}

// Whatever tenants write in their namespaces, what is planned is the same as without it: before anything is in the record, and after; and each of
// them is told.
func TestPropertyTenantsHaveNoSayInWhatIsPlanned(t *testing.T) {
	once := manifests.Once(reviewLegacy, new(config.Controller).ConfigNamespaces())
	read := func(files map[string][]byte) world.World {
		w, err := once(t.Context(), files)
		if err != nil {
			t.Error(err)
		}
		return w
	}
	testkit.Check(t, func(t *rapid.T) {
		files := map[string][]byte{"operated.yaml": []byte(operated)}
		without := read(files)
		written := map[string]bool{}
		for i := range rapid.IntRange(1, 5).Draw(t, "objects") {
			text := drawTenant(t)
			head := strings.Join(strings.Split(text, "\n")[1:3], " ")
			name, _, _ := strings.Cut(head, ", uid")
			if written[name] {
				continue // of one name in one place there is one object
			}
			written[name] = true
			files[fmt.Sprintf("%s-%d.yaml", rapid.SampledFrom([]string{"a", "z"}).Draw(t, "file"), i)] = []byte(text)
		}
		with := read(files)
		if told := len(with.Problems) - len(without.Problems); told != len(written) {
			t.Fatalf("%d objects of tenants, of which %d are told of: %v", len(written), told, with.Problems)
		}
		state := fsm.New()
		fsmtest.Tell(t, state, &fsm.InitGroup{Group: "g", Format: fsm.NewestFormat})
		for range 4 {
			ours, theirs := proposed(&without, state), proposed(&with, state)
			if !reflect.DeepEqual(ours, theirs) {
				t.Fatalf("planned is %s, and without tenants %s", spell(theirs), spell(ours))
			}
			for _, c := range ours {
				fsmtest.Tell(t, state, c)
			}
		}
		if len(proposed(&with, state)) > 0 || len(fsm.List[*fsm.Peer](state.Read(), fsm.TablePeers)) != 1 {
			t.Fatal("the plan came to no rest, or to nothing")
		}
	})
}

func spell(commands []fsm.Command) (text string) {
	for _, c := range commands {
		text += fmt.Sprintf("%T %+v; ", c, reflect.ValueOf(c).Elem())
	}
	return text
}

// proposed is what is planned of a view, under the guard.
func proposed(w *world.World, state *fsm.State) (out []fsm.Command) {
	known := leader.KnownOf(state.Read(), w.Source, leader.PartServices)
	view := leader.PartServices.View(*w)
	guard := leader.NewGuard(leader.Limits{})
	var v leader.Verdict
	for i := range 3 { // what is absent in several lists counts as gone
		for k := range view.Kinds {
			view.Kinds[k].Lists = uint64(i + 1)
		}
		v = guard.Judge(time.Duration(i)*time.Minute, &view, &known)
	}
	plan := leader.Plan(leader.Input{Views: []leader.Admitted{v.Admit(&view)}, Record: state.Read()})
	for _, p := range slices.Concat(plan.Urgent, plan.Bulk) {
		if _, observed := p.Command.(*fsm.ObserveView); !observed {
			out = append(out, p.Command)
		}
	}
	return out
}
