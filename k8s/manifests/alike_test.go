// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/alike"
)

// alikeManifests are of a Service, of a slice of it and of a pod, all with names and ports of few.
func alikeManifests(t *rapid.T) string {
	word := rapid.SampledFrom([]string{"a", "b"})
	var ports, addresses []string
	for i := range rapid.IntRange(2, 3).Draw(t, "ports") {
		ports = append(ports, fmt.Sprintf("{name: %s%d, port: %d}", word.Draw(t, "port"), i, 80+i))
		addresses = append(addresses, fmt.Sprintf("198.18.%d.%d", i, rapid.IntRange(1, 2).Draw(t, "address")))
	}
	list, name := strings.Join(ports, ", "), word.Draw(t, "name")
	labels := fmt.Sprintf("{x: %s, y: %s}", word.Draw(t, "x"), word.Draw(t, "y"))
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %[1]s, labels: %[2]s}
spec: {type: LoadBalancer, ports: [%[3]s], externalIPs: [%[4]s]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [%[3]s]
endpoints: [{addresses: [10.0.0.1], nodeName: %[5]s, zone: %[6]s}]
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: %[2]s}
spec: {nodeName: %[5]s}
---
`, name, labels, list, strings.Join(addresses, ", "), word.Draw(t, "node"), word.Draw(t, "zone"))
}

// What objects share changes nothing of what they say.
func TestPropertyObjectsThatShareSayTheSame(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		like := new(alike.Table)
		for range rapid.IntRange(2, 6).Draw(t, "files") {
			text := []byte(alikeManifests(t))
			if got, want := decode("file", text, like, rules{}), decode("file", text, new(alike.Table), rules{}); !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	})
}

func TestEqualNamesAndPortsAreThereOnce(t *testing.T) {
	t.Parallel()
	like := new(alike.Table)
	text := func(i int) []byte {
		var b strings.Builder
		withSlice(&b, i)
		return []byte(b.String())
	}
	one, other := decode("one", text(1), like, rules{}).objects, decode("other", text(2), like, rules{}).objects
	service, slice := one[0].value().(*world.Service), one[1].value().(*world.EndpointSlice)
	service2, slice2 := other[0].value().(*world.Service), other[1].value().(*world.EndpointSlice)
	for what, same := range map[string]bool{
		"the name of a slice and that of its Service":   unsafe.StringData(slice.Name) == unsafe.StringData(slice.ServiceName),
		"the namespace of Services and slices of files": unsafe.StringData(service.Namespace) == unsafe.StringData(slice2.Namespace),
		"ports of Services":                             &service.Ports[0] == &service2.Ports[0],
		"ports of slices":                               &slice.Ports[0] == &slice2.Ports[0],
	} {
		if !same {
			t.Errorf("%s are there twice", what)
		}
	}
}

// There are as many of these as a folder has objects.
func TestAnObjectHasRoomForItsValueAndLineOnly(t *testing.T) {
	t.Parallel()
	if bytes := unsafe.Sizeof(object{}); bytes > 24 {
		t.Errorf("an object takes %d bytes, want 24 at most", bytes)
	}
}
