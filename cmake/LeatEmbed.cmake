# Makes a text file a C string: cmake -DFROM=file -DTO=file.c -DNAME=identifier -DHEADER=declares-it -P LeatEmbed.cmake
# The text is ASCII, so that a char of either sign holds it.
file(READ ${FROM} bytes HEX)
# A match of the whole text by ([0-7].)* would overflow CMake's stack; here a pair that is not ASCII leaves a digit from 8 on.
string(REGEX REPLACE "[0-7]." "" rest "${bytes}")
if(rest)
  string(REGEX REPLACE "(..)" "\\1;" pairs "${bytes}")
  set(place 0)
  foreach(pair IN LISTS pairs)
    if(pair MATCHES "^[89a-f]")
      break()
    endif()
    math(EXPR place "${place} + 1")
  endforeach()
  message(FATAL_ERROR "${FROM}: a byte that is not ASCII, after ${place} bytes")
endif()
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REPEAT "....." 16 line) # sixteen bytes as "0x41,"
string(REGEX REPLACE "(${line})" "\\1\n    " bytes "${bytes}")
file(WRITE ${TO} "#include \"${HEADER}\"\n\nconst char ${NAME}[] = {\n    ${bytes}0};\n")
