# leat_layer(NAME [SHARED] SOURCES...): the object library leat_NAME of one room of src/.
# Which other rooms it may include is checked by tools/check-layers, against docs/architecture.md.
# SHARED: libleat_feed.so contains the room, and libleat.so uses the room's private functions there
# (docs/decisions/0300-libleat-uses-libleat-feed.md).
function(leat_layer name)
  cmake_parse_arguments(R "SHARED" "" "" ${ARGN})
  add_library(leat_${name} OBJECT ${R_UNPARSED_ARGUMENTS})
  if(R_SHARED)
    set_target_properties(leat_${name} PROPERTIES C_VISIBILITY_PRESET default)
    target_compile_options(leat_${name} PRIVATE -fno-semantic-interposition)
  endif()
  target_include_directories(leat_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(leat_${name} PRIVATE leat_options)
  set_property(GLOBAL APPEND PROPERTY LEAT_LAYERS leat_${name})
endfunction()

# leat_use_rooms(TARGET rooms...): compiles the object files of the named rooms into a program, with the rooms that they
# need for data, and links the libraries that these rooms need.
function(leat_use_rooms target)
  set(rooms ${ARGN})
  if("data" IN_LIST rooms) # sources of pictures and of HDF5, and the order of a mixture
    list(APPEND rooms image h5 feed)
  endif()
  if("image" IN_LIST rooms)
    target_link_libraries(${target} PRIVATE leat_pictures)
  endif()
  if("h5" IN_LIST rooms)
    target_link_libraries(${target} PRIVATE PkgConfig::hdf5)
  endif()
  if("zip" IN_LIST rooms)
    target_link_libraries(${target} PRIVATE PkgConfig::zstd)
  endif()
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:leat_${room}>)
  endforeach()
endfunction()
