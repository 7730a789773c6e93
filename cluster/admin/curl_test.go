// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"

	"fairlead.io/fairlead/cluster/pki"
)

// The call that the API's documentation shows, with the tool itself.
func TestCurlAsDocumented(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	w := newWorld(t)
	files := w.ca.Issue(t, pki.Request{Role: pki.Viewer, Name: "bob"})
	for _, version := range []string{"--http1.1", "--http2"} {
		command := exec.Command(curl, "--silent", "--show-error", "--max-time", "120", version,
			"--cacert", files.CA, "--cert", files.Cert, "--key", files.Key,
			"--header", "Content-Type: application/json", "--data", "{}",
			"https://"+w.member("m2").address+"/fairlead.v1.RaftService/Status")
		var complaint bytes.Buffer
		command.Stderr = &complaint
		out, err := command.Output()
		var answer struct{ Leader, Advice string }
		if err != nil || json.Unmarshal(out, &answer) != nil || answer.Leader != "m1" {
			t.Errorf("curl %s: %v %s: %s", version, err, complaint.String(), out)
		}
	}
}
