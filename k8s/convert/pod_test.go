// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

// Balancing §13.6: ports of a node that lead to a pod are known, with a name or without, of TCP if nothing else is said.
// Rule: balancing §13.
func TestHostPortsOfPodsAreRead(t *testing.T) {
	o := &corev1.Pod{}
	o.Namespace, o.Name, o.UID = "shop", "ingress", "u"
	o.Spec.Containers = []corev1.Container{
		{Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}, {Name: "dns", ContainerPort: 53, HostPort: 5353, Protocol: corev1.ProtocolUDP}}},
		{Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9090}}},
	}
	p, _ := Pod(o)
	if want := []world.HostPort{{Protocol: world.TCP, Port: 8080}, {Protocol: world.UDP, Port: 5353}}; !slices.Equal(p.HostPorts, want) {
		t.Errorf("host ports %v, want %v", p.HostPorts, want)
	}
	if want := []world.PodPort{{Name: "dns", Protocol: world.UDP, Port: 53}, {Name: "metrics", Protocol: world.TCP, Port: 9090}}; !slices.Equal(p.Ports, want) {
		t.Errorf("ports %v, want %v", p.Ports, want)
	}
}

// Balancing §6: a kubelet names the cgroup of a static pod by a UID that is not its mirror's, and says so in annotations of the mirror. What
// anybody else writes there counts for nothing: it would have another pod spared.
// Rule: balancing §6.
func TestStaticPodsHaveTheUIDOfTheirCgroup(t *testing.T) {
	const hash = "5f3c9d0b6a4e8f7c1d2b3a4958677685"
	node := func(name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: "n"}}
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		owners      []metav1.OwnerReference
		want        string
	}{
		"a mirror":             {map[string]string{"kubernetes.io/config.mirror": hash, "kubernetes.io/config.hash": hash}, node("n1"), hash},
		"a pod":                {nil, nil, ""},
		"a hash without owner": {map[string]string{"kubernetes.io/config.mirror": hash, "kubernetes.io/config.hash": hash}, nil, ""},
		"another node's":       {map[string]string{"kubernetes.io/config.mirror": hash, "kubernetes.io/config.hash": hash}, node("n2"), ""},
		"no mirror":            {map[string]string{"kubernetes.io/config.hash": hash}, node("n1"), ""},
		"its own":              {map[string]string{"kubernetes.io/config.mirror": "u", "kubernetes.io/config.hash": "u"}, node("n1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "dns-n1", UID: "u", Annotations: c.annotations, OwnerReferences: c.owners}}
			o.Spec.NodeName = "n1"
			if p, _ := Pod(o); p.HostUID != c.want || p.UID != "u" {
				t.Errorf("its node knows it by %q, and its UID is %q", p.HostUID, p.UID)
			}
		})
	}
}
