#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the deep copies of the policies' types, and their CRDs: in place, or all below a folder: generate.sh [FOLDER]
# The program that does it comes from ../lbcf/generate/go.mod.
set -eu
cd "$(dirname "$0")"
out=${1:-.}
crds=${1:-../../../deploy/components/balancing}
generate=../lbcf/generate
gen=$(cd "$generate" && go tool -n controller-gen)
"$gen" paths=./v1beta1 object:headerFile="$generate/header.txt" output:object:dir="$out/v1beta1"
"$gen" paths=./v1beta1 crd:headerFile="$generate/header.yaml" output:crd:dir="$crds/crds"
