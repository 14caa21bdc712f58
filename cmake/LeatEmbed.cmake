# Makes a text file a C string: cmake -DFROM=file -DTO=file.c -DNAME=identifier -DHEADER=declares-it -P LeatEmbed.cmake
# The text is ASCII, so that a char of either sign holds it.
file(READ ${FROM} bytes HEX)
string(REGEX MATCH "^([0-7].)*" ascii "${bytes}")
if(NOT ascii STREQUAL bytes)
  string(LENGTH "${ascii}" place)
  math(EXPR place "${place} / 2")
  message(FATAL_ERROR "${FROM}: a byte that is not ASCII, after ${place} bytes")
endif()
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REPEAT "....." 16 line) # sixteen bytes as "0x41,"
string(REGEX REPLACE "(${line})" "\\1\n    " bytes "${bytes}")
file(WRITE ${TO} "#include \"${HEADER}\"\n\nconst char ${NAME}[] = {\n    ${bytes}0};\n")
