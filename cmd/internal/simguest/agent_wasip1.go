// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
)

func (g *guest) agent(context.Context) error { return errors.New("not yet") }
