// SPDX-License-Identifier: Apache-2.0

package lifeline

import (
	"os/exec"
	"syscall"
)

func endWithUs(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
