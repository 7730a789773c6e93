// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"path"
	"strings"

	"fairlead.io/fairlead/k8s/migrate"
)

// Step is one thing to do. Each may be waited with for as long as one likes: both systems announce the same meanwhile.
type Step struct {
	Title    string   `json:"title"`
	Commands []string `json:"commands"`
	// Expect is what to see before the next step, and Back how to undo this one.
	Expect string `json:"expect"`
	Back   string `json:"back"`
}

// stepper writes the steps of a plan.
type stepper struct {
	*Plan
	namespace string
	out       string
	left      int      // replicas of the old controller
	running   []Member // that have begun
	steps     []Step
}

// steps orders the work: agents beside the old daemon, then members one by one, each where the old controller is not or no
// longer, and the last old replica only when members announce everything.
func (p *Plan) steps(in migrate.Installation, o Options) []Step {
	s := &stepper{Plan: p, namespace: in.Namespace, out: o.Out, left: in.Replicas}
	s.certificates()
	s.add(Step{
		Title:    "Look at the switch",
		Commands: []string{"cat " + path.Join(s.out, "switch.txt")},
		Expect:   "every neighbour in that file is configured, with add-paths in receive direction and multipath; one that has no speaker yet is Idle or Active, which is normal",
		Back:     "nothing was changed",
	})
	s.add(Step{
		Title:    "Install agents beside the old daemon; no member runs yet",
		Commands: []string{"kubectl apply -k " + path.Join(s.out, "first")},
		Expect:   fmt.Sprintf("`kubectl -n %s get daemonset fairlead-agent fairlead-controller` shows an agent on every node, waiting for members, and no controller; the old rules are untouched", s.namespace),
		Back:     "kubectl delete -k " + path.Join(s.out, "first"),
	})
	for i, m := range p.Members {
		s.begin(i, m)
	}
	for s.left > 0 {
		s.shrink(s.left - 1)
	}
	s.cleanUp(in.HasDaemon)
	return s.steps
}

func (s *stepper) add(step Step) { s.steps = append(s.steps, step) }

func (s *stepper) kubectl(format string, args ...any) string {
	return fmt.Sprintf("kubectl -n %s ", s.namespace) + fmt.Sprintf(format, args...)
}

func (s *stepper) certificates() {
	commands := []string{"fairlead pki init --dir ca", "mkdir -p tls"}
	for _, m := range s.Members {
		commands = append(commands, fmt.Sprintf("fairlead pki issue member %s --host %s --dir ca --out tls", m.Name, m.Address))
	}
	servers := make([]string, 0, len(s.Members))
	for _, m := range s.Members {
		servers = append(servers, "--server "+hostPort(m.Address, apiPort))
	}
	commands = append(commands,
		"fairlead pki signer --dir ca --out signer",
		fmt.Sprintf("fairlead pki issue operator admin %s --dir ca --out admin", strings.Join(servers, " ")),
		"export FAIRLEAD_CONTEXT=$PWD/admin/context.yaml",
		s.kubectl("create secret generic fairlead-tls --from-file=tls/"),
		s.kubectl("create secret generic fairlead-signer --from-file=signer/signer.crt --from-file=signer/signer.key"),
		s.kubectl("create configmap fairlead-ca --from-file=tls/ca.crt"),
	)
	s.add(Step{
		Title: "Make certificates", Commands: commands,
		Expect: fmt.Sprintf("`%s` shows all three", s.kubectl("get secret/fairlead-tls secret/fairlead-signer configmap/fairlead-ca")),
		Back:   s.kubectl("delete secret/fairlead-tls secret/fairlead-signer configmap/fairlead-ca"),
	})
}

// begin starts a member, after the old controller left its node.
func (s *stepper) begin(i int, m Member) {
	if m.Frees != "" {
		var ordinal int
		_, _ = fmt.Sscanf(strings.TrimPrefix(m.Frees, migrate.Controller+"-"), "%d", &ordinal) // made by a StatefulSet
		for s.left > ordinal {
			s.shrink(s.left - 1)
		}
	}
	label := fmt.Sprintf("kubectl label node %s fairlead.io/member=true", m.Name)
	step := Step{Title: "Start the member on " + m.Name, Commands: []string{label}, Back: label[:strings.LastIndex(label, "=")] + "-"}
	if i == 1 {
		step.Commands = []string{"kubectl apply -k " + path.Join(s.out, "group"), label}
	}
	s.running = append(s.running, m)
	step.Expect = fmt.Sprintf("`fairlead raft status` shows %d healthy voters; `fairlead get peers` and the switch show the session of %s as Established; `fairlead get routes` lists each of the %d addresses with the next hops that the old controller announces",
		len(s.running), m.Address, len(s.Addresses))
	if s.left > 0 {
		step.Expect += "; the switch has every path from both systems"
	}
	s.add(step)
}

// shrink takes the replica of an ordinal away.
func (s *stepper) shrink(ordinal int) {
	step := Step{
		Title:    fmt.Sprintf("Take %s-%d away", migrate.Controller, ordinal),
		Commands: []string{s.kubectl("scale statefulset %s --replicas=%d", migrate.Controller, ordinal)},
		Expect:   "the switch drops the paths of that neighbour and keeps those of all others: every address still has all its next hops",
		Back:     s.kubectl("scale statefulset %s --replicas=%d", migrate.Controller, ordinal+1),
	}
	for _, m := range s.running {
		if m.Frees == fmt.Sprintf("%s-%d", migrate.Controller, ordinal) {
			step.Back = "take the member away first (its own step says how), then " + step.Back
		}
	}
	if len(s.running) == 0 && ordinal == 0 {
		step.Expect = "the switch drops all paths until the next step has its session up: go on at once"
	}
	s.left = ordinal
	s.add(step)
}

func (s *stepper) cleanUp(daemon bool) {
	if daemon {
		s.add(Step{
			Title:    "Take the old daemon away",
			Commands: []string{s.kubectl("delete daemonset %s", migrate.Daemon)},
			Expect:   "`ip rule list` on each node shows one rule to and one from each address, with the priorities of Fairlead; traffic goes on",
			Back:     "kubectl apply -f " + path.Join(s.out, "old"),
		})
	}
	s.add(Step{
		Title: "Take the rest away, some days later",
		Commands: []string{
			s.kubectl("delete statefulset %s", migrate.Controller),
			s.kubectl("delete service %s", migrate.HeadlessService),
		},
		Expect: "nothing changes. Keep the two config maps: Fairlead reads them, and edits take effect as before",
		Back:   "kubectl apply -f " + path.Join(s.out, "old"),
	})
}
