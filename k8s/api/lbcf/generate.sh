#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the deep copies of LBCF's types, and their CRDs: in place, or all below a folder: generate.sh [FOLDER]
# The program that does it comes from generate/go.mod.
set -eu
cd "$(dirname "$0")"
out=${1:-.}
crds=${1:-../../../deploy}/crds
gen=$(cd generate && go tool -n controller-gen)
for version in v1 v1beta1; do
	"$gen" paths=./$version object:headerFile=generate/header.txt output:object:dir="$out/$version"
done
"$gen" paths=./v1 paths=./v1beta1 crd:headerFile=generate/header.yaml output:crd:dir="$crds"
