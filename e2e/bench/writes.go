// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"strings"

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
