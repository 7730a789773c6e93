// SPDX-License-Identifier: Apache-2.0

// Package migrate plans the way from kube-loadbalancer-controller to Fairlead: which nodes become members, in which order
// old parts make room so that no address is ever without a path, and how to go back. It says no where something does not
// fit, before anything was touched.
//
// Decide is pure, and so is Files, which renders what Decide found. Write puts files into a new folder and touches nothing
// else: whoever reads the steps carries them out. Start reading at Decide.
package migrate
