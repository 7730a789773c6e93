// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"os"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/legacy"
)

// What the old configuration says of a neighbour is what members do, except for what its warnings name.
func TestRecordLosesNothingOfTheOldConfiguration(t *testing.T) {
	text, err := os.ReadFile("../legacy/testdata/config_bgp.toml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := legacy.Parse("config_bgp.toml", text)
	if err != nil || len(c.Peers) < 2 {
		t.Fatal(c.Peers, err)
	}
	for _, want := range c.Peers {
		record := Record(want, "somewhere")
		have := peerOf(&record)
		have.Restart, want.Restart = bgp.GracefulRestart{}, bgp.GracefulRestart{} // the record has words of its own for it
		want.Password = ""                                                        // and no passwords
		if !have.Equal(want) {
			t.Errorf("have %+v\nwant %+v", have, want)
		}
	}
}
