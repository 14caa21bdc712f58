# cmake -DTOOLS=... -DWORK=... -P Setup.cmake: tools/setup with a dpkg-query, an apt-get, an id and a sudo of our own.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

function(program name text)
  file(WRITE ${WORK}/bin/${name} "#!/bin/sh\n${text}\n")
  file(CHMOD ${WORK}/bin/${name} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()

# run(STATUS OUTPUT): runs tools/setup, checks its exit status and that it says so.
function(run status output)
  file(WRITE ${WORK}/apt.log "")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PATH=${WORK}/bin:$ENV{PATH} ${TOOLS}/setup
    RESULT_VARIABLE got OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT got EQUAL status OR NOT text MATCHES "${output}")
    message(FATAL_ERROR "expected status ${status} and \"${output}\"; received status ${got} and:\n${text}")
  endif()
endfunction()

function(expect_calls expected)
  file(READ ${WORK}/apt.log calls)
  if(NOT calls STREQUAL expected)
    message(FATAL_ERROR "expected the calls:\n${expected}\nreceived:\n${calls}")
  endif()
endfunction()

program(id "echo 0")
program(apt-get "echo \"apt-get $*\" >>${WORK}/apt.log")
program(dpkg-query "grep -v -e ^cmake -e ^gcc ${TOOLS}/packages | sed 's/^/installed /'; echo config-files cmake")
run(0 "setup: installing gcc cmake\nsetup: done\n")
expect_calls("apt-get update\napt-get install -y --no-install-recommends gcc cmake\n")

program(dpkg-query "sed 's/^/installed /' ${TOOLS}/packages")
run(0 "setup: all packages are installed\n")
expect_calls("")

program(dpkg-query "true")
program(apt-get "echo E: no network; exit 100")
run(1 "E: no network\nsetup: failed: apt-get update\n")

program(id "echo 1000")
program(apt-get "echo \"apt-get $*\" >>${WORK}/apt.log")
program(sudo "echo sudo >>${WORK}/apt.log; exec \"$@\"")
program(dpkg-query "grep -v ^cmake ${TOOLS}/packages | sed 's/^/installed /'")
run(0 "setup: done\n")
expect_calls("sudo\napt-get update\nsudo\napt-get install -y --no-install-recommends cmake\n")
