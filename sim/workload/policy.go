// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/k8s/api/balancing"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/stage"
)

// Policies are of these kinds, in the words of steps.
var policyKinds = map[string]string{"balancing": "BalancingPolicy", "local": "LocalRedirectPolicy"}

// The labels that policies choose nodes and pods by, besides the application of a pod.
const (
	roleLabel = "role"
	tierLabel = "tier"
)

// resolvers is an application that no Service is for, as policies have it.
const resolvers = "dns"

func policyName() []parameter.Parameter {
	return []parameter.Parameter{name(), parameter.OneOf("kind", "balancing without it", "balancing", "local")}
}

func label(key, text string) parameter.Parameter {
	return parameter.Text(key, text, func(text string) error {
		if k, v, ok := strings.Cut(text, "="); !ok || k == "" || v == "" {
			return errors.New("not a label; write one such as role=edge")
		}
		return nil
	})
}

// socketVerbs are what users do about what is served at sockets.
func socketVerbs() []Verb {
	policies := func(p Plan) bool { return p.Sockets.Policies }
	anything := func(p Plan) bool { return p.Sockets.Any() }
	return []Verb{
		{
			Name: "create-policy", Text: "create a BalancingPolicy or a LocalRedirectPolicy", Able: policies,
			Parameters: append(policyName(),
				parameter.Text("service", "whose ClusterIPs it captures", func(string) error { return nil }),
				parameter.Text("address", "that it captures, in place of a Service", addressed),
				parameter.Text("ports", `that it captures, such as "80,53/UDP"; all of the Service without it, and 80 of an address`, func(text string) error {
					_, err := ports(text)
					return err
				}),
				parameter.OneOf("mode", "podEndpoint without it, where no addresses are given", "podEndpoint", "hostPort", "nodeProxy"),
				parameter.Number("behind", "the port of pods behind proxy ports, with mode nodeProxy; that of the Service's pods, or the proxy port, without it", 1, 65535),
				label("pods", "the label of the pods that it leads to; app=dns without it"),
				parameter.Text("addresses", "that it leads to, in place of pods, with spaces between them", func(text string) error {
					for _, a := range strings.Fields(text) {
						if err := addressed(a); err != nil {
							return err
						}
					}
					return nil
				}),
				parameter.OneOf("probe", "whether addresses are probed, every second; no without it", "yes", "no"),
				label("on", "the label of the nodes on which it is effective; all without it"),
				parameter.OneOf("enabled", "yes without it", "yes", "no"),
				parameter.OneOf("otherwise", "what becomes of connections while it has no backend; refuse without it", "refuse", "fallthrough"),
				parameter.Number("id", "that it asks for; one is given without it", 1, 1<<31-1),
				parameter.OneOf("spare", "whether it leaves calls of its own backends alone; no without it", "yes", "no"),
				parameter.OneOf("again", "whether one of the same name is deleted first; no without it", "yes", "no"),
			),
			Draw: drawPolicy, Do: (*Cluster).createPolicy,
		},
		{
			Name: "change-policy", Text: "change where a policy is effective", Able: policies,
			Parameters: append(policyName(), parameter.OneOf("enabled", "yes without it", "yes", "no"),
				label("on", "the label of the nodes on which it is effective; all without it")),
			Draw: func(d dice.Dice, _ Plan, s *Step) { drawPolicyName(d, s); drawEffect(d, s) },
			Do: func(c *Cluster, s Step) {
				c.configureIn(policyKind(s), "", s.With["name"], func(spec map[string]any) {
					spec["enabled"] = s.With["enabled"] != "no"
					if delete(spec, "config"); s.With["on"] != "" {
						key, value, _ := strings.Cut(s.With["on"], "=")
						spec["config"] = map[string]any{"nodeLabelSelector": map[string]any{"matchLabels": map[string]any{key: value}}}
					}
				})
			},
		},
		{
			Name: "delete-policy", Text: "delete a policy", Able: policies, Parameters: policyName(),
			Draw: func(d dice.Dice, _ Plan, s *Step) { drawPolicyName(d, s) },
			Do:   func(c *Cluster, s Step) { c.may(c.kube.Delete("user", policyKind(s), "", s.With["name"])) },
		},
		{
			Name: "label-node", Text: "give a node another role, which policies choose it by", Able: policies,
			Parameters: []parameter.Parameter{parameter.Machines("node", "its name").Must(), parameter.OneOf("role", "none without it", "edge", "core")},
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("node", dice.Pick(d, "node", p.Nodes))
				if role := dice.Pick(d, "role", []string{"edge", "edge", "core", ""}); role != "" {
					s.With.Set("role", role)
				}
			},
			Do: func(c *Cluster, s Step) { c.relabel("Node", "", s.With["node"], roleLabel, s.With["role"]) },
		},
		{
			Name: "label-pod", Text: "give a pod of an application another tier, which policies choose it by", Able: policies,
			Parameters: []parameter.Parameter{name(), parameter.OneOf("tier", "none without it", "gold")},
			Draw: func(d dice.Dice, _ Plan, s *Step) {
				s.With.Set("name", dice.Pick(d, "application", []string{resolvers, resolvers, first(0), first(1)}))
				if d.Chance("gold", 65) {
					s.With.Set("tier", "gold")
				}
			},
			Do: func(c *Cluster, s Step) {
				for _, p := range c.podsOf(s.With["name"]) {
					if p.Labels[tierLabel] != s.With["tier"] {
						c.relabel("Pod", Namespace, p.Name, tierLabel, s.With["tier"])
						return
					}
				}
			},
		},
		{
			Name: "sandbox", Text: "make the sandbox of a pod anew, and its cgroup with it; the API server hears nothing of that", Able: policies,
			Parameters: []parameter.Parameter{name()},
			Draw: func(d dice.Dice, _ Plan, s *Step) {
				s.With.Set("name", dice.Pick(d, "application", []string{resolvers, resolvers, first(0)}))
			},
			Do: func(c *Cluster, s Step) {
				if all := c.podsOf(s.With["name"]); len(all) > 0 && c.pods[all[0].Name] != nil {
					p := c.pods[all[0].Name]
					c.cgroup(p, false)
					c.later(p, starts, func() { c.cgroup(p, true) })
				}
			},
		},
		{
			Name: "inside", Text: "change the internalTrafficPolicy of a Service to the other one", Able: anything,
			Parameters: []parameter.Parameter{name()}, Draw: drawName,
			Do: func(c *Cluster, s Step) {
				c.changeService(s.With["name"], func(o *corev1.Service) {
					other := corev1.ServiceInternalTrafficPolicyLocal
					if p := o.Spec.InternalTrafficPolicy; p != nil && *p == other {
						other = corev1.ServiceInternalTrafficPolicyCluster
					}
					o.Spec.InternalTrafficPolicy = &other
				})
			},
		},
		{
			Name: "retype", Text: "change the type of a Service", Able: anything,
			Parameters: []parameter.Parameter{name(), parameter.OneOf("type", "ClusterIP without it", "LoadBalancer", "ClusterIP", "NodePort")},
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("name", p.anyName(d))
				s.With.Set("type", dice.Pick(d, "type", []string{"LoadBalancer", "ClusterIP", "NodePort"}))
			},
			Do: func(c *Cluster, s Step) {
				c.changeService(s.With["name"], func(o *corev1.Service) {
					o.Spec.Type = corev1.ServiceTypeClusterIP
					if s.With["type"] != "" {
						o.Spec.Type = corev1.ServiceType(s.With["type"])
					}
					if o.Spec.Type != corev1.ServiceTypeLoadBalancer {
						o.Spec.LoadBalancerIP, o.Spec.LoadBalancerSourceRanges, o.Spec.ExternalTrafficPolicy = "", nil, ""
					}
				})
			},
		},
	}
}

func policyKind(s Step) string {
	if s.With["kind"] == "local" {
		return policyKinds["local"]
	}
	return policyKinds["balancing"]
}

func (c *Cluster) relabel(kind, namespace, name, key, value string) {
	_, err := c.kube.Change("user", kind, namespace, name, func(o kube.Object) {
		if o.SetLabels(without(o.GetLabels(), key)); value != "" {
			o.SetLabels(with(o.GetLabels(), key, value))
		}
	})
	c.may(err)
}

// createPolicy makes a policy of what a step says.
func (c *Cluster) createPolicy(s Step) {
	if s.With["again"] == "yes" {
		c.may(c.kube.Delete("user", policyKind(s), "", s.With["name"]))
	}
	_, err := c.kube.Create("user", policyOf(s))
	c.may(err)
}

func policyOf(s Step) kube.Object {
	meta := metav1.ObjectMeta{Name: s.With["name"], Annotations: map[string]string{}}
	if id := s.With["id"]; id != "" {
		meta.Annotations[balancing.AnnotationServiceID] = id
	}
	if s.With["otherwise"] == "fallthrough" {
		meta.Annotations[balancing.AnnotationOnNoBackend] = "fallthrough"
	}
	if s.With["spare"] == "yes" {
		meta.Annotations[balancing.AnnotationSkipFromBackend] = "true"
	}
	var config *v1beta1.PolicyConfig
	if s.With["on"] != "" {
		config = &v1beta1.PolicyConfig{NodeLabelSelector: chosenBy(s.With["on"])}
	}
	pods := s.With["pods"]
	if pods == "" {
		pods = appLabel + "=" + resolvers
	}
	front, targets := frontOf(s)
	for _, t := range targets {
		if s.With["behind"] != "" {
			meta.Annotations[balancing.AnnotationTargetPort+t.Name] = s.With["behind"]
		}
	}
	kind := metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: policyKind(s)}
	enabled := s.With["enabled"] != "no"
	if s.With["kind"] == "local" {
		return plain(stage.Custom(&v1beta1.LocalRedirectPolicy{TypeMeta: kind, ObjectMeta: meta, Spec: v1beta1.LocalRedirectPolicySpec{
			Enabled: &enabled, Config: config, Frontend: front, Backend: v1beta1.LocalRedirectBackend{EndpointSelector: *chosenBy(pods), ToPorts: targets},
		}}))
	}
	backend := v1beta1.BalancingBackend{ServiceEndpoint: &v1beta1.ServiceEndpoint{
		EndpointSelector: *chosenBy(pods), RedirectMode: v1beta1.RedirectMode(s.With["mode"]), ToPorts: targets,
	}}
	if list := strings.Fields(s.With["addresses"]); len(list) > 0 {
		backend = v1beta1.BalancingBackend{AddressEndpoint: &v1beta1.AddressEndpoint{
			Addresses: list, ToPorts: targets, HealthCheck: healthCheck(s),
		}}
	}
	return plain(stage.Custom(&v1beta1.BalancingPolicy{TypeMeta: kind, ObjectMeta: meta, Spec: v1beta1.BalancingPolicySpec{
		Enabled: &enabled, Config: config, Frontend: front, Backend: backend,
	}}))
}

// healthCheck is how addresses are probed: in most worlds nothing is there that could answer.
func healthCheck(s Step) *v1beta1.HealthCheck {
	if s.With["probe"] != "yes" {
		return &v1beta1.HealthCheck{Type: "None"}
	}
	return &v1beta1.HealthCheck{Type: "TCP", IntervalSeconds: 1, TimeoutSeconds: 1, HealthyThreshold: 1, UnhealthyThreshold: 2}
}

// plain leaves out what only controllers write.
func plain(o kube.Object) kube.Object {
	delete(o.(*unstructured.Unstructured).Object, "status")
	return o
}

func chosenBy(label string) *metav1.LabelSelector {
	key, value, _ := strings.Cut(label, "=")
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// frontOf is what a policy captures, and the ports of its backends: those of pods are 9000 above.
func frontOf(s Step) (front v1beta1.Frontend, targets []v1beta1.PortInfo) {
	text := s.With["ports"]
	if text == "" && s.With["service"] == "" {
		text = "80"
	}
	var captured []v1beta1.PortInfo
	list, _ := ports(text) // checked
	for _, p := range list {
		captured = append(captured, v1beta1.PortInfo{Name: p.Name, Port: fmt.Sprint(p.Port), Protocol: string(p.Protocol)})
	}
	for _, p := range captured {
		targets = append(targets, target(p))
	}
	if text == "" {
		for _, p := range []string{"80/TCP", "443/TCP", "53/UDP"} {
			number, protocol, _ := strings.Cut(p, "/")
			targets = append(targets, target(v1beta1.PortInfo{Name: strings.ToLower(protocol) + "-" + number, Port: number, Protocol: protocol}))
		}
	}
	if s.With["service"] != "" {
		front.ServiceMatcher = &v1beta1.ServiceMatcher{Namespace: Namespace, ServiceName: s.With["service"], ToPorts: captured}
	} else {
		address := s.With["address"]
		if address == "" {
			address = virtual[0]
		}
		front.AddressMatcher = &v1beta1.AddressMatcher{IP: address, ToPorts: captured}
	}
	return front, targets
}

func target(p v1beta1.PortInfo) v1beta1.PortInfo {
	var n int
	_, _ = fmt.Sscan(p.Port, &n) // it is a number
	p.Port = fmt.Sprint(n%10000 + 9000)
	return p
}

// virtual are addresses that only policies have, and one that is a ClusterIP, as a rule.
var virtual = []string{"169.254.77.1", "169.254.77.2", "fd00:77::1", "10.96.0.12"}

func drawPolicyName(d dice.Dice, s *Step) {
	s.With.Set("name", fmt.Sprint("policy", d.From("policy", 1, 4)))
	if d.Chance("local", 45) {
		s.With.Set("kind", "local")
	}
}

func drawEffect(d dice.Dice, s *Step) {
	if d.Chance("somewhere", 35) {
		s.With.Set("on", roleLabel+"=edge")
	}
	if d.Chance("off", 15) {
		s.With.Set("enabled", "no")
	}
}

func drawPolicy(d dice.Dice, p Plan, s *Step) {
	drawPolicyName(d, s)
	drawEffect(d, s)
	if d.Chance("of a Service", 60) {
		s.With.Set("service", first(d.Below("service", min(p.Services, 3)+1)))
		if d.Chance("some ports", 60) {
			s.With.Set("ports", dice.Pick(d, "which ports", []string{"80", "53/UDP", "80,443", "80,8080"}))
		}
	} else {
		s.With.Set("address", dice.Pick(d, "address", virtual))
		s.With.Set("ports", dice.Pick(d, "which ports", []string{"80", "53/UDP,53"}))
	}
	s.With.Set("pods", dice.Pick(d, "pods", []string{appLabel + "=" + resolvers, appLabel + "=" + resolvers, tierLabel + "=gold", appLabel + "=" + first(0)}))
	if s.With["kind"] != "local" {
		switch d.Below("mode", 8) {
		case 4, 5:
			s.With.Set("mode", "hostPort")
		case 6, 7:
			s.With.Set("addresses", dice.Pick(d, "addresses", []string{
				"10.20.0.11 10.20.0.12", "10.20.0.11 10.20.0.12 10.20.0.11", "fd00:10::1 10.20.0.11",
			}))
			delete(s.With, "pods")
		}
		if p.Sockets.Tunnels && d.Chance("by proxies", 70) {
			s.With.Set("mode", "nodeProxy")
			delete(s.With, "addresses")
			if d.Chance("behind", 30) {
				s.With.Set("behind", 7080)
			}
		}
		if p.Sockets.Probes && d.Chance("probed", 70) {
			s.With.Set("addresses", dice.Pick(d, "probed addresses", []string{"10.20.0.11 10.20.0.12", "10.20.0.11 fd00:10::1 10.20.0.12", "10.20.0.12"}))
			s.With.Set("probe", "yes")
			delete(s.With, "pods")
			delete(s.With, "mode")
		}
		if d.Chance("falls through", 30) {
			s.With.Set("otherwise", "fallthrough")
		}
	}
	if d.Chance("id", 25) {
		s.With.Set("id", dice.Pick(d, "which id", []int{1, 2, 3, 31007}))
	}
	if d.Chance("again", 40) {
		s.With.Set("again", "yes")
	}
}

// DrawSockets draws what happens about what is served at sockets: what there is from the beginning on, and steps between two times.
func (p Plan) DrawSockets(d dice.Dice, beginning, from, to time.Duration) (out []Step) {
	lots := []string{"inside", "inside", "retype"}
	if p.Sockets.Policies {
		scale := Step{At: beginning, Do: "scale"}
		scale.With.Set("name", resolvers)
		scale.With.Set("replicas", d.From("resolvers", 2, len(p.Nodes)))
		out = append(out, scale)
		for range d.From("policies", 1, 4) {
			out = append(out, p.DrawOne(d, "create-policy", beginning, from))
		}
		lots = append(lots, "create-policy", "create-policy", "create-policy", "change-policy", "change-policy", "delete-policy", "delete-policy",
			"label-node", "label-node", "label-pod", "label-pod", "scale", "evict", "ail", "roll")
	}
	if p.Sockets.Probes { // of all nodes, for all the time, at a place that no other has
		s := Step{At: beginning, Do: "create-policy"}
		s.With = parameter.Values{"name": "listed", "address": "169.254.77.9", "ports": dice.Pick(d, "probed ports", []string{"80", "53/UDP,53", "443,53/UDP"}),
			"addresses": "10.20.0.11 10.20.0.12", "probe": "yes"}
		out = append(out, s)
	}
	for range d.From("socket steps", 3, 14) {
		s := p.DrawOne(d, dice.Pick(d, "verb", lots), from, to)
		switch s.Do {
		case "scale":
			s.With.Set("replicas", d.From("replicas", 0, len(p.Nodes)))
			s.With.Set("name", resolvers)
		case "evict", "ail", "roll":
			s.With.Set("name", resolvers)
		}
		out = append(out, s)
	}
	for _, s := range out {
		if s.Do == "create-policy" && d.Chance("spares", 35) {
			s.With.Set("spare", "yes")
		}
	}
	for i := 0; p.Sockets.Policies && i < 2; i++ {
		out = append(out, p.DrawOne(d, "sandbox", from, to))
	}
	if p.Sockets.Probes {
		out = append(out, p.drawProbes(d, beginning, from, to)...)
	}
	return out
}
