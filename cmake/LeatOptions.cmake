# Compiler options of every target in the tree, on the interface target leat_options.  Messages are cut to their fixed
# size on purpose: no -Wformat-truncation.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(leat_options INTERFACE)
target_compile_definitions(leat_options INTERFACE _POSIX_C_SOURCE=200809L)
target_compile_options(leat_options INTERFACE
  -Wall -Wextra $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation> -Wconversion -Wshadow -Wstrict-prototypes
  -Wmissing-prototypes -Wvla -Wundef $<$<BOOL:${LEAT_WERROR}>:-Werror>)
if(LEAT_SANITIZE)
  # Instrumented code is not what was written: gcc warns there of conversions and overlaps that the source does not have.
  target_compile_options(leat_options INTERFACE -Wno-error -Wno-conversion -Wno-restrict)
  target_compile_options(leat_options INTERFACE -fsanitize=${LEAT_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(leat_options INTERFACE -fsanitize=${LEAT_SANITIZE})
endif()
