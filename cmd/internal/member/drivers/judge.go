// SPDX-License-Identifier: Apache-2.0

package drivers

import (
	"context"
	"encoding/json"
	"fmt"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// Judge asks a driver which of some pods stay registered though they are not ready (lbcf §3.12). Pods that are gone are not asked
// about, and do not stay. It is a leader.Judge.
func (d *Drivers) Judge(ctx context.Context, name string, pods []balancers.PodRef) (keep []string, err error) {
	row, ok := d.row(name)
	if !ok {
		return nil, fmt.Errorf("judgePodDeregister of driver %s: there is no such driver", name)
	}
	client, err := d.pool.For(Settings(row))
	if err != nil {
		return nil, err
	}
	found := make([]json.RawMessage, 0, len(pods))
	for _, p := range pods {
		if pod, ok := d.objects.Pod(p.Namespace, p.Name, p.UID); ok {
			found = append(found, pod)
		}
	}
	j, err := client.JudgePodDeregister(ctx, driver.Call{}, webhook.JudgePodDeregisterRequest{NotReadyPods: found})
	if err == nil && !j.Succ {
		err = fmt.Errorf("judgePodDeregister of driver %s: it answered: %s", name, j.Msg)
	}
	if err != nil {
		return nil, err
	}
	return j.Keep, nil
}
