// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/dataplane/sock"
)

// layout names how rows look. Another look is another number: the tables are made anew then, beside those of before.
const layout = 1

// Sizes is how many rows each table has room for. What clients are remembered by makes room by forgetting who was
// longest not seen.
type Sizes struct {
	sock.Capacity
	Affinity int // clients of rules with affinity
	Flows    int // flows of datagrams of sockets that are not connected
	Records  int // sockets that got to a backend
}

// DefaultSizes are those of balancing §23, with room for four backends a place.
var DefaultSizes = Sizes{sock.Capacity{Places: 65536, Slots: 262144, Nodes: 65536}, 65536, 65536, 262144}

// Options of the programs.
type Options struct {
	Cgroup string // folder of the cgroup (v2) whose sockets are resolved, and those below it. Default: where it is mounted
	Pins   string // folder on a bpffs; it is made. Default DefaultPins
	Sizes  Sizes  // zero: DefaultSizes
	Log    *slog.Logger
}

// Settings are what programs read anew for each call.
type Settings struct {
	IPv4, IPv6 bool
	Events     bool
	Limit      uint32        // of redirects a second, for each place; 0: none
	UDPIdle    time.Duration // that a choice for datagrams is kept without use. Default 2 minutes
	Exempt     uint64        // id of a cgroup whose sockets are left alone; 0: none
	PodLevels  uint32        // depths of cgroups that may be pods', a bit each, from 1 to 7. Default all of them
	// ExemptPriority is the SO_PRIORITY of sockets that are left alone; 0: none. No packet is routed or translated by it, as it may
	// be by a mark.
	ExemptPriority uint32
}

// anyLevel are all depths that programs can look at.
const anyLevel = 0xfe

// Program is what resolves, in the kernel. Its methods are not for use by several at once.
type Program struct {
	log     *slog.Logger
	options Options
	folder  string // of the tables
	maps    sockMaps
	fresh   bool // the tables were made now
	spec    *ebpf.CollectionSpec
}

// Open finds the tables that an earlier agent left, or makes them. Traffic goes on as it is.
//
// Errors: ErrNotSupported if the kernel lacks what is needed, which the text names; others say which folder is not what it
// has to be.
func Open(o Options) (*Program, error) {
	if o.Sizes == (Sizes{}) {
		o.Sizes = DefaultSizes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Pins = cmp.Or(o.Pins, DefaultPins)
	if o.Cgroup == "" {
		if o.Cgroup = mountedCgroup(); o.Cgroup == "" {
			return nil, fmt.Errorf("the root of cgroup v2 is at none of %s: mount it (mount -t cgroup2 none /run/cgroup2), in a container the host's, and name the folder in sock.cgroup", strings.Join(cgroupMounts, ", "))
		}
	}
	if err := checkFolders(o); err != nil {
		return nil, err
	}
	if err := checkKernel(); err != nil {
		return nil, err
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift the limit of locked memory: %w", err)
	}
	p := &Program{log: o.Log, options: o, folder: filepath.Join(o.Pins, o.Sizes.folder())}
	if err := p.openTables(); err != nil {
		return nil, err
	}
	return p, nil
}

// folder names tables of a layout and of these sizes.
func (s Sizes) folder() string {
	return fmt.Sprintf("tables-%d-%x-%x-%x-%x-%x-%x", layout, s.Places, s.Slots, s.Nodes, s.Affinity, s.Flows, s.Records)
}

// DefaultPins is where programs and tables are pinned.
const DefaultPins = "/sys/fs/bpf/fairlead"

// cgroupMounts are where cgroup v2 is on machines that have only that, and on those that have version 1, too.
var cgroupMounts = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/run/cgroup2"}

// mountedCgroup is the first that is there; empty if none is. In a container a folder may be the container's own cgroup, which has
// a type, as only the root has not: with that, nobody else's sockets would be resolved.
func mountedCgroup() string {
	for _, path := range cgroupMounts {
		_, err := os.Stat(filepath.Join(path, "cgroup.type"))
		if isOf(path, cgroup2Magic, "") == nil && errors.Is(err, os.ErrNotExist) {
			return path
		}
	}
	return ""
}

const (
	cgroup2Magic = 0x63677270
	bpffsMagic   = 0xcafe4a11
)

func checkFolders(o Options) error {
	if err := isOf(o.Cgroup, cgroup2Magic, "a folder of cgroup v2"); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Pins, 0o700); err != nil {
		return fmt.Errorf("pin directory: %w", err)
	}
	return isOf(o.Pins, bpffsMagic, "on a bpffs; mount one: mount -t bpf bpf /sys/fs/bpf")
}

func isOf(path string, magic int64, what string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if int64(s.Type) != magic { //nolint:unconvert // 32 bits wide on some processors
		return fmt.Errorf("%s is not %s", path, what)
	}
	return nil
}

// ErrNotSupported is that the kernel lacks something.
var ErrNotSupported = ebpf.ErrNotSupported

// checkKernel finds out what programs need, so that the message says what lacks rather than which instruction failed.
func checkKernel() error {
	if err := features.HaveProgramType(ebpf.CGroupSockAddr); err != nil {
		return fmt.Errorf("programs at sockets of cgroups (Linux 4.17, CONFIG_CGROUP_BPF): %w", err)
	}
	if err := features.HaveMapType(ebpf.RingBuf); err != nil {
		return fmt.Errorf("ring buffers (Linux 5.8): %w", err)
	}
	if err := features.HaveProgramHelper(ebpf.CGroupSockAddr, asm.FnGetNetnsCookie); err != nil {
		return fmt.Errorf("cookies of network namespaces (Linux 5.7): %w", err)
	}
	return nil
}

// openTables opens those that are pinned, and makes and pins those that are not.
func (p *Program) openTables() error {
	spec, err := loadSock()
	if err != nil {
		return fmt.Errorf("read the programs: %w", err)
	}
	s := p.options.Sizes
	for name, size := range map[string]int{
		sockMapFrontends: s.Places, sockMapWindows: s.Places, sockMapSlots: s.Slots, sockMapNodes: s.Nodes, sockMapOwn: s.Slots,
		sockMapAffinity: s.Affinity, sockMapFlows: s.Flows, sockMapRecords: s.Records,
	} {
		spec.Maps[name].MaxEntries = uint32(size)
	}
	// Refused calls say why where the kernel can (5.18); elsewhere the application sees EPERM.
	if features.HaveProgramHelper(ebpf.CGroupSockAddr, asm.FnSetRetval) != nil {
		if err := spec.Variables["can_say_error"].Set(uint8(0)); err != nil {
			return fmt.Errorf("set up the programs: %w", err)
		}
		p.log.Warn("refused connections fail with EPERM: the kernel is older than 5.18")
	}
	_, err = os.Stat(p.folder)
	p.fresh = errors.Is(err, os.ErrNotExist)
	if err := os.MkdirAll(p.folder, 0o700); err != nil {
		return fmt.Errorf("pin directory: %w", err)
	}
	for name, m := range spec.Maps {
		if name[0] != '.' {
			m.Pinning = ebpf.PinByName
		}
	}
	p.spec = spec
	err = spec.LoadAndAssign(&p.maps, &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: p.folder}})
	if err != nil {
		return fmt.Errorf("make the tables: %w", explain(err))
	}
	return nil
}

// explain says what an error means that the kernel gives for many things.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("%w (this needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON)", err)
	case errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("%w (make the tables smaller: sock.places, sock.slots, sock.records in agent.yaml)", err)
	}
	return err
}

func isTooBig(err error) bool { return errors.Is(err, syscall.E2BIG) }

// Set has programs read other settings from the next call on.
func (p *Program) Set(s Settings) error {
	if s.UDPIdle <= 0 {
		s.UDPIdle = 2 * time.Minute
	}
	if s.PodLevels == 0 {
		s.PodLevels = anyLevel
	}
	v := sockSettings{
		Ipv4: bit(s.IPv4), Ipv6: bit(s.IPv6), Events: bit(s.Events), Limit: s.Limit, UdpIdle: uint64(s.UDPIdle), Exempt: s.Exempt,
		PodLevels: s.PodLevels, ExemptPriority: s.ExemptPriority,
	}
	if err := p.maps.Config.Put(uint32(0), v); err != nil {
		return fmt.Errorf("write table config: %w", err)
	}
	return nil
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// Cgroup is the folder of the cgroup whose sockets are resolved.
func (p *Program) Cgroup() string { return p.options.Cgroup }

// Close lets go of everything in this process. What is in the kernel stays and works.
func (p *Program) Close() error { return p.maps.Close() }
