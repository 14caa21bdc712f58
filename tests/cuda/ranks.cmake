# Several ranks on simulated GPUs: the programs of tests/dist, each with simulated GPUs in its process.

# The programs cuda_ranks_fit and so on.
foreach(program IN ITEMS ranks_fit ranks_words ranks_loop ranks_states ranks_stop)
  leat_ranks_program(cuda_${program} SOURCES ../dist/${program}.c LAYERS ${cuda_rooms} cuda_sim
    LIBRARIES ${LEAT_ALL_LIBRARIES})
  set_target_properties(cuda_${program} PROPERTIES LINKER_LANGUAGE CXX)
endforeach()

# cuda_ranks_test(NAME GPUS NCCL MPI RANKS PROGRAM ARGUMENTS...): on a host with so many GPUs, and with NCCL or `none`.
function(cuda_ranks_test name gpus nccl mpi ranks program)
  if(LEAT_SANITIZE)
    return()
  endif()
  add_test(NAME cuda_${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/dist/run-ranks ${mpi} ${ranks}
    $<TARGET_FILE:cuda_${program}> ${ARGN})
  set_tests_properties(cuda_${name} PROPERTIES LABELS "cuda;mpi" TIMEOUT 300 SKIP_RETURN_CODE 77
    ENVIRONMENT "${LEAT_TEST_ENVIRONMENT};LEAT_DEVICE=cuda;LEAT_SIM_GPUS=${gpus};LEAT_SIM_NCCL=${nccl}")
endfunction()

cuda_ranks_test(ranks_fit_2 2 none openmpi 2 ranks_fit)
cuda_ranks_test(ranks_fit_4_on_3 3 found openmpi 4 ranks_fit)
cuda_ranks_test(ranks_fit_exact_3 2 none openmpi 3 ranks_fit exact)
cuda_ranks_test(ranks_fit_bf16 2 found openmpi 2 ranks_fit bf16)
cuda_ranks_test(ranks_fit_places_3 2 none openmpi 3 ranks_fit places)
cuda_ranks_test(ranks_words_2 2 none openmpi 2 ranks_words)
cuda_ranks_test(ranks_loop_3 2 none openmpi 3 ranks_loop)
cuda_ranks_test(ranks_stop_3 2 none openmpi 3 ranks_stop)

cuda_ranks_test(ranks_fit_nccl_2 2 found openmpi 2 ranks_fit)
cuda_ranks_test(ranks_fit_nccl_4 4 found openmpi 4 ranks_fit)
cuda_ranks_test(ranks_fit_nccl_mpich 2 found mpich 2 ranks_fit)
cuda_ranks_test(ranks_fit_nccl_places_3 3 found openmpi 3 ranks_fit places)
cuda_ranks_test(ranks_words_nccl_3 3 found openmpi 3 ranks_words)
cuda_ranks_test(ranks_states_nccl_2 2 found openmpi 2 ranks_states)
cuda_ranks_test(ranks_stop_nccl_2 2 found openmpi 2 ranks_stop)

# A launcher that does not say which process of the host this is: the communicator knows.
if(NOT LEAT_SANITIZE)
  add_test(NAME cuda_ranks_without_places COMMAND ${PROJECT_SOURCE_DIR}/tests/dist/run-ranks openmpi 2
    env -u OMPI_COMM_WORLD_LOCAL_RANK $<TARGET_FILE:cuda_ranks_fit> places)
  set_tests_properties(cuda_ranks_without_places PROPERTIES LABELS "cuda;mpi" TIMEOUT 300 SKIP_RETURN_CODE 77
    ENVIRONMENT "${LEAT_TEST_ENVIRONMENT};LEAT_DEVICE=cuda;LEAT_SIM_GPUS=2;LEAT_SIM_NCCL=found")
endif()

# The command with simulated GPUs: a libleat.so that LD_LIBRARY_PATH puts in front of the other one.
if(NOT LEAT_SANITIZE)
  set(simulated ${PROJECT_BINARY_DIR}/simulated)
  set(rooms ${cuda_rooms} cuda_sim image)
  list(REMOVE_ITEM rooms feed)
  add_library(leat_simulated SHARED)
  foreach(room IN LISTS rooms)
    target_sources(leat_simulated PRIVATE $<TARGET_OBJECTS:leat_${room}>)
  endforeach()
  target_link_libraries(leat_simulated PRIVATE leat_options Threads::Threads m leat_feed_shared leat_pictures PkgConfig::zstd
    ${LEAT_ALL_LIBRARIES})
  target_link_options(leat_simulated PRIVATE -Wl,--version-script=${PROJECT_BINARY_DIR}/leat.map -Wl,-Bsymbolic-functions
    -Wl,-z,nodelete)
  set_target_properties(leat_simulated PROPERTIES OUTPUT_NAME leat SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${simulated})
  add_test(NAME cuda_command COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/command $<TARGET_FILE:leat> ${simulated})
  set_tests_properties(cuda_command PROPERTIES LABELS "cuda;mpi" TIMEOUT 300 SKIP_RETURN_CODE 77
    ENVIRONMENT "${LEAT_TEST_ENVIRONMENT}")
endif()
