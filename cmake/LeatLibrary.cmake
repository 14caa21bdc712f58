# The libraries.  libleat_feed.so has the feed and the rooms that it stands on, and needs libc and threads alone.  libleat.so
# has all other rooms and links libleat_feed.so.  The targets are leat_shared (the command is leat) and leat_feed_shared; link
# leat::leat or leat::feed, as an outside project does.  LEAT_STATIC adds libleat.a and libleat_feed.a.

# leat_library(TARGET NAME EXPORTED LAYERS...): the shared object libNAME.so, as leat::EXPORTED.  cmake/NAME.map.in says
# which functions it exports.
function(leat_library target name exported)
  set(map ${PROJECT_BINARY_DIR}/${name}.map)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.map.in ${map} @ONLY)
  add_library(${target} SHARED)
  add_library(leat::${exported} ALIAS ${target})
  target_link_libraries(${target} PRIVATE ${ARGN} leat_options Threads::Threads m)
  target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-Bsymbolic-functions)
  # dlclose leaves the library in memory: OpenMP's threads run its code, and so does a worker thread that missed its
  # deadline; the handler of SIGBUS stays installed.
  target_link_options(${target} PRIVATE -Wl,-z,nodelete)
  if(NOT LEAT_SANITIZE) # clang's sanitizers leave their functions to the program
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  leat_library_uses_headers(${target})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} EXPORT_NAME ${exported} LINKER_LANGUAGE C VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH $ORIGIN LINK_DEPENDS ${map})
  set_property(GLOBAL APPEND PROPERTY LEAT_LIBRARIES ${target})
endfunction()

# Who links the target finds leat's headers, in the tree or installed.
function(leat_library_uses_headers target)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# leat_archive(TARGET NAME LAYERS...): the same rooms as libNAME.a, for pkg-config --static.
function(leat_archive target name)
  add_library(${target} STATIC)
  foreach(layer IN LISTS ARGN)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${layer}>)
  endforeach()
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  install(TARGETS ${target} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

set(feed_layers leat_memory leat_base leat_tensor leat_feed)
leat_library(leat_feed_shared leat_feed feed ${feed_layers})
if(LEAT_STATIC)
  leat_archive(leat_feed_static leat_feed ${feed_layers})
endif()
if(NOT LEAT_FEED_ONLY)
  get_property(layers GLOBAL PROPERTY LEAT_LAYERS)
  list(REMOVE_ITEM layers ${feed_layers})
  leat_library(leat_shared leat leat ${layers})
  target_link_libraries(leat_shared PUBLIC leat_feed_shared)
  if(LEAT_STATIC)
    leat_archive(leat_static leat ${layers})
  endif()
endif()
