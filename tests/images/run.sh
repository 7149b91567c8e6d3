#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Pictures that `vyre run` reads and writes, against an encoder and a decoder in
# Python that share nothing with it but zlib's format.
#   run.sh SOURCE BUILD
set -uo pipefail
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
exec python3 "$1/tests/images/check.py" "$1" "$2"
