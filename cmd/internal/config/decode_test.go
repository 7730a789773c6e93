// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"
)

func TestOneFileServesManyByTheEnvironment(t *testing.T) {
	text := strings.Replace(validAgent, "node: n1", "node: ${FAIRLEAD_TEST_NODE} # not $FAIRLEAD_TEST_NODE, nor ${small}", 1)
	if _, err := loadAgent(t, text, ""); err == nil || !strings.Contains(err.Error(), "FAIRLEAD_TEST_NODE: is not set in the environment") {
		t.Fatalf("a variable that is not set: %v", err)
	}
	twice := text + "stateDir: ${FAIRLEAD_TEST_DIR}\nlog: ${FAIRLEAD_TEST_NODE}\n"
	if _, err := loadAgent(t, twice, ""); err == nil || strings.Count(err.Error(), "FAIRLEAD_TEST_NODE:") != 1 {
		t.Errorf("a variable that is not set, named twice with another between: %v", err)
	}
	t.Setenv("FAIRLEAD_TEST_NODE", "n7")
	c, err := loadAgent(t, text, "")
	if err != nil || c.Node != "n7" {
		t.Errorf("node %q, %v", c.Node, err)
	}
}
