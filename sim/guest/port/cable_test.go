// SPDX-License-Identifier: Apache-2.0

package port

import (
	"encoding/binary"
	"io"
	"os"
	"sync/atomic"
	"testing"
)

// cable joins two ports: what one dials, the other one accepts. Odd numbers are of connections that came in. Frames go by a pipe and
// not by a call into the other port: who sends holds the lock of its connection, and two that send to each other would wait for ever.
type cable struct {
	name string
	wire io.Writer
	next atomic.Uint32
}

func (c *cable) Dial(_, port string, hello []byte) uint32 {
	id := c.next.Add(2)
	c.write(id, frameInbound, []byte(c.name+"\x00"+port+"\x00"+string(hello)))
	return id
}

func (c *cable) Listen(string) {}

func (c *cable) Send(id uint32, data []byte) { c.write(id, frameData, data) }

func (c *cable) Close(id uint32, broken bool) {
	kind := byte(frameEnd)
	if broken {
		kind = frameReset
	}
	c.write(id, kind, nil)
}

// write sends a frame of a connection, under the number that the other end has for it. What is sent after the test's end is lost.
func (c *cable) write(id uint32, kind byte, payload []byte) {
	frame := binary.LittleEndian.AppendUint32(nil, id^1)
	frame = append(frame, kind)
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(payload)))
	_, _ = c.wire.Write(append(frame, payload...))
}

func pair(t *testing.T) (a, b *Port) {
	t.Helper()
	fromA, toB := pipe(t)
	fromB, toA := pipe(t)
	a, b = Open(&cable{name: "a", wire: toB}), Open(&cable{name: "b", wire: toA})
	go func() { _ = b.Run(fromA) }() // until the test closes the pipe
	go func() { _ = a.Run(fromB) }()
	return a, b
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return r, w
}

var _ System = (*cable)(nil)
