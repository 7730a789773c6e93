// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// files does with package os what storage code does, and tells what it sees.
func files() {
	check(os.MkdirAll("/a/b/c", 0o700))
	check(os.WriteFile("/a/b/one", []byte("first"), 0o600))
	_, err := os.OpenFile("/a/b/one", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	fmt.Println("exclusive:", errors.Is(err, fs.ErrExist))
	_, err = os.Stat("/a/none")
	fmt.Println("missing:", errors.Is(err, fs.ErrNotExist))

	f, err := os.OpenFile("/a/b/one", os.O_RDWR|os.O_APPEND, 0)
	check(err)
	fmt.Fprint(f, "+second")
	_, err = f.Seek(2, io.SeekStart)
	check(err)
	rest, err := io.ReadAll(f)
	check(err)
	fmt.Printf("rest: %s\n", rest)
	check(f.Truncate(7))
	check(f.Sync())
	check(f.Close())
	fmt.Println("closed:", errors.Is(f.Close(), fs.ErrClosed))

	g, err := os.Create("/a/b/two")
	check(err)
	_, err = g.WriteAt([]byte("xyz"), 5)
	check(err)
	part := make([]byte, 4)
	n, err := g.ReadAt(part, 6)
	fmt.Printf("part: %q %v\n", part[:n], err)
	check(g.Close())

	temp, err := os.CreateTemp("/a", "temp-*")
	check(err)
	_, err = temp.WriteString("temporary")
	check(err)
	check(temp.Sync())
	check(temp.Close())
	check(os.Rename(temp.Name(), "/a/b/one"))
	dir, err := os.Open("/a/b")
	check(err)
	check(dir.Sync())
	check(dir.Close())
	raw, err := os.ReadFile("/a/b/one")
	check(err)
	fmt.Printf("renamed: %s\n", raw)

	info, err := os.Stat("/a/b/one")
	check(err)
	fmt.Println("stat:", info.Name(), info.Size(), info.Mode(), time.Since(info.ModTime()) < time.Second)
	fmt.Println("not empty:", os.Remove("/a/b") != nil)
	for k := range 300 { // more than one buffer
		check(os.WriteFile(fmt.Sprintf("/a/b/c/%s-%03d", strings.Repeat("n", 60), k), nil, 0o600))
	}
	list, err := os.ReadDir("/a/b/c")
	check(err)
	fmt.Println("many:", len(list), list[0].Name()[60:], list[299].Name()[60:])
	check(os.RemoveAll("/a/b/c"))
	check(filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		fmt.Println("walk:", path, d.IsDir(), err)
		return err
	}))
	ro, err := os.Open("/a/b/two")
	check(err)
	_, err = ro.Write([]byte("x"))
	fmt.Println("read-only:", err)
	_, err = os.OpenFile("/a", os.O_RDWR, 0)
	fmt.Println("a directory:", err)
	synced, err := os.OpenFile("/a/b/two", os.O_WRONLY|os.O_SYNC, 0)
	check(err)
	before := time.Now()
	_, err = synced.WriteAt([]byte("x"), 0)
	fmt.Println("takes the time of a sync:", time.Since(before) > 100*time.Microsecond, err)
	_, err = synced.Read(part)
	fmt.Println("write-only:", err)
	for k := range 120 {
		many, err := os.OpenFile(fmt.Sprint("/a/b/c", k), os.O_RDWR|os.O_CREATE, 0o600)
		check(err)
		defer many.Close()
		if many.Fd() == wireFile {
			fmt.Println("a file has the descriptor of the wire")
		}
		check(os.Remove(many.Name()))
	}
	check(os.Chdir("/a"))
	raw, err = os.ReadFile("b/two")
	fmt.Printf("relative: %q %v\n", raw, err)
	check(os.Truncate("b/two", 2))
	check(os.RemoveAll("/a"))
	list, err = os.ReadDir("/")
	fmt.Println("left:", len(list), err)
}
