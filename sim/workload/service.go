// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/stage"
)

// Namespace is where users work.
const Namespace = "default"

func name() parameter.Parameter {
	return parameter.Text("name", "of the Service and of the application behind it", func(text string) error {
		if text == "" || strings.ContainsFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }) {
			return errors.New("not a name; write letters from a to z, digits and -")
		}
		return nil
	}).Must()
}

// wishes are the parameters that say what a Service shall be like.
func wishes() []parameter.Parameter {
	return []parameter.Parameter{
		name(),
		parameter.Text("ports", `such as "80,443,53/UDP"; "80" without it`, func(text string) error {
			_, err := ports(text)
			return err
		}),
		parameter.OneOf("type", "LoadBalancer without it", "LoadBalancer", "ClusterIP"),
		parameter.OneOf("policy", "externalTrafficPolicy, Cluster without it", "Cluster", "Local"),
		parameter.Text("address", "spec.loadBalancerIP", addressed),
		parameter.Text("external", "one of spec.externalIPs", addressed),
		parameter.OneOf("affinity", "sessionAffinity, None without it", "None", "ClientIP"),
		parameter.Text("clients", "one of loadBalancerSourceRanges, such as 198.51.100.0/24", func(text string) error {
			if _, err := netip.ParsePrefix(text); err != nil {
				return errors.New("not a network; write one such as 198.51.100.0/24")
			}
			return nil
		}),
		parameter.OneOf("hops", "next hops: the nodes with endpoints without it, or all", "endpoints", "all"),
		parameter.Text("sharing", "Services with the same word here may share an address", func(string) error { return nil }),
	}
}

func addressed(text string) error {
	if _, err := netip.ParseAddr(text); err != nil {
		return errors.New("not an IP address; write one such as 203.0.113.7")
	}
	return nil
}

func serviceVerbs() []Verb {
	return []Verb{
		{
			Name: "create", Text: "create a Service, and the application behind it", Weight: 10,
			Parameters: append(wishes(), replicas()), Do: (*Cluster).createService,
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("name", p.anyName(d))
				s.With.Set("replicas", d.From("replicas", 1, 4))
				drawWishes(d, s)
			},
		},
		{
			Name: "delete", Text: "delete a Service; its application ends too, but for pods: keep", Weight: 6,
			Parameters: []parameter.Parameter{name(), parameter.OneOf("pods", "end without it", "end", "keep")},
			Do: func(c *Cluster, s Step) {
				if s.With["pods"] == "keep" {
					c.may(c.kube.Delete("user", "Service", Namespace, s.With["name"]))
				} else {
					c.deleteService(s.With["name"])
				}
			},
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("name", p.anyName(d))
				if d.Chance("keep pods", 40) {
					s.With.Set("pods", "keep")
				}
			},
		},
		{
			Name: "edit", Text: "change what a Service shall be like: as a new one, all of it but how its endpoints are probed", Weight: 6,
			Parameters: wishes(), Do: (*Cluster).editService,
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("name", p.anyName(d))
				drawWishes(d, s)
			},
		},
		{
			Name: "touch", Text: "change something of a Service that concerns nobody", Weight: 4,
			Parameters: []parameter.Parameter{name()}, Draw: drawName,
			Do: func(c *Cluster, s Step) {
				_, err := c.kube.Change("user", "Service", Namespace, s.With["name"], func(o kube.Object) {
					o.SetAnnotations(with(o.GetAnnotations(), "example.com/touched", s.At.String()))
				})
				c.may(err)
			},
		},
		{
			Name: "weigh", Text: "give endpoints of a Service weights, unless it has the policy Local",
			Parameters: []parameter.Parameter{
				name(), parameter.Text("weights", `such as "node/n1=0, pod/web1-*=3"; all are alike without it`, func(string) error { return nil }),
			},
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("name", p.anyApplication(d))
				if text := drawWeights(d, p); text != "" {
					s.With.Set("weights", text)
				}
			},
			Do: func(c *Cluster, s Step) {
				c.changeService(s.With["name"], func(o *corev1.Service) {
					if o.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
						return // which of its nodes are next hops depends on weights, which nobody here has an account of
					}
					o.Annotations = without(o.Annotations, convert.AnnotationEndpointWeights)
					if s.With["weights"] != "" {
						o.Annotations = with(o.Annotations, convert.AnnotationEndpointWeights, s.With["weights"])
					}
				})
			},
		},
		{
			Name: "clear", Text: "delete all Services of one sort at once: more than half of them", Weight: 1,
			Parameters: []parameter.Parameter{parameter.Number("keep", "how many stay, 0 without it", 0, 1000)},
			Do: func(c *Cluster, s Step) {
				all := slices.DeleteFunc(c.kube.Services(), func(s *corev1.Service) bool {
					return s.Name == "kubernetes" // the API server would make it again at once
				})
				for i := s.With.Number("keep", 0); i < len(all); i++ {
					c.may(c.kube.Delete("user", "Service", all[i].Namespace, all[i].Name))
					c.scale(all[i].Name, 0)
				}
			},
			Draw: func(d dice.Dice, p Plan, s *Step) { s.With.Set("keep", d.Below("keep", p.Services/2+1)) },
		},
	}
}

// first is the name of the i-th Service that there is from the beginning, counted from 0.
func first(i int) string { return fmt.Sprint("web", i+1) }

// anyName is one that there is from the beginning, or one of a few others.
func (p Plan) anyName(d dice.Dice) string {
	i := d.Below("service", p.Services+4)
	if i < p.Services {
		return first(i)
	}
	return fmt.Sprint("shop", i-p.Services+1)
}

// anyApplication is anyName, or that of a Service with an address of the block.
func (p Plan) anyApplication(d dice.Dice) string {
	if p.Aggregate > 0 && d.Chance("in block", 50) {
		return inBlock(d.Below("place", stage.BlockSize))
	}
	return p.anyName(d)
}

func drawApplication(d dice.Dice, p Plan, s *Step) { s.With.Set("name", p.anyApplication(d)) }

func drawName(d dice.Dice, p Plan, s *Step) { s.With.Set("name", p.anyName(d)) }

func drawWishes(d dice.Dice, s *Step) {
	if d.Chance("ports", 40) {
		s.With.Set("ports", dice.Pick(d, "which ports", []string{"80,443", "53/UDP,53", "8080"}))
	}
	if d.Chance("local", 40) {
		s.With.Set("policy", "Local")
	}
	switch d.Below("wish", 8) {
	case 5:
		s.With.Set("address", fmt.Sprint("203.0.113.", d.From("address", 200, 205)))
	case 6:
		s.With.Set("external", fmt.Sprint("198.51.100.", d.From("external", 1, 3)))
	case 7:
		s.With.Set("sharing", "together")
		s.With.Set("ports", d.From("shared port", 8000, 8007))
		if d.Chance("names the address", 50) {
			s.With.Set("address", "203.0.113.210")
		}
	}
	if d.Chance("no load balancer", 5) {
		s.With.Set("type", "ClusterIP")
		delete(s.With, "policy")
		delete(s.With, "address")
	}
}

// drawWeights draws what some nodes and pods weigh: often nothing, now and then what makes no sense.
func drawWeights(d dice.Dice, p Plan) string {
	node := dice.Pick(d, "node", p.Nodes)
	return dice.Pick(d, "weights", []string{
		"", "node/" + node + "=0", "node/" + node + "=0, pod/*=3", "pod/*[13579]=0", "pod/*[13579]=7, pod/*=2", "node/n[12]=0, node/*=5",
		"pod/*=0", "zone/none=0, pod/*1=many, pod/*2=0, bogus=1",
	})
}

// ports reads a list of ports. Pods listen 8000 above.
func ports(text string) (out []corev1.ServicePort, err error) {
	seen := map[string]bool{}
	for _, word := range strings.Split(text, ",") {
		number, protocol, _ := strings.Cut(word, "/")
		n, err := strconv.Atoi(number)
		if protocol == "" {
			protocol = "TCP"
		}
		name := strings.ToLower(protocol) + "-" + number
		if err != nil || n < 1 || n > 65535 || protocol != "TCP" && protocol != "UDP" || seen[name] {
			return nil, fmt.Errorf(`port %q: write numbers from 1 to 65535, each once, such as "80,53/UDP"`, word)
		}
		seen[name] = true
		out = append(out, corev1.ServicePort{Name: name, Protocol: corev1.Protocol(protocol), Port: int32(n)})
	}
	return out, nil
}

func (c *Cluster) createService(s Step) {
	o := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: s.With["name"]},
	}
	wish(o, s.With)
	_, err := c.kube.Create("user", o)
	c.may(err)
	c.scale(s.With["name"], s.With.Number("replicas", 2))
}

// deleteService deletes a Service, and ends its application.
func (c *Cluster) deleteService(name string) {
	c.may(c.kube.Delete("user", "Service", Namespace, name))
	c.scale(name, 0)
}

func (c *Cluster) editService(s Step) {
	_, err := c.kube.Change("user", "Service", Namespace, s.With["name"], func(o kube.Object) { wish(o.(*corev1.Service), s.With) })
	c.may(err)
}

// wish makes a Service what parameters say, and leaves the rest.
func wish(o *corev1.Service, v parameter.Values) {
	text := v["ports"]
	if text == "" {
		text = "80"
	}
	o.Spec.Ports, _ = ports(text) // checked
	o.Spec.Selector = map[string]string{appLabel: o.Name}
	o.Spec.Type = corev1.ServiceTypeLoadBalancer
	o.Spec.ExternalTrafficPolicy, o.Spec.LoadBalancerIP, o.Spec.ExternalIPs = "", v["address"], nil
	switch {
	case v["type"] == "ClusterIP":
		o.Spec.Type = corev1.ServiceTypeClusterIP
	case v["policy"] != "":
		o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicy(v["policy"])
	}
	o.Spec.SessionAffinity, o.Spec.SessionAffinityConfig = corev1.ServiceAffinity(v["affinity"]), nil
	if o.Spec.LoadBalancerSourceRanges = nil; v["clients"] != "" {
		o.Spec.LoadBalancerSourceRanges = []string{v["clients"]}
	}
	if v["external"] != "" {
		o.Spec.ExternalIPs = []string{v["external"]}
	}
	o.Annotations = without(without(without(o.Annotations, convert.AnnotationSharing), convert.AnnotationNextHops), convert.AnnotationEndpointWeights)
	if v["hops"] != "" {
		o.Annotations = with(o.Annotations, convert.AnnotationNextHops, v["hops"])
	}
	if v["sharing"] != "" {
		o.Annotations = with(o.Annotations, convert.AnnotationSharing, v["sharing"])
	}
}

func with(m map[string]string, key, value string) map[string]string {
	out := without(m, key)
	out[key] = value
	return out
}

func without(m map[string]string, key string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}
