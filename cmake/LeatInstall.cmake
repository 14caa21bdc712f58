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
write_basic_package_version_file(${PROJECT_BINARY_DIR}/leatConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/leatConfigVersion.cmake DESTINATION ${package})

file(RELATIVE_PATH LEAT_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})

# leat_pc(NAME LIBRARY DESCRIPTION): reads LEAT_PC_REQUIRES, LEAT_PC_REQUIRES_PRIVATE and LEAT_PC_LIBS_PRIVATE.
function(leat_pc LEAT_PC_NAME LEAT_PC_LIBRARY LEAT_PC_DESCRIPTION)
  configure_file(cmake/leat.pc.in ${LEAT_PC_NAME}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${LEAT_PC_NAME}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# What a static library needs is said where one is installed alone: pkg-config asks for private requirements even where it
# does not use them.
set(LEAT_PC_LIBS_PRIVATE "-lm -pthread")
leat_pc(leat-feed leat_feed "Batches made by worker threads or processes, delivered in order")
if(NOT LEAT_FEED_ONLY)
  set(LEAT_PC_REQUIRES "leat-feed = ${PROJECT_VERSION}")
  if(LEAT_STATIC)
    set(LEAT_PC_REQUIRES_PRIVATE "jansson >= 2.13, zlib, libzstd, hdf5-serial")
    if(LEAT_PICTURES)
      string(APPEND LEAT_PC_REQUIRES_PRIVATE ", libjpeg, libpng, libwebp, libwebpdemux, libtiff-4")
      string(PREPEND LEAT_PC_LIBS_PRIVATE "-lgif ")
    endif()
    if(LEAT_ONEDNN)
      string(PREPEND LEAT_PC_LIBS_PRIVATE "-ldnnl ${OpenMP_C_FLAGS} ")
    endif()
  endif()
  leat_pc(leat leat "Trains Keras models from C")
endif()
