// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/e2e/kubetest"
)

// service is one that clients ask.
type service struct {
	name    string
	address netip.Addr
	policy  corev1.ServiceExternalTrafficPolicy
}

// services are asked by half of the clients each: one that any node may answer for any other, and one that only nodes
// with a pod of their own answer.
var services = []service{
	{"web", netip.MustParseAddr("203.0.113.10"), corev1.ServiceExternalTrafficPolicyCluster},
	{"app", netip.MustParseAddr("203.0.113.11"), corev1.ServiceExternalTrafficPolicyLocal},
}

// configBGP and SWITCH are the old system's two config maps.
const configBGP = `[global.config]
  as = %d
  router-id = "192.0.2.20"
  port = -1
[[neighbors]]
  [neighbors.config]
    neighbor-address = "%s"
    peer-as = %d
  [neighbors.timers.config]
    hold-time = %d
    keepalive-interval = %d
    connect-retry = 1
  [neighbors.graceful-restart.config]
    enabled = true
`

// startKube starts the API server beside us, and fills it.
func (w *world) startKube(ctx context.Context) (err error) {
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // spec.externalIPs is said to be deprecated, each time
	w.kube, err = kubetest.New(ctx, kubetest.Options{Bind: kubeAddress, Dir: filepath.Join(w.dir, "kube"), Log: w.progress})
	if err != nil {
		return err
	}
	for name, data := range map[string]map[string]string{
		"kube-gobgp-cfg":  {"config_bgp.toml": fmt.Sprintf(configBGP, memberASN, switchAddress, switchASN, w.o.timers().hold, w.o.timers().keepalive)},
		"kube-iprule-cfg": {"SWITCH": switchAddress.String()},
	} {
		_, err := w.kube.Client().CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("make ConfigMap %s: %w", name, err)
		}
	}
	for n := 1; n <= nodeCount; n++ {
		if _, err := w.kube.Node(ctx, fmt.Sprintf("n%d", n), nil, nodeAddress(n)); err != nil {
			return err
		}
	}
	for _, s := range services {
		_, err := w.kube.Client().CoreV1().Services(metav1.NamespaceDefault).Create(ctx, s.object(), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("make Service %s: %w", s.name, err)
		}
	}
	return nil
}

func (s service) object() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{s.address.String()},
			ExternalTrafficPolicy: s.policy, Selector: map[string]string{"app": s.name},
			Ports: []corev1.ServicePort{{Name: "http", Port: webPort, TargetPort: intstr.FromInt32(podPort)}},
		},
	}
}

// tellPod makes the object of a pod that runs on a node.
func (w *world) tellPod(ctx context.Context, m *machine, p *pod) (*kubetest.Pod, error) {
	return w.kube.Pod(ctx, kubetest.PodSpec{
		Name: p.name, Node: m.name, Labels: map[string]string{"app": p.service},
		Addresses: []netip.Addr{podAddress(m.n, p.index)},
	})
}
