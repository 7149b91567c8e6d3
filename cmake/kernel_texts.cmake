# SPDX-License-Identifier: MIT OR Apache-2.0
# cmake -DOUT=x.c -DPREFIX=graph -DFILES="a.vyre;b.vyre" -P kernel_texts.cmake: a C file with
# each file as an array PREFIX_NAME_text and its length PREFIX_NAME_length.
set(text "#include <stddef.h>\n")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
  string(APPEND text "extern const char ${PREFIX}_${name}_text[];\nextern const size_t ${PREFIX}_${name}_length;\n")
  string(APPEND text "const char ${PREFIX}_${name}_text[] = {\n${bytes}0x00};\n")
  string(APPEND text "const size_t ${PREFIX}_${name}_length = sizeof ${PREFIX}_${name}_text - 1;\n")
endforeach()
file(WRITE ${OUT} "${text}")
