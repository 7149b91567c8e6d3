# SPDX-License-Identifier: MIT OR Apache-2.0
# cmake -DOUT=x.c -DFILES="a;b" -P source_hash.cmake: a C file with the hash of the sources
# that decide what code a kernel becomes.
set(all "")
foreach(file IN LISTS FILES)
  file(SHA256 ${file} hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUT} CONTENT "#include \"lir/lir.h\"\nconst char vyre__lowering_hash[] = \"${hash}\";\n")
