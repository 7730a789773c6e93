// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"

	"fairlead.io/fairlead/sim/program"
	"fairlead.io/fairlead/sim/vm"
)

// Load finds or builds the program of simulated processes, and compiles it or takes the compilation kept from before.
// Close it when no world runs any more.
func Load(ctx context.Context, o program.Options) (*vm.Module, error) {
	p, err := program.Find(ctx, o)
	if err != nil {
		return nil, err
	}
	return vm.Load(ctx, p.Code, p.Cache)
}
