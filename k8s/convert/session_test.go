// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/k8s/convert"
)

// neighbour is a BGPPeer that is fine, with a change.
func neighbour(change func(*api.BGPPeer)) *api.BGPPeer {
	p := &api.BGPPeer{
		ObjectMeta: metav1.ObjectMeta{Name: "tor", Namespace: "metallb-system", Annotations: map[string]string{}},
		Spec:       api.BGPPeerSpec{MyASN: 64512, PeerASN: 64513, PeerAddress: "192.0.2.1"},
	}
	change(p)
	return p
}

// What is a field of ours is an annotation of MetalLB's.
func TestOptionsOfASessionAreFieldsOrAnnotations(t *testing.T) {
	fields := neighbour(func(p *api.BGPPeer) {
		p.Spec.TTLSecurity, p.Spec.SendMax = new(int32), new(int32)
		*p.Spec.TTLSecurity, *p.Spec.SendMax = 2, 16
		p.Spec.Passive, p.Spec.KeepOnNotification, p.Spec.Restart = true, true, "long-lived"
		p.Spec.RestartTime, p.Spec.StaleTime = &metav1.Duration{Duration: 5 * time.Second}, &metav1.Duration{Duration: time.Hour}
	})
	notes := neighbour(func(p *api.BGPPeer) {
		p.Annotations = map[string]string{
			convert.AnnotationTTLSecurity: "2", convert.AnnotationSendMax: "16", convert.AnnotationPassive: "true",
			convert.AnnotationKeepOnNotification: "true", convert.AnnotationRestart: "long-lived",
			convert.AnnotationRestartTime: "5s", convert.AnnotationStaleTime: "1h",
		}
	})
	want := world.Peer{
		TTLSecurity: 2, SendMax: 16, Passive: true,
		Restart: world.Restart{Mode: world.RestartLongLived, Time: 5 * time.Second, StaleTime: time.Hour, KeepOnNotification: true},
	}
	for name, o := range map[string]*api.BGPPeer{"fields": fields, "annotations": notes} {
		p, problems := convert.Peer(o)
		have := world.Peer{TTLSecurity: p.TTLSecurity, SendMax: p.SendMax, Passive: p.Passive, Restart: p.Restart}
		if !reflect.DeepEqual(have, want) || len(problems) > 0 {
			t.Errorf("%s: %+v, %v", name, have, problems)
		}
	}
}

// MetalLB's manifests are read as they always were: members peer, unless somebody asks for nodes.
func TestNodesPeerWhereSomebodyAsksForThat(t *testing.T) {
	rack := []metav1.LabelSelector{{MatchLabels: map[string]string{"rack": "a"}}}
	for name, c := range map[string]struct {
		change   func(*api.BGPPeer)
		mode     world.PeerMode
		chosen   int
		problems int
	}{
		"nobody asks":       {func(p *api.BGPPeer) {}, world.PeerGroup, 0, 0},
		"selectors alone":   {func(p *api.BGPPeer) { p.Spec.NodeSelectors = rack }, world.PeerGroup, 0, 1},
		"a field":           {func(p *api.BGPPeer) { p.Spec.Mode, p.Spec.NodeSelectors = "node", rack }, world.PeerNode, 1, 0},
		"an annotation":     {func(p *api.BGPPeer) { p.Annotations[convert.AnnotationMode] = "node" }, world.PeerNode, 0, 0},
		"members, by name":  {func(p *api.BGPPeer) { p.Spec.Mode = "group" }, world.PeerGroup, 0, 0},
		"a Secret":          {func(p *api.BGPPeer) { p.Spec.Mode, p.Spec.PasswordSecret.Name = "node", "x" }, world.PeerNode, 0, 0},
		"what nobody knows": {func(p *api.BGPPeer) { p.Spec.Mode = "rack" }, world.PeerGroup, 0, 1},
	} {
		have, problems := convert.Peer(neighbour(c.change))
		if have.Mode != c.mode || len(have.NodeSelectors) != c.chosen || len(problems) != c.problems {
			t.Errorf("%s: mode %q, %d selectors, problems %v", name, have.Mode, len(have.NodeSelectors), problems)
		}
	}
}

// A password that is written into the object itself stays with members. Nodes peer, once each has a file with it, which is said.
func TestNodesArePointedToAFileForAWrittenPassword(t *testing.T) {
	p, problems := convert.Peer(neighbour(func(p *api.BGPPeer) { p.Spec.Mode, p.Spec.Password = "node", "tell-nobody" }))
	if p.Mode != world.PeerNode || !convert.Usable(problems) || len(problems) != 1 || problems[0].Field != "spec.password" {
		t.Fatalf("mode %q, problems %v", p.Mode, problems)
	}
	if text := problems[0].Why + problems[0].Remedy; !strings.Contains(text, "BGPPeer/tor") || strings.Contains(text, "tell-nobody") {
		t.Errorf("it is told %s", text)
	}
}

func TestSessionsThatNobodyAskedForAreRefused(t *testing.T) {
	for field, change := range map[string]func(*api.BGPPeer){
		"spec.passwordSecret":                                    func(p *api.BGPPeer) { p.Spec.Password, p.Spec.PasswordSecret.Name = "x", "tor" },
		"spec.passwordSecret.namespace":                          func(p *api.BGPPeer) { p.Namespace, p.Spec.PasswordSecret.Name = "", "tor" },
		"spec.ttlSecurity":                                       func(p *api.BGPPeer) { p.Spec.EBGPMultiHop, p.Spec.TTLSecurity = true, new(int32) },
		"metadata.annotations[fairlead.io/ttl-security]":         func(p *api.BGPPeer) { p.Annotations[convert.AnnotationTTLSecurity] = "300" },
		"metadata.annotations[fairlead.io/send-max]":             func(p *api.BGPPeer) { p.Annotations[convert.AnnotationSendMax] = "none" },
		"metadata.annotations[fairlead.io/restart]":              func(p *api.BGPPeer) { p.Annotations[convert.AnnotationRestart] = "graceful" },
		"metadata.annotations[fairlead.io/stale-time]":           func(p *api.BGPPeer) { p.Annotations[convert.AnnotationStaleTime] = "1.5s" },
		"metadata.annotations[fairlead.io/keep-on-notification]": func(p *api.BGPPeer) { p.Annotations[convert.AnnotationKeepOnNotification] = "yes" },
		"spec.restart": func(p *api.BGPPeer) { p.Spec.Restart, p.Spec.KeepOnNotification = "none", true },
		"spec.restartTime": func(p *api.BGPPeer) {
			p.Spec.Restart, p.Spec.RestartTime = "plain", &metav1.Duration{Duration: time.Second}
		},
		"spec.ebgpMultiHop": func(p *api.BGPPeer) { p.Spec.EBGPMultiHop, p.Spec.PeerASN = true, p.Spec.MyASN },
		"spec.dynamicASN":   func(p *api.BGPPeer) { p.Spec.DynamicASN = "external" },
	} {
		_, problems := convert.Peer(neighbour(change))
		if convert.Usable(problems) {
			t.Errorf("%s: the peer is used", field)
			continue
		}
		if p := problems[0]; p.Field != field || p.Why == "" || p.Remedy == "" {
			t.Errorf("%s: the first problem is %+v", field, p)
		}
	}
}

// A node finds its neighbour behind an interface, by a field or by the annotation.
func TestNodesPeerByInterface(t *testing.T) {
	for name, ask := range map[string]func(*api.BGPPeer){
		"field":      func(p *api.BGPPeer) { p.Spec.Mode = "node" },
		"annotation": func(p *api.BGPPeer) { p.Annotations[convert.AnnotationMode] = "node" },
	} {
		p, problems := convert.Peer(neighbour(func(p *api.BGPPeer) {
			p.Spec.PeerAddress, p.Spec.Interface = "", "eth1"
			ask(p)
		}))
		if len(problems) > 0 || p.Interface != "eth1" || p.Address.IsValid() || p.Mode != world.PeerNode {
			t.Errorf("%s: %+v, %v", name, p, problems)
		}
	}
}

// What a session by interface cannot be is refused, each with a word of its own.
func TestSessionsByInterfaceRefuseWhatTheyCannotDo(t *testing.T) {
	said := map[string]string{}
	for name, c := range map[string]struct {
		field  string
		change func(*api.BGPPeer)
	}{
		"members":    {"spec.interface", func(p *api.BGPPeer) { p.Spec.Mode = "" }},
		"address":    {"spec.interface", func(p *api.BGPPeer) { p.Spec.PeerAddress = "192.0.2.1" }},
		"Secret":     {"spec.interface", func(p *api.BGPPeer) { p.Spec.PasswordSecret.Name = "x" }},
		"name":       {"spec.interface", func(p *api.BGPPeer) { p.Spec.Interface = "eth1%eth2" }},
		"source":     {"spec.sourceAddress", func(p *api.BGPPeer) { p.Spec.SourceAddress = "192.0.2.9" }},
		"multihop":   {"spec.ebgpMultiHop", func(p *api.BGPPeer) { p.Spec.EBGPMultiHop = true }},
		"one family": {"spec.disableMP", func(p *api.BGPPeer) { p.Spec.DisableMP = true }},
	} {
		_, problems := convert.Peer(neighbour(func(p *api.BGPPeer) {
			p.Spec.PeerAddress, p.Spec.Interface, p.Spec.Mode = "", "eth1", "node"
			c.change(p)
		}))
		if convert.Usable(problems) || len(problems) != 1 || problems[0].Field != c.field || problems[0].Remedy == "" {
			t.Errorf("%s: %+v", name, problems)
			continue
		}
		if other, again := said[problems[0].Why]; again {
			t.Errorf("%s is told what %s is: %s", name, other, problems[0].Why)
		}
		said[problems[0].Why] = name
	}
	_, problems := convert.Peer(neighbour(func(p *api.BGPPeer) {
		p.Spec.PeerAddress, p.Spec.Interface, p.Spec.Mode, p.Spec.Password = "", "eth1", "node", "tell-nobody"
	}))
	if convert.Usable(problems) || strings.Contains(fmt.Sprint(problems), "tell-nobody") {
		t.Errorf("a password is told of by %v", problems)
	}
}

func TestPasswordsAreNamedByTheirSecret(t *testing.T) {
	for want, ref := range map[string]corev1.SecretReference{
		"Secret/metallb-system/tor": {Name: "tor"}, "Secret/network/tor": {Name: "tor", Namespace: "network"},
	} {
		p, problems := convert.Peer(neighbour(func(p *api.BGPPeer) { p.Spec.PasswordSecret = ref }))
		if p.PasswordFrom != want || len(problems) > 0 {
			t.Errorf("%v is %q, %v", ref, p.PasswordFrom, problems)
		}
		namespace, name, ok := world.ParsePasswordSecret(p.PasswordFrom)
		if !ok || world.PasswordSecret(namespace, name) != want {
			t.Errorf("%q is read as %s, %s, %t", want, namespace, name, ok)
		}
	}
}
