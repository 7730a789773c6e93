// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"strings"
	"time"

	"fairlead.io/fairlead/e2e/kubetest"
)

// writes counts what an API server was asked to write so far, by resource and subresource, of what count tells to count.
func writes(t *bench, c *kubetest.Cluster, count func(group, resource string) bool) map[string]float64 {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	text, err := c.Client().CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		labels, ok := strings.CutPrefix(lines.Text(), "apiserver_request_total{")
		if !ok || !writing(labels) {
			continue
		}
		labels, value, _ := strings.Cut(labels, "} ")
		resource := labelOf(labels, "resource")
		if !count(labelOf(labels, "group"), resource) {
			continue
		}
		if sub := labelOf(labels, "subresource"); sub != "" {
			resource += "/" + sub
		}
		out[resource] += number(value)
	}
	return out
}

func writing(labels string) bool {
	switch labelOf(labels, "verb") {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE":
		return true
	}
	return false
}

func labelOf(labels, name string) string {
	_, rest, _ := strings.Cut(","+labels, ","+name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// written is what came between two counts.
func written(before, after map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for resource, n := range after {
		if more := n - before[resource]; more != 0 {
			out[resource] = more
		}
	}
	return out
}

// idleFor is how long writes are counted while nothing changes.
const idleFor = 30 * time.Second

// idleWrites waits until members have written the status of so many Services and then nothing for some seconds, and gives
// what is written in half a minute afterwards, but for Events and the leases that nodes renew.
func (c *apiCluster) idleWrites(services int) map[string]float64 {
	ours := func() map[string]float64 {
		return writes(c.t, c.Cluster, func(_, resource string) bool { return resource != "leases" && resource != "events" })
	}
	c.t.progressf("waiting until the status of %d Services is written", services)
	var before map[string]float64
	for deadline := time.Now().Add(30 * time.Minute); ; {
		before = ours()
		time.Sleep(5 * time.Second)
		if before["services/status"] >= float64(services) && len(written(before, ours())) == 0 {
			break
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the status of %d Services: %v", services, before)
		}
	}
	time.Sleep(idleFor)
	return written(before, ours())
}
