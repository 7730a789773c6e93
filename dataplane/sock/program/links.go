// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// hooks are where programs are attached, in this order: who reads answers comes before who makes them necessary.
var hooks = []struct {
	name string
	at   ebpf.AttachType
}{
	{sockProgSockRelease, ebpf.AttachCgroupInetSockRelease},
	{sockProgGetpeername4, ebpf.AttachCgroupInet4GetPeername},
	{sockProgGetpeername6, ebpf.AttachCgroupInet6GetPeername},
	{sockProgRecvmsg4, ebpf.AttachCGroupUDP4Recvmsg},
	{sockProgRecvmsg6, ebpf.AttachCGroupUDP6Recvmsg},
	{sockProgSendmsg4, ebpf.AttachCGroupUDP4Sendmsg},
	{sockProgSendmsg6, ebpf.AttachCGroupUDP6Sendmsg},
	{sockProgConnect4, ebpf.AttachCGroupInet4Connect},
	{sockProgConnect6, ebpf.AttachCGroupInet6Connect},
}

func (p *Program) pinOf(hook string) string { return filepath.Join(p.options.Pins, "link-"+hook) }

// Attach has the programs of this release work with these tables, each in one step, in the place of what worked there
// before. After an error some may be of the old release, which goes on with its tables: Attach may be tried again.
func (p *Program) Attach() error {
	var programs sockPrograms
	err := p.spec.LoadAndAssign(&programs, &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: p.folder}})
	if err != nil {
		return fmt.Errorf("load the programs: %w", explain(err))
	}
	defer programs.Close()
	if err := p.inherit(); err != nil {
		return err
	}
	byName := map[string]*ebpf.Program{
		sockProgSockRelease: programs.SockRelease, sockProgGetpeername4: programs.Getpeername4, sockProgGetpeername6: programs.Getpeername6,
		sockProgRecvmsg4: programs.Recvmsg4, sockProgRecvmsg6: programs.Recvmsg6, sockProgSendmsg4: programs.Sendmsg4,
		sockProgSendmsg6: programs.Sendmsg6, sockProgConnect4: programs.Connect4, sockProgConnect6: programs.Connect6,
	}
	for _, h := range hooks {
		if err := p.attach(h.name, h.at, byName[h.name]); err != nil {
			return fmt.Errorf("attach %s to %s: %w", h.name, p.options.Cgroup, explain(err))
		}
	}
	// What was remembered while hooks were switched one by one.
	if err := p.inherit(); err != nil {
		return err
	}
	return p.removeOthers()
}

// inherited are the tables by which clients are remembered.
var inherited = []string{sockMapRecords, sockMapAffinity, sockMapFlows}

// inherit copies what clients are remembered by from tables of this layout and of other sizes. As many find room as there is.
func (p *Program) inherit() error {
	others, err := filepath.Glob(filepath.Join(p.options.Pins, fmt.Sprintf("tables-%d-*", layout)))
	if err != nil {
		return fmt.Errorf("pin directory: %w", err)
	}
	into := map[string]*ebpf.Map{sockMapRecords: p.maps.Records, sockMapAffinity: p.maps.Affinity, sockMapFlows: p.maps.Flows}
	for _, folder := range others {
		if folder == p.folder {
			continue
		}
		for _, name := range inherited {
			if err := copyRows(filepath.Join(folder, name), into[name]); err != nil {
				return fmt.Errorf("take over table %s: %w", name, err)
			}
		}
	}
	return nil
}

func copyRows(pin string, to *ebpf.Map) error {
	from, err := ebpf.LoadPinnedMap(pin, nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil // an agent was killed while it made or removed them
	}
	if err != nil {
		return err
	}
	defer from.Close()
	var key, value []byte
	rows := from.Iterate()
	for rows.Next(&key, &value) {
		if err := to.Update(key, value, ebpf.UpdateNoExist); err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
			return err
		}
	}
	if err := rows.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) { // clients change it meanwhile
		return err
	}
	return nil
}

func (p *Program) attach(name string, at ebpf.AttachType, program *ebpf.Program) error {
	pin := p.pinOf(name)
	old, err := link.LoadPinnedLink(pin, nil)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("%s: %w", pin, err)
	default:
		defer old.Close()
		if p.isHere(old) {
			return old.Update(program)
		}
		p.log.Warn("programs worked for another cgroup, which is left", "hook", name)
		if err := old.Unpin(); err != nil {
			return fmt.Errorf("%s: %w", pin, err)
		}
	}
	made, err := link.AttachCgroup(link.CgroupOptions{Path: p.options.Cgroup, Attach: at, Program: program})
	if err != nil {
		return err
	}
	defer made.Close()
	if err := made.Pin(pin); err != nil {
		return fmt.Errorf("%s: %w (links of cgroups need Linux 5.7)", pin, err)
	}
	return nil
}

// isHere is whether a link is to the cgroup that is wanted.
func (p *Program) isHere(l link.Link) bool {
	info, err := l.Info()
	if err != nil || info.Cgroup() == nil {
		return false
	}
	var s syscall.Stat_t
	return syscall.Stat(p.options.Cgroup, &s) == nil && info.Cgroup().CgroupId == s.Ino
}

// removeOthers removes tables of other layouts and sizes, which no program works with any more.
func (p *Program) removeOthers() error {
	entries, err := os.ReadDir(p.options.Pins)
	if err != nil {
		return fmt.Errorf("pin directory: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "tables-") && e.Name() != filepath.Base(p.folder) {
			if err := os.RemoveAll(filepath.Join(p.options.Pins, e.Name())); err != nil {
				return fmt.Errorf("remove tables of before: %w", err)
			}
		}
	}
	return nil
}

// Remove ends resolution: programs go, then tables. Connections that were made stay.
func Remove(pins string) error {
	if _, err := os.Stat(pins); errors.Is(err, os.ErrNotExist) {
		return nil // also where the folder above cannot be written
	}
	for _, h := range hooks {
		pin := filepath.Join(pins, "link-"+h.name)
		if err := os.Remove(pin); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("detach: %w", err)
		}
	}
	entries, err := os.ReadDir(pins)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("pin directory: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "tables-") || e.Name() == request {
			if err := os.RemoveAll(filepath.Join(pins, e.Name())); err != nil {
				return fmt.Errorf("remove tables: %w", err)
			}
		}
	}
	if err := os.Remove(pins); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("pin directory: %w", err) // what is left in it, or mounted there, is somebody else's
	}
	return nil
}
