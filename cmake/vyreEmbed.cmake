# SPDX-License-Identifier: MIT OR Apache-2.0
# vyre_embed(TARGET file.vyre... [PREFIX name])
# Generates a header with typed functions from each kernel file (`vyre embed`), makes
# TARGET depend on it and links TARGET with the library. Include the header of
# dir/blur.vyre as "blur.h".
function(vyre_embed target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX" "")
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vyre_embed(${target}): no kernel file given.\nFix: vyre_embed(${target} kernels.vyre)")
  endif()
  foreach(file ${arg_UNPARSED_ARGUMENTS})
    get_filename_component(path ${file} ABSOLUTE)
    if(NOT EXISTS ${path} AND NOT file MATCHES "\\.vyre$")
      message(FATAL_ERROR "vyre_embed(${target}): unknown argument '${file}'.\nFix: name kernel files, or PREFIX and a name")
    endif()
  endforeach()
  if(arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "vyre_embed(${target}): PREFIX has no value.\nFix: write PREFIX and a name, or remove PREFIX")
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/vyre_embed/${target})
  foreach(file ${arg_UNPARSED_ARGUMENTS})
    get_filename_component(path ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME_WE)
    set(flags)
    if(arg_PREFIX)
      set(flags --prefix ${arg_PREFIX})
    endif()
    add_custom_command(OUTPUT ${folder}/${name}.h
      COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
      COMMAND vyre::cli embed ${path} ${flags} -o ${folder}/${name}.h
      DEPENDS ${path} vyre::cli VERBATIM)
    target_sources(${target} PRIVATE ${folder}/${name}.h)
  endforeach()
  target_include_directories(${target} PRIVATE ${folder})
  target_link_libraries(${target} PRIVATE vyre::vyre)
endfunction()
