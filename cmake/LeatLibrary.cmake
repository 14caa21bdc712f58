# The library: one shared object of all rooms that src/ has.  The target is leat_shared, because the command is leat;
# link leat::leat, as an outside project does.
get_property(layers GLOBAL PROPERTY LEAT_LAYERS)
add_library(leat_shared SHARED)
add_library(leat::leat ALIAS leat_shared)
target_link_libraries(leat_shared PRIVATE ${layers} leat_options Threads::Threads m)
target_link_options(leat_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/leat.map)
if(NOT LEAT_SANITIZE) # clang's sanitizers leave their functions to the program
  target_link_options(leat_shared PRIVATE -Wl,--no-undefined)
endif()
target_include_directories(leat_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(leat_shared PROPERTIES
  OUTPUT_NAME leat EXPORT_NAME leat LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/leat.map)
