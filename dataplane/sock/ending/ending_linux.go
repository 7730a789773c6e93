// SPDX-License-Identifier: Apache-2.0

package ending

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/internal/netns"
)

// Namespaces is where container runtimes keep those of pods, a file each.
const Namespaces = "/run/netns"

// Ender ends sockets in the network namespaces of a machine.
type Ender struct {
	// Proc is where processes are seen, whose namespaces are looked through; Namespaces a folder with files of others.
	Proc, Namespaces string
}

// End ends those of these sockets that are connected to their backend, wherever they are, and tells how many that were. What it cannot
// look through does not keep it from the others.
//
// Errors: the kernel cannot (CONFIG_INET_DIAG_DESTROY), or namespaces may not be entered, which the text says.
func (e Ender) End(gone []sock.Record) (ended int, err error) {
	want := wantedOf(gone)
	n, err := want.endHere()
	ended += n
	if errors.Is(err, unix.EOPNOTSUPP) {
		return ended, err
	}
	errs := []error{err}
	files, err := e.files()
	errs = append(errs, err)
	for _, file := range files {
		n, err := want.endIn(file)
		ended += n
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) { // it ended meanwhile
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	return ended, first(errs)
}

// first is the first error, and how many more there are: all namespaces mostly have the same.
func first(errs []error) error {
	var one error
	more := -1
	for _, err := range errs {
		if err != nil {
			more++
			if one == nil {
				one = err
			}
		}
	}
	if more > 0 {
		return fmt.Errorf("%w (and %d more)", one, more)
	}
	return one
}

// files are those of other network namespaces than the process' own, each once.
func (e Ender) files() (out []string, err error) {
	var own syscall.Stat_t
	if err := syscall.Stat("/proc/thread-self/ns/net", &own); err != nil {
		return nil, fmt.Errorf("own network namespace: %w", err)
	}
	seen := map[uint64]bool{own.Ino: true}
	processes, _ := filepath.Glob(filepath.Join(e.Proc, "[0-9]*", "ns", "net")) // the pattern is well formed
	kept, _ := filepath.Glob(filepath.Join(e.Namespaces, "*"))
	for _, file := range append(kept, processes...) {
		var s syscall.Stat_t
		if syscall.Stat(file, &s) == nil && !seen[s.Ino] { // of a process that ended, or is hidden from us, there is nothing to see
			seen[s.Ino] = true
			out = append(out, file)
		}
	}
	return out, nil
}

// key is a socket that is to be ended, if it is connected there.
type key struct {
	cookie uint64
	to     netip.AddrPort
}

// wanted are such, by their protocol.
type wanted map[uint8]map[key]bool

func wantedOf(gone []sock.Record) wanted {
	out := wanted{}
	for _, r := range gone {
		if out[r.Backend.Protocol] == nil {
			out[r.Backend.Protocol] = map[key]bool{}
		}
		out[r.Backend.Protocol][key{r.Socket, netip.AddrPortFrom(r.Backend.Address, r.Backend.Port)}] = true
	}
	return out
}

func (w wanted) endIn(file string) (ended int, err error) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	err = netns.Do(fd, func() (err error) {
		ended, err = w.endHere()
		return err
	})
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w (CAP_SYS_ADMIN)", err)
	}
	return ended, err
}

// endHere ends them in the namespace of the calling thread.
func (w wanted) endHere() (ended int, err error) {
	d, err := openDiag()
	if err != nil {
		return 0, err
	}
	defer d.close()
	for protocol, these := range w {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			all, err := d.list(family, protocol)
			if errors.Is(err, unix.ENOENT) {
				continue // without CONFIG_INET_UDP_DIAG, or IPv6 is off
			}
			if err != nil {
				return ended, fmt.Errorf("list sockets: %w", err)
			}
			for _, s := range all {
				if !these[key{s.cookie(), s.to()}] {
					continue
				}
				if err := d.destroy(s, protocol); errors.Is(err, unix.EOPNOTSUPP) {
					return ended, fmt.Errorf("the kernel does not end sockets of others (CONFIG_INET_DIAG_DESTROY): %w", err)
				} else if err != nil {
					return ended, fmt.Errorf("end a socket: %w", err)
				}
				ended++
			}
		}
	}
	return ended, nil
}
