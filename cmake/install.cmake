# SPDX-License-Identifier: MIT OR Apache-2.0
# Install rules. The installed tree is relocatable: no file contains its prefix.

install(TARGETS vyre EXPORT vyreTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/vyre DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

file(RELATIVE_PATH lib_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(vyre_cli PROPERTIES EXPORT_NAME cli INSTALL_RPATH "$ORIGIN/${lib_from_bin}")
install(TARGETS vyre_cli EXPORT vyreTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

set(manual ${CMAKE_BINARY_DIR}/manual)
install(FILES ${manual}/vyre.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 FILES_MATCHING PATTERN "*.3")
install(FILES ${manual}/vyre.bash RENAME vyre
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${manual}/_vyre DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${manual}/vyre.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

file(RELATIVE_PATH VYRE_PREFIX_FROM_PC
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(kind LIBDIR INCLUDEDIR) # an absolute folder is not below the prefix
  set(VYRE_PC_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${kind}}")
    set(VYRE_PC_${kind} "${CMAKE_INSTALL_${kind}}")
  endif()
endforeach()
configure_file(cmake/vyre.pc.in vyre.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/vyre.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vyre)
configure_package_config_file(cmake/vyreConfig.cmake.in vyreConfig.cmake INSTALL_DESTINATION ${package_dir})
# While the major version is 0, every minor version stands alone.
write_basic_package_version_file(vyreConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vyreConfig.cmake
              ${PROJECT_BINARY_DIR}/vyreConfigVersion.cmake cmake/vyreEmbed.cmake
  DESTINATION ${package_dir})
install(EXPORT vyreTargets NAMESPACE vyre:: DESTINATION ${package_dir})
