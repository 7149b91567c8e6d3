# SPDX-License-Identifier: MIT OR Apache-2.0
# Downloads the source package of xxhash from PyPI for its header. Sets XXHASH_INCLUDE.
set(name xxhash-3.5.0)
set(hash 84f2caddf951c9cbf8dc2e22a89d4ccf5d86391ac6418fe81e3c67d0cf60b45f)
set(place https://files.pythonhosted.org/packages/00/5e/d6e5258d69df8b4ed8c83b6664f2b47d30d2dec551a29ad72a6c69eafd31)
message(STATUS "xxhash.h was not found: downloading ${name} from PyPI")
file(DOWNLOAD ${place}/${name}.tar.gz ${CMAKE_BINARY_DIR}/${name}.tar.gz EXPECTED_HASH SHA256=${hash} TIMEOUT 120 STATUS result)
list(GET result 0 code)
if(code EQUAL 0)
  file(ARCHIVE_EXTRACT INPUT ${CMAKE_BINARY_DIR}/${name}.tar.gz DESTINATION ${CMAKE_BINARY_DIR} PATTERNS "*/xxhash.h")
  set(XXHASH_INCLUDE ${CMAKE_BINARY_DIR}/${name}/deps/xxhash CACHE PATH "Folder of xxhash.h" FORCE)
else()
  message(STATUS "The download failed: ${result}")
endif()
