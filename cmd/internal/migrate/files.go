// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"fairlead.io/fairlead/k8s/migrate"
)

// Ports of members (design §11).
const (
	apiPort  = 7443
	raftPort = 7444
)

func hostPort(a netip.Addr, port uint16) string { return netip.AddrPortFrom(a, port).String() }

// File is one to write. Secret ones hold the token that founds the group, or passwords of the old configuration.
type File struct {
	Path    string
	Content []byte
	Secret  bool
}

// Rendering is what files need that a Plan does not hold.
type Rendering struct {
	Base  string // the folder deploy/base, as seen from a folder in the output folder
	Image string
	Token string // founds the group
}

// Files renders a plan: two overlays of deploy/base (the first member alone, then the whole group), what to tell the
// switch, the steps, and the old objects for the way back.
func Files(p Plan, in migrate.Installation, r Rendering) []File {
	files := []File{
		{Path: "STEPS.md", Content: []byte(stepsText(p))},
		{Path: "switch.txt", Content: []byte(switchText(p))},
		{Path: "first/controller.yaml", Content: []byte(controllerText(p.Members[:1], r.Token)), Secret: true},
		{Path: "first/agent.yaml", Content: []byte(agentText(p.Members))},
		{Path: "first/kustomization.yaml", Content: []byte(kustomizationText(r, 1))},
	}
	if len(p.Members) > 1 {
		files = append(files,
			File{Path: "group/controller.yaml", Content: []byte(controllerText(p.Members, ""))},
			File{Path: "group/agent.yaml", Content: []byte(agentText(p.Members))},
			File{Path: "group/kustomization.yaml", Content: []byte(kustomizationText(r, len(p.Members)))})
	}
	for _, o := range in.Objects {
		name := strings.ToLower(o.Kind) + "-" + o.Name + ".yaml"
		files = append(files, File{Path: "old/" + name, Content: o.Manifest, Secret: o.Kind == "ConfigMap"})
	}
	return files
}

func controllerText(members []Member, token string) string {
	var b strings.Builder
	b.WriteString(`# One file for all members; ${...} are set by their pods. AS, port and neighbours are read from config_bgp.toml, which
# stays where it is.
name: ${NODE_NAME}
dataDir: /var/lib/fairlead
listen: {api: "${HOST_IP}:7443", raft: "${HOST_IP}:7444", health: "${HOST_IP}:7480", admission: "${HOST_IP}:7482"}
tls:
  ca: /etc/fairlead-tls/ca.crt
  cert: /etc/fairlead-tls/${NODE_NAME}.crt
  key: /etc/fairlead-tls/${NODE_NAME}.key
  caKey: /etc/fairlead-signer/signer.key # members sign the certificates of agents
members:
`)
	for _, m := range members {
		fmt.Fprintf(&b, "- {name: %q, api: %q, raft: %q}\n", m.Name, hostPort(m.Address, apiPort), hostPort(m.Address, raftPort))
	}
	if token != "" {
		fmt.Fprintf(&b, "bootstrapToken: %q # founds the group, once\n", token)
	}
	b.WriteString("bgp: {routerID: \"${HOST_IP}\", configFile: /etc/fairlead-gobgp/" + migrate.KeyBGP +
		", management: \"127.0.0.1:50051\"} # where /bin/gobgp asks\nsources:\n  kubernetes: {inCluster: true}\n" +
		"externalIPs: warn # as before, any Service may name any address; deny once AddressPolicies allow what Services name\n")
	return b.String()
}

func agentText(members []Member) string {
	var b strings.Builder
	b.WriteString("stateDir: /var/lib/fairlead-agent\nmembers: # one that answers is enough; the others are learned\n")
	for _, m := range members {
		fmt.Fprintf(&b, "- %q\n", hostPort(m.Address, apiPort))
	}
	b.WriteString("enrol: {ca: /etc/fairlead-ca/ca.crt, tokenFile: /var/run/secrets/fairlead/token}\nsysNet: /host/proc/sys/net # its own is read-only in a container\nnat: kube-proxy\nhealth: \"[${HOST_IP}]:7481\"\n")
	return b.String()
}

// kustomizationText makes an overlay. The base asks for two members at least to be left by evictions, which is right for
// three.
func kustomizationText(r Rendering, members int) string {
	name, tag := r.Image, "latest"
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name, tag = name[:colon], name[colon+1:]
	}
	quorum := members/2 + 1
	return `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [` + strconv.Quote(r.Base) + `]
configMapGenerator:
- {name: fairlead-controller, namespace: kube-system, files: [controller.yaml]}
- {name: fairlead-agent, namespace: kube-system, files: [agent.yaml]}
generatorOptions:
  labels: {app.kubernetes.io/part-of: fairlead}
images:
- {name: fairlead, newName: ` + strconv.Quote(name) + `, newTag: ` + strconv.Quote(tag) + `}
patches:
- target: {kind: PodDisruptionBudget, name: fairlead-controller}
  patch: '[{"op": "replace", "path": "/spec/minAvailable", "value": ` + strconv.Itoa(quorum) + `}]'
`
}

func switchText(p Plan) string {
	var b strings.Builder
	b.WriteString("BGP neighbours that the switch must have (those that list every master have them already):\n\n")
	for _, n := range p.Neighbours {
		port := fmt.Sprintf("listens at port %d", n.Port)
		if n.Port == 0 {
			port = "does not listen: let it dial"
		}
		fmt.Fprintf(&b, "  neighbour %s, AS %d, %s\n", n.Address, n.ASN, port)
	}
	fmt.Fprintf(&b, "\nMembers dial %s. Each neighbour needs add-paths in receive direction, multipath over at least the\n", strings.Join(p.Switches, ", "))
	b.WriteString("number of nodes that carry a Service, and long-lived graceful restart where the switch has it.\n")
	return b.String()
}

// stepsText is the plan for people.
func stepsText(p Plan) string {
	var b strings.Builder
	b.WriteString("# From kube-loadbalancer-controller to Fairlead\n\n")
	b.WriteString("Nothing below was done yet. Each step can be undone, and one can stay between two of them for as long as one\nlikes: both systems announce the same paths meanwhile.\n\n")
	writeSummary(&b, p)
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "\n## %d. %s\n\n", i+1, s.Title)
		for _, c := range s.Commands {
			fmt.Fprintf(&b, "    %s\n", c)
		}
		fmt.Fprintf(&b, "\nThen: %s.\n\nBack: %s\n", s.Expect, s.Back)
	}
	return b.String()
}

// writeSummary tells what a plan comes to.
func writeSummary(b *strings.Builder, p Plan) {
	names := make([]string, 0, len(p.Members))
	for _, m := range p.Members {
		names = append(names, fmt.Sprintf("%s (%s)", m.Name, m.Address))
	}
	fmt.Fprintf(b, "- %d replicas of the old controller become %d voters, in this order: %s\n", p.Replicas, len(p.Members), strings.Join(names, ", "))
	fmt.Fprintf(b, "- %d addresses are announced as before, to %s\n", len(p.Addresses), strings.Join(p.Switches, ", "))
	for _, l := range p.Losing {
		fmt.Fprintf(b, "- loses its address: %s\n", l)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(b, "- warning: %s\n", warning)
	}
}

// WriteSummary tells what the plan comes to.
func (p Plan) WriteSummary(w io.Writer) error {
	var b strings.Builder
	writeSummary(&b, p)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteTable tells the plan to people.
func (p Plan) WriteTable(w io.Writer) error {
	_, err := io.WriteString(w, stepsText(p))
	return err
}
