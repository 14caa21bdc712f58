# What leat links, each as an imported target.  Debian's package of each: tools/packages.
find_package(Threads REQUIRED)
if(LEAT_FEED_ONLY)
  return()
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson>=2.13)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(hdf5 REQUIRED IMPORTED_TARGET hdf5-serial)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED) # its functions are inlined: there is nothing to link
pkg_check_modules(libmd REQUIRED IMPORTED_TARGET libmd) # of the command alone
pkg_check_modules(xxhash REQUIRED libxxhash>=0.8) # its header alone

if(LEAT_ONEDNN)
  find_package(OpenMP REQUIRED COMPONENTS C)
  # oneDNN's own CMake package asks for OpenCL, which leat does not use.
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h REQUIRED)
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  add_library(leat_dnnl INTERFACE)
  target_include_directories(leat_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
  target_link_libraries(leat_dnnl INTERFACE ${DNNL_LIBRARY} OpenMP::OpenMP_C)
endif()
