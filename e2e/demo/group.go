// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/cluster/pki"
)

// issue makes a certificate of the demo's CA.
func (w *world) issue(role pki.Role, name string, hosts ...string) (pki.Files, error) {
	ca := filepath.Join(w.dir, "ca")
	if err := pki.Init(ca, pki.CAOptions{}); err != nil && !errors.Is(err, pki.ErrExists) {
		return pki.Files{}, err
	}
	issued, err := pki.Issue(ca, pki.Request{Role: role, Name: name, Hosts: hosts})
	if err != nil {
		return pki.Files{}, err
	}
	return issued.Write(filepath.Join(w.dir, "certs", string(role)+"-"+name))
}

// operator writes the context file of the command line.
func (w *world) operator() error {
	files, err := w.issue(pki.Operator, "demo")
	if err != nil {
		return err
	}
	var servers []string
	for m := 1; m <= memberCount; m++ {
		servers = append(servers, fmt.Sprintf("%q", (&controller{m: m}).api()))
	}
	w.context = filepath.Join(w.dir, "context.yaml")
	text := fmt.Sprintf("servers: [%s]\nca: %s\ncert: %s\nkey: %s\n", strings.Join(servers, ", "), files.CA, files.Cert, files.Key)
	return os.WriteFile(w.context, []byte(text), 0o600)
}

// ask runs the command line as an operator and decodes its JSON.
func (w *world) ask(ctx context.Context, into any, args ...string) error {
	return w.askWithin(ctx, 30*time.Second, into, args...)
}

// askWithin is the same of what takes its time.
func (w *world) askWithin(ctx context.Context, within time.Duration, into any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.o.Binary, append([]string{"--context", w.context}, append(args, "-o", "json")...)...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("fairlead %s: %s", strings.Join(args, " "), strings.TrimSpace(string(exit.Stderr)))
		}
		return fmt.Errorf("fairlead %s: %w", strings.Join(args, " "), err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("fairlead %s: %w in %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// groupStatus is part of what `raft status` prints.
type groupStatus struct {
	Leader  string `json:"leader"`
	Members []struct {
		Name     string `json:"name"`
		Suffrage string `json:"suffrage"`
		Healthy  bool   `json:"healthy"`
	} `json:"members"`
}

// leader waits for a leader that runs, and that a member other than these names, which are cut off or gone.
func (w *world) leader(ctx context.Context, not ...*controller) (*controller, error) {
	var leader *controller
	err := eventually(ctx, "leader", func() error {
		var last error
		for _, c := range w.members {
			if slices.Contains(not, c) || !c.process.Running() {
				continue
			}
			var s groupStatus
			if last = w.ask(ctx, &s, "--server", c.api(), "raft", "status"); last != nil {
				continue
			}
			leader = w.member(s.Leader)
			if leader != nil && leader.process.Running() && !slices.Contains(not, leader) {
				return nil
			}
			last = fmt.Errorf("%s says that %q leads", c.name, s.Leader)
		}
		return last
	})
	return leader, err
}

// member finds one by its name; nil if there is none.
func (w *world) member(name string) *controller {
	for _, c := range w.members {
		if c.name == name {
			return c
		}
	}
	return nil
}

// whole tells what is missing until all members vote and are healthy.
func (w *world) whole(ctx context.Context) error {
	var s groupStatus
	if err := w.ask(ctx, &s, "raft", "status"); err != nil {
		return err
	}
	if s.Leader == "" {
		return errors.New("the group has no leader")
	}
	healthy := 0
	for _, m := range s.Members {
		if m.Healthy && m.Suffrage == "voter" {
			healthy++
		}
	}
	if healthy != memberCount {
		return fmt.Errorf("%d of %d members are healthy voters", healthy, memberCount)
	}
	return nil
}
