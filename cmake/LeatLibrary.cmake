# The libraries: libleat.so of all rooms that src/ has, and libleat_feed.so of the feed and what it stands on, which needs
# libc and threads alone.  The targets are leat_shared (the command is leat) and leat_feed_shared; link leat::leat or
# leat::feed, as an outside project does.

# leat_library(TARGET NAME EXPORTED LAYERS...): the shared object libNAME.so, as leat::EXPORTED.
function(leat_library target name exported)
  add_library(${target} SHARED)
  add_library(leat::${exported} ALIAS ${target})
  target_link_libraries(${target} PRIVATE ${ARGN} leat_options Threads::Threads m)
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/leat.map)
  # dlclose leaves the library in memory: OpenMP's threads run its code, and so does a worker thread that missed its
  # deadline; the handler of SIGBUS stays installed.
  target_link_options(${target} PRIVATE -Wl,-z,nodelete)
  if(NOT LEAT_SANITIZE) # clang's sanitizers leave their functions to the program
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} EXPORT_NAME ${exported} LINKER_LANGUAGE C VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/leat.map)
  set_property(GLOBAL APPEND PROPERTY LEAT_LIBRARIES ${target})
endfunction()

leat_library(leat_feed_shared leat_feed feed leat_memory leat_base leat_tensor leat_feed)
if(NOT LEAT_FEED_ONLY)
  get_property(layers GLOBAL PROPERTY LEAT_LAYERS)
  leat_library(leat_shared leat leat ${layers})
endif()
