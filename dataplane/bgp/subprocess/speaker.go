// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"fairlead.io/fairlead/dataplane/bgp/gobgp"
	"fairlead.io/fairlead/dataplane/bgp/supervisor"
)

// Options are what a Speaker needs.
type Options struct {
	gobgp.Config // the child's; its Logger also gets what the child logs
	// Command makes the command of a child; its files are the Speaker's affair. Nil is this program with the argument Command.
	Command func() *exec.Cmd
}

// New starts a child that announces nothing yet. Errors: those of gobgp.New; of starting a process.
func New(o Options) (*supervisor.Speaker, error) {
	if o.Logger == nil {
		return nil, errors.New("start bgp speaker: no logger")
	}
	if o.Command == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("start bgp speaker: %w", err)
		}
		o.Command = func() *exec.Cmd { return exec.Command(self, Command) }
	}
	return supervisor.New(supervisor.Options{
		Settings: supervisor.Settings{
			ASN: o.ASN, RouterID: o.RouterID, ListenPort: o.ListenPort, ListenAddrs: o.ListenAddrs, Management: o.Management,
		},
		Start:  func() (supervisor.Child, error) { return startChild(o.Command(), o.Logger) },
		Logger: o.Logger,
	})
}
