// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// What calls cost, of the world's time.
const (
	callTime  = 100 * time.Nanosecond
	yieldTime = time.Microsecond
)

// Numbers of WASI preview 1 (errno), besides those of package disk.
const (
	ok      = 0
	again   = 6
	badFile = 8
	fault   = 21
	invalid = 28
	noSys   = 52
)

// call is a system call: its arguments, and the result it returns.
type call func(p *Process, a []uint64) uint32

// function is a call as the guest imports it.
type function struct {
	name    string
	do      call
	params  string // a letter each: i is 32 bits, I is 64
	returns bool
}

// Call implements api.GoModuleFunction.
func (f *function) Call(ctx context.Context, _ api.Module, stack []uint64) {
	for k := range len(f.params) {
		if f.params[k] == 'i' {
			stack[k] = uint64(uint32(stack[k])) // the upper half is anything
		}
	}
	stack[0] = uint64(ctx.(*self).process.call(f.do, stack))
}

// call is a call of the guest.
func (p *Process) call(do call, a []uint64) uint32 {
	p.enter()
	defer p.leave()
	return do(p, a)
}

// enter is where a process dies by a fuse, pays, and is found to spin.
func (p *Process) enter() {
	if p.fuse > 0 {
		if p.fuse--; p.fuse == 0 {
			p.die()
		}
	}
	if p.calls++; p.calls > p.spec.Limits.Calls {
		p.spins()
	}
	p.spec.World.Pass(callTime)
}

// leave is where a process dies that was killed during its call. It keeps panics of the host's side, which wazero
// would take for a failure of the guest.
func (p *Process) leave() {
	if r := recover(); r != nil {
		if _, exit := r.(*sys.ExitError); !exit && p.bug == nil {
			p.bug = fmt.Sprintf("%v, in a call of process %s at %v\n%s", r, p.spec.Name, p.spec.World.Now(), debug.Stack())
		}
		panic(r)
	}
	if p.killed {
		p.die()
	}
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// export makes the two modules that guests import.
func export(ctx context.Context, r wazero.Runtime) error {
	for _, m := range []struct {
		name      string
		functions []function
	}{{"wasi_snapshot_preview1", wasi}, {"fairlead", wire}} {
		builder := r.NewHostModuleBuilder(m.name)
		for _, f := range m.functions {
			params := make([]api.ValueType, len(f.params))
			for k, letter := range f.params {
				params[k] = i32
				if letter == 'I' {
					params[k] = i64
				}
			}
			var results []api.ValueType
			if f.returns {
				results = []api.ValueType{i32}
			}
			builder.NewFunctionBuilder().WithGoModuleFunction(&f, params, results).Export(f.name)
		}
		if _, err := builder.Instantiate(ctx); err != nil {
			return fmt.Errorf("module %s: %w", m.name, err)
		}
	}
	return nil
}

// wasi are the calls of WASI preview 1 that Go's runtime and standard library import.
var wasi = []function{
	{"args_get", argsGet, "ii", true},
	{"args_sizes_get", argsSizesGet, "ii", true},
	{"environ_get", environGet, "ii", true},
	{"environ_sizes_get", environSizesGet, "ii", true},
	{"clock_res_get", clockResGet, "ii", true},
	{"clock_time_get", clockTimeGet, "iIi", true},
	{"random_get", randomGet, "ii", true},
	{"sched_yield", schedYield, "", true},
	{"proc_exit", procExit, "i", false},
	{"poll_oneoff", pollOneoff, "iiii", true},

	{"fd_advise", fdAdvise, "iIIi", true},
	{"fd_allocate", fdAllocate, "iII", true},
	{"fd_close", fdClose, "i", true},
	{"fd_datasync", fdSync, "i", true},
	{"fd_sync", fdSync, "i", true},
	{"fd_fdstat_get", fdFdstatGet, "ii", true},
	{"fd_fdstat_set_flags", fdFdstatSetFlags, "ii", true},
	{"fd_fdstat_set_rights", fdFdstatSetRights, "iII", true},
	{"fd_filestat_get", fdFilestatGet, "ii", true},
	{"fd_filestat_set_size", fdFilestatSetSize, "iI", true},
	{"fd_filestat_set_times", fdFilestatSetTimes, "iIIi", true},
	{"fd_pread", fdPread, "iiiIi", true},
	{"fd_pwrite", fdPwrite, "iiiIi", true},
	{"fd_read", fdRead, "iiii", true},
	{"fd_write", fdWrite, "iiii", true},
	{"fd_readdir", fdReaddir, "iiiIi", true},
	{"fd_renumber", unsupported, "ii", true},
	{"fd_seek", fdSeek, "iIii", true},
	{"fd_tell", fdTell, "ii", true},
	{"fd_prestat_get", fdPrestatGet, "ii", true},
	{"fd_prestat_dir_name", fdPrestatDirName, "iii", true},

	{"path_create_directory", pathCreateDirectory, "iii", true},
	{"path_filestat_get", pathFilestatGet, "iiiii", true},
	{"path_filestat_set_times", pathFilestatSetTimes, "iiiiIIi", true},
	{"path_link", unsupported, "iiiiiii", true},
	{"path_open", pathOpen, "iiiiiIIii", true},
	{"path_readlink", pathReadlink, "iiiiii", true},
	{"path_remove_directory", pathRemoveDirectory, "iii", true},
	{"path_rename", pathRename, "iiiiii", true},
	{"path_symlink", unsupported, "iiiii", true},
	{"path_unlink_file", pathUnlinkFile, "iii", true},

	{"sock_accept", unsupported, "iii", true},
	{"sock_recv", unsupported, "iiiiii", true},
	{"sock_send", unsupported, "iiiii", true},
	{"sock_shutdown", unsupported, "ii", true},
}

// unsupported are calls that no simulated process needs.
func unsupported(*Process, []uint64) uint32 { return noSys }
