# cmake --install: the library, its headers, the command, leat.pc and the CMake package, all of which find each other
# wherever the tree is put.
include(CMakePackageConfigHelpers)

install(TARGETS leat_shared EXPORT leat LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/leat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/leat)
install(EXPORT leat NAMESPACE leat:: FILE leatConfig.cmake DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/leatConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/leatConfigVersion.cmake DESTINATION ${package})

file(RELATIVE_PATH LEAT_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/leat.pc.in leat.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/leat.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
