# cmake --install: the libraries, their headers, the command, the .pc files and the CMake package, all of which find each
# other wherever the tree is put.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY LEAT_LIBRARIES)
install(TARGETS ${libraries} EXPORT leat LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(LEAT_FEED_ONLY)
  foreach(header error feed fork rng sequence tensor trace version)
    install(FILES include/leat/${header}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leat)
  endforeach()
else()
  install(DIRECTORY include/leat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
  install(FILES docs/api.json DESTINATION ${CMAKE_INSTALL_DATADIR}/leat)
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/leat)
install(EXPORT leat NAMESPACE leat:: FILE leatConfig.cmake DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/leatConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/leatConfigVersion.cmake DESTINATION ${package})

file(RELATIVE_PATH LEAT_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})

# leat_pc(NAME LIBRARY DESCRIPTION)
function(leat_pc LEAT_PC_NAME LEAT_PC_LIBRARY LEAT_PC_DESCRIPTION)
  configure_file(cmake/leat.pc.in ${LEAT_PC_NAME}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${LEAT_PC_NAME}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

leat_pc(leat-feed leat_feed "Batches made by worker threads or processes, delivered in order")
if(NOT LEAT_FEED_ONLY)
  leat_pc(leat leat "Trains Keras models from C")
endif()
