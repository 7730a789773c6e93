// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"fmt"
	"net/netip"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/internal/testkit"
)

// others attaches somebody else's program to a hook of the lab's cgroup: it lets all calls go, but those to a port.
func (l *lab) others(at ebpf.AttachType, refused uint16) link.Link {
	l.t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.CGroupSockAddr, AttachType: at, License: "Apache-2.0",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, 24, asm.Word), // user_port
			asm.Mov.Imm(asm.R0, 1),
			asm.JNE.Imm(asm.R2, int32(swapPort(refused)), "end"),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return().WithSymbol("end"),
		},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	defer program.Close()
	attached, err := link.AttachCgroup(link.CgroupOptions{Path: l.cgroup, Attach: at, Program: program})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = attached.Close() })
	return attached
}

// Balancing §16.1, §25: programs of others at the same cgroup, attached before ours or after, go on to work beside them, and stay when ours go.
// Rule: balancing §16.
func TestProgramsOfOthersGoOn(t *testing.T) {
	l := newLab(t)
	l.others(ebpf.AttachCGroupInet4Connect, 7001)
	k := l.tables(l.open())
	l.others(ebpf.AttachCGroupInet4Connect, 7002)
	backend := serve(t, "tcp4", "127.0.0.1")
	k.hold(sock.Want{Rules: []*sock.Rule{service(1, front(sock.TCP, vip4, backend))}})
	connect := func(port uint16) result {
		return l.client.do(call{Op: "connect", Net: "tcp4", To: netip.AddrPortFrom(backend.at.Addr(), port)})
	}
	for _, ours := range []bool{true, false} {
		// The kernel detaches a moment after the last pin went.
		testkit.Until(t, fmt.Sprintf("calls are resolved: %t", ours), func() bool {
			return ours == (l.client.do(call{Op: "connect", Net: "tcp4", To: vip4}).Said == backend.at.String())
		})
		for _, port := range []uint16{7001, 7002} {
			if r := connect(port); r.Errno != syscall.EPERM {
				t.Errorf("with our programs (%t), what others refuse: %+v", ours, r)
			}
		}
		if ours {
			if err := Remove(l.pins); err != nil {
				t.Fatal(err)
			}
		}
	}
}
