# leat_layer(NAME SOURCES...): the object library leat_NAME of one room of src/.
# Which other rooms it may include is checked by tools/check-layers, against docs/architecture.md.
function(leat_layer name)
  add_library(leat_${name} OBJECT ${ARGN})
  target_include_directories(leat_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(leat_${name} PRIVATE leat_options)
  set_property(GLOBAL APPEND PROPERTY LEAT_LAYERS leat_${name})
endfunction()
