# SPDX-License-Identifier: MIT OR Apache-2.0
# cmake -DOUT=x.c -DNAME=symbol -DFILES="a;b" -P embed.cmake: texts as one C array.
set(hex "")
foreach(file IN LISTS FILES)
  file(READ ${file} part HEX)
  string(APPEND hex "${part}")
endforeach()
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "#include \"lang/builtins.h\"\nconst char ${NAME}[] = {\n${bytes}0x00};\nconst size_t ${NAME}_length = sizeof ${NAME} - 1;\n")
