// SPDX-License-Identifier: Apache-2.0

// Package lifeline starts processes that end with this one, however that ends.
//
// The kernel ends a process with the thread that started it, and threads of Go programs end: those that were in another network
// namespace, for one. So all are started by one thread that stays. Start reading at Start.
package lifeline

import (
	"os/exec"
	"runtime"
	"sync"
)

type request struct {
	cmd  *exec.Cmd
	done chan error
}

var requests = sync.OnceValue(func() chan<- request {
	c := make(chan request)
	go func() {
		runtime.LockOSThread() // never unlocked: nobody else uses the thread
		for r := range c {
			r.done <- r.cmd.Start()
		}
	}()
	return c
})

// Start starts cmd, as its method does, in the namespaces of this process. On Linux the kernel kills it when this process ends; on
// other systems it may outlive this process.
//
// Errors: those of cmd.Start.
func Start(cmd *exec.Cmd) error {
	endWithUs(cmd)
	r := request{cmd, make(chan error, 1)}
	requests() <- r
	return <-r.done
}
