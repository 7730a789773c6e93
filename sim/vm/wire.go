// SPDX-License-Identifier: Apache-2.0

package vm

import "slices"

// wireFile is the descriptor that frames are read from.
const wireFile = 100

// Wire is what a process's imports of module "fairlead" lead to. Slices are lent: what is kept has to be copied. It may
// call Deliver and Kill of any process.
//
//	dial(host, host length, port, port length, hello, hello length) connection
//	listen(port, port length)
//	send(connection, data, length)
//	close(connection, how)          how: 0 end, 1 reset
//	observe(kind, data, length)     goes to Spec.Observe
type Wire interface {
	Dial(host, port string, hello []byte) (conn uint32)
	Listen(port string)
	Send(conn uint32, data []byte)
	Close(conn uint32, reset bool)
}

var wire = []function{
	{"dial", wireDial, "iiiiii", true},
	{"listen", wireListen, "ii", false},
	{"send", wireSend, "iii", false},
	{"close", wireClose, "ii", false},
	{"observe", wireObserve, "iii", false},
}

func wireDial(p *Process, a []uint64) uint32 {
	return p.spec.Wire.Dial(string(p.must(a[0], a[1])), string(p.must(a[2], a[3])), p.must(a[4], a[5]))
}

func wireListen(p *Process, a []uint64) uint32 {
	p.spec.Wire.Listen(string(p.must(a[0], a[1])))
	return ok
}

func wireSend(p *Process, a []uint64) uint32 {
	p.spec.Wire.Send(uint32(a[0]), p.must(a[1], a[2]))
	return ok
}

func wireClose(p *Process, a []uint64) uint32 {
	p.spec.Wire.Close(uint32(a[0]), a[1] != 0)
	return ok
}

func wireObserve(p *Process, a []uint64) uint32 {
	if p.spec.Observe != nil {
		p.spec.Observe(uint32(a[0]), slices.Clone(p.must(a[1], a[2])))
	}
	return ok
}

// must gives a view of what a pointer of our own guest code means; these calls have no way to say no.
func (p *Process) must(at, size uint64) []byte {
	data, good := p.memory.Read(uint32(at), uint32(size))
	if !good {
		panic("a pointer leads out of the guest's memory")
	}
	return data
}

// readWire hands out frames, as many whole ones as fit. One that is larger than all the room is handed out in parts.
func (p *Process) readWire(vectors, count, result uint64) uint32 {
	if len(p.inbox) == 0 {
		return again // the runtime now parks the reading goroutine, and polls for the descriptor
	}
	total := 0
	e := p.vectors(vectors, count, func(part []byte) bool {
		total = p.takeFrames(part)
		return false
	})
	if e != ok {
		return e
	}
	return errno(p.put32(result, uint32(total)))
}

// takeFrames copies frames to a place, and gives how many bytes these were.
func (p *Process) takeFrames(to []byte) int {
	total := 0
	for len(p.inbox) > 0 {
		frame := p.inbox[0]
		if len(frame) > len(to) && total > 0 {
			break
		}
		n := copy(to, frame)
		to, total = to[n:], total+n
		if n < len(frame) {
			p.inbox[0] = frame[n:]
			break
		}
		p.inbox[0] = nil
		p.inbox = p.inbox[1:]
	}
	return total
}
