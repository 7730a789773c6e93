// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"

	"github.com/google/nftables"
)

// priorityOutput is where the kernel translates what this host's own programs send, whatever priority a chain asks for.
const priorityOutput = -100

// Ahead implements Edge. It knows kube-proxy's tables of nftables: from 1.34 on their filters come after translation. What
// cannot be read is taken for nothing: the word is a warning.
func (k *kernel) Ahead() string {
	conn, err := nftables.New(nftables.WithNetNSFd(k.netns))
	if err != nil {
		return ""
	}
	for _, of := range []struct {
		name   string
		family nftables.TableFamily
	}{{"ip", nftables.TableFamilyIPv4}, {"ip6", nftables.TableFamilyIPv6}} {
		c, err := conn.ListChain(&nftables.Table{Name: "kube-proxy", Family: of.family}, "filter-output")
		if err == nil && c.Hooknum != nil && *c.Hooknum == *nftables.ChainHookOutput && c.Priority != nil && *c.Priority < priorityOutput {
			return fmt.Sprintf("filter-output of table %s kube-proxy, priority %d", of.name, *c.Priority)
		}
	}
	return ""
}
