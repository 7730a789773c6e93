// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package lifeline

import "os/exec"

func endWithUs(*exec.Cmd) {}
