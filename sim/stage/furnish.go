// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"encoding/json"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/k8s/api"
	balancing "fairlead.io/fairlead/k8s/api/balancing/v1beta1"
	lbcfv1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/kube"
)

// The AS numbers of a world.
const (
	OurASN    = 64512
	SwitchASN = 64513
)

// Pool is what Services get their addresses from.
var Pool = netip.MustParsePrefix("203.0.113.0/24")

// SwitchAddress is the address of the i-th switch, counted from 0.
func SwitchAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 2, 0, byte(i + 1)}) }

// definitions are the custom resources that are installed.
func definitions() []string {
	return []string{
		api.MetalLBV1Beta1 + "/ipaddresspools", api.MetalLBV1Beta2 + "/bgppeers",
		api.MetalLBV1Beta1 + "/bgpadvertisements", api.MetalLBV1Beta1 + "/communities",
	}
}

// outsideDefinitions are LBCF's.
func outsideDefinitions() []string {
	old, now := v1beta1.GroupVersion().String(), lbcfv1.GroupVersion().String()
	return []string{
		old + "/loadbalancerdrivers", old + "/loadbalancers", old + "/backendgroups", old + "/backendrecords", now + "/binds",
	}
}

// policyDefinitions are those of client-side balancing.
func policyDefinitions() []string {
	v := balancing.GroupVersion().String()
	return []string{v + "/balancingpolicies", v + "/localredirectpolicies"}
}

// furnish brings in what stands in every world: the cluster with its nodes, a pool and the switches.
func (s *Stage) furnish() {
	defined := definitions()
	if s.options.Outside > 0 {
		defined = append(defined, outsideDefinitions()...)
	}
	if s.options.Segments > 0 {
		defined = append(defined, api.MetalLBV1Beta1+"/l2advertisements")
	}
	if s.options.Sockets.Policies {
		defined = append(defined, policyDefinitions()...)
	}
	if c := s.options.Cluster; c != nil {
		defined = c.Definitions
	}
	s.Kube = kube.New(s.World, kube.Options{Definitions: defined})
	s.Kube.Serve(s.Network, start.Kubernetes, start.KubernetesPort)
	if c := s.options.Cluster; c != nil {
		if err := s.bring(c); err != nil {
			s.World.Fail(err)
		}
		return
	}
	for i, name := range s.nodes {
		s.create("kubelet", Node(name, NodeAddress(i)))
	}
	s.create("user", Custom(&api.IPAddressPool{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.MetalLBV1Beta1, Kind: "IPAddressPool"},
		ObjectMeta: metav1.ObjectMeta{Namespace: System, Name: "pool"},
		Spec:       api.IPAddressPoolSpec{Addresses: []string{Pool.String()}},
	}))
	s.create("user", Custom(&api.BGPAdvertisement{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.MetalLBV1Beta1, Kind: "BGPAdvertisement"},
		ObjectMeta: metav1.ObjectMeta{Namespace: System, Name: "all"},
		Spec:       s.advertisement(),
	}))
	s.furnishBlock()
	for i := range s.options.Switches {
		s.addSwitch(i)
	}
	s.furnishSegments()
	s.furnishListed()
}

// System is the namespace of what configures us.
const System = "kube-system"

func (s *Stage) addSwitch(i int) {
	name := SwitchName(i)
	var neighbours []fabric.Neighbour
	for _, m := range s.members {
		neighbours = append(neighbours, fabric.Neighbour{Member: m, ASN: OurASN})
	}
	makes := []func(string, uint32, ...fabric.Neighbour) fabric.Options{fabric.BIRD, fabric.FRR}
	o := makes[i%len(makes)](name, SwitchASN, neighbours...)
	o.RouterID = SwitchAddress(i)
	s.Network.Alias(SwitchAddress(i).String(), name)
	s.switches = append(s.switches, fabric.New(s.World, s.Network, o))
	s.create("user", Custom(&api.BGPPeer{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.MetalLBV1Beta2, Kind: "BGPPeer"},
		ObjectMeta: metav1.ObjectMeta{Namespace: System, Name: name},
		Spec: api.BGPPeerSpec{
			MyASN: OurASN, PeerASN: SwitchASN, PeerAddress: SwitchAddress(i).String(), EnableGracefulRestart: true,
		},
	}))
}

// Custom is an object of a custom resource as the API server holds it.
func Custom(o any) kube.Object {
	plain := &unstructured.Unstructured{}
	text, err := json.Marshal(o)
	if err == nil {
		err = plain.UnmarshalJSON(text)
	}
	if err != nil {
		panic(fmt.Sprintf("make %T plain: %v", o, err)) // our own types always can be
	}
	return plain
}

// create makes an object that nothing can be wrong with.
func (s *Stage) create(by string, o kube.Object) {
	if _, err := s.Kube.Create(by, o); err != nil {
		panic(fmt.Sprintf("furnish the world with %s: %v", o.GetName(), err))
	}
}

// Node is the object of a node that is ready.
func Node(name string, address netip.Addr) *corev1.Node {
	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.String()}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}
