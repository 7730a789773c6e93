// SPDX-License-Identifier: Apache-2.0

//go:build unix

package lifeline

import (
	"os/exec"
	"syscall"
)

// EndTogether has a command that was made with a context, and all that it starts in turn, told to end (SIGTERM) when that context ends:
// make, go run and go test do not hand signals on, and what they started would go on. It is called before the command is started. What
// makes a process group of its own has to be told by whoever started it.
func EndTogether(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
