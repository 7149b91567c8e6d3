# SPDX-License-Identifier: MIT OR Apache-2.0
# Writes a manual page for each function of a header that refers to the page of
# the header. MANUAL is the folder of the pages, NAME the name of the header.
file(STRINGS ${MANUAL}/${NAME}.functions functions)
foreach(function ${functions})
  if(NOT function STREQUAL "vyre_${NAME}")
    file(WRITE ${MANUAL}/${function}.3 ".so man3/vyre_${NAME}.3\n")
  endif()
endforeach()
