// SPDX-License-Identifier: Apache-2.0

package birdtest

import (
	"os/exec"
	"syscall"
)

// EndWithTest has the kernel end a process that is about to start if the test ends without doing so, killed for one.
func EndWithTest(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
