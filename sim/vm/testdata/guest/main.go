// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

// Guest is what the tests of package vm run. Its first argument names what it does.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"fairlead.io/fairlead/sim/guest/abi"
)

var world abi.World

const wireFile = 100

func main() {
	do, ok := map[string]func(){
		"hello": hello, "sleep": sleep, "echo": echo, "chat": chat, "files": files, "journal": journal,
		"spin": spin, "loop": loop, "panic": crash, "clocks": clocks, "reads": reads, "full": full, "flood": flood,
	}[os.Args[1]]
	if !ok {
		os.Exit(64)
	}
	do()
}

func number(i int) int {
	n, err := strconv.Atoi(os.Args[i])
	if err != nil {
		panic(err)
	}
	return n
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func hello() {
	abi.Observe(7, []byte("fact"))
	fmt.Println("args", os.Args, "env", os.Getenv("COLOUR"))
	fmt.Fprint(os.Stderr, "no newline")
	os.Exit(number(2))
}

// sleep sleeps args[2] milliseconds args[3] times, and tells when it woke by its own clocks.
func sleep() {
	began := time.Now()
	for range number(3) {
		time.Sleep(time.Duration(number(2)) * time.Millisecond)
		fmt.Println(time.Since(began).Round(10 * time.Microsecond))
	}
}

func clocks() {
	for range 4 {
		now := time.Now()
		fmt.Println(now.UTC().Format(time.RFC3339Nano))
		time.Sleep(time.Second)
		fmt.Println(time.Since(now).Round(time.Millisecond))
	}
}

// reads looks at the clock args[2] times.
func reads() {
	var last time.Time
	for range number(2) {
		last = time.Now()
	}
	fmt.Println(last.IsZero())
}

type frame struct {
	conn    uint32
	kind    byte
	payload []byte
}

func receive(r io.Reader) frame {
	var head [9]byte
	_, err := io.ReadFull(r, head[:])
	check(err)
	f := frame{conn: binary.LittleEndian.Uint32(head[:]), kind: head[4], payload: make([]byte, binary.LittleEndian.Uint32(head[5:]))}
	_, err = io.ReadFull(r, f.payload)
	check(err)
	return f
}

// buffered gathers whole frames from the wire.
type buffered struct {
	wire io.Reader
	room []byte
	rest []byte
}

func (b *buffered) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		n, err := b.wire.Read(b.room)
		if err != nil {
			return 0, err
		}
		b.rest = b.room[:n]
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func wire() io.Reader {
	return &buffered{wire: abi.Wire(), room: make([]byte, 1<<12)}
}

// echo serves a port: it sends back what it is sent, and ends connections that are ended.
func echo() {
	r := wire()
	world.Listen("echo")
	for {
		switch f := receive(r); f.kind {
		case 1:
			world.Send(f.conn, f.payload)
		case 2:
			world.Close(f.conn, false)
		case 4:
			fmt.Printf("inbound %q\n", f.payload)
		}
	}
}

// chat dials the echo of host args[2], and sends args[3] messages at random times, while a ticker runs.
func chat() {
	r := wire()
	conn := world.Dial(os.Args[2], "echo", []byte("hi"))
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			if rand.IntN(20) == 0 {
				fmt.Println("tick")
			}
		}
	}()
	data := make([]byte, 100)
	for k := range number(3) {
		for i := range data {
			data[i] = byte(rand.Uint32())
		}
		binary.LittleEndian.PutUint32(data, uint32(k))
		world.Send(conn, data)
		f := receive(r)
		for f.kind == 5 {
			f = receive(r)
		}
		if f.kind != 1 || string(f.payload) != string(data) {
			panic(fmt.Sprint("not an echo: kind ", f.kind, " of ", len(f.payload), " bytes"))
		}
		if k%10 == 0 {
			fmt.Println("echoed", k)
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
		}
	}
	world.Close(conn, true)
}

// flood reads whatever comes, slowly, and tells how many bytes each read gave.
func flood() {
	f := abi.Wire()
	for {
		room := make([]byte, number(2))
		n, err := f.Read(room)
		check(err)
		fmt.Println("read", n)
		time.Sleep(10 * time.Millisecond)
	}
}

// journal appends numbered records, syncing each, and tells of a number once it is safe. It begins where it finds
// that it left off, and complains of anything that should not be there.
func journal() {
	check(os.MkdirAll("/data/log", 0o700))
	f, err := os.OpenFile("/data/log/journal", os.O_RDWR|os.O_CREATE, 0o600)
	check(err)
	raw, err := io.ReadAll(f)
	check(err)
	next := uint64(0)
	for len(raw) >= 8 && binary.LittleEndian.Uint64(raw) == next+1 {
		next, raw = next+1, raw[8:]
	}
	if next > 0 {
		check(f.Sync()) // what a killed process wrote may not be on disk yet
	}
	fmt.Println("found", next)
	for {
		_, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, next+1), int64(next)*8)
		check(err)
		check(f.Sync())
		next++
		fmt.Println("safe", next)
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
	}
}

func full() {
	f, err := os.Create("/big")
	check(err)
	for {
		if _, err := f.Write(make([]byte, 1000)); err != nil {
			fmt.Println(err)
			break
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Println(f.Sync())
}

func spin() {
	for {
		time.Now()
	}
}

func loop() {
	for x := uint64(1); x != 0; x |= 1 {
	}
}

func crash() {
	var p *int
	defer func() {
		if r := recover(); r != nil {
			panic(errors.New("as told"))
		}
	}()
	*p = 1
}
