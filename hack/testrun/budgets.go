// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"time"
)

//go:embed budgets.txt
var budgetLines string

// budgets are what end-to-end tests may take beside each other on two cores, by folder and test: "e2e/group TestX". A test that takes
// longer passes, and the report names it. The dearest are started first, so that none is left to run alone at the end.
var budgets = sync.OnceValue(func() map[string]time.Duration { return readBudgets(budgetLines) })

func readBudgets(text string) map[string]time.Duration {
	all := map[string]time.Duration{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var folder, test, budget string
		if _, err := fmt.Sscan(line, &folder, &test, &budget); err != nil {
			continue
		}
		if d, err := time.ParseDuration(budget); err == nil {
			all[folder+" "+test] = d
		}
	}
	return all
}
