# Mistakes planted into the files that drive a device: each is one edit by sed.  A test of a device is built with the edited file, and it
# must fail.
add_custom_target(cuda_mistakes)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/mistakes)

function(mistake name room file test edit)
  set(source ${PROJECT_SOURCE_DIR}/src/${file})
  set(edited ${CMAKE_CURRENT_BINARY_DIR}/mistakes/${name}.c)
  set(program mistake_${name})
  add_custom_command(OUTPUT ${edited} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/plant "${edit}" ${source} ${edited}
    DEPENDS ${source} plant VERBATIM)
  get_filename_component(original ${file} NAME)
  add_executable(${program} test_${test}.c ../support/memory_failing.c ${edited})
  foreach(other IN ITEMS base tensor engine ref cuda cuda_sim)
    target_sources(${program} PRIVATE $<FILTER:$<TARGET_OBJECTS:leat_${other}>,EXCLUDE,leat_${room}[.]dir/.*${original}>)
  endforeach()
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_SOURCE_DIR}/tests)
  target_include_directories(${program} SYSTEM PRIVATE ${LEAT_CUDA_INCLUDE_DIR})
  target_compile_options(${program} PRIVATE -Wno-error)
  target_link_libraries(${program} PRIVATE leat_options PkgConfig::cmocka Threads::Threads m)
  set_target_properties(${program} PROPERTIES LINKER_LANGUAGE CXX)
  add_dependencies(cuda_mistakes ${program})
  add_test(NAME cuda_mistake_${name}
    COMMAND sh -c "test -x \"$1\" && ! \"$1\" > mistakes/${name}.log 2>&1" sh $<TARGET_FILE:${program}>)
  set_tests_properties(cuda_mistake_${name} PROPERTIES LABELS cuda TIMEOUT ${LEAT_TEST_TIMEOUT}
    ENVIRONMENT "${LEAT_TEST_ENVIRONMENT};CMOCKA_TEST_ABORT=1") # at the first failure
endfunction()

set(queue backends/cuda/device.c)
set(plan engine/plan/on_device.c)
set(fallback engine/plan/host_fallback.c)
set(peers backends/cuda/nccl.c)
mistake(no_wait cuda ${queue} device_plans "/CHECK(cuda, cuStreamSynchronize(cuda->stream))/d")
mistake(no_event cuda ${queue} device "/cuStreamWaitEvent(cuda->stream, cuda->copied/d")
mistake(memory_freed_in_use cuda ${queue} device_plans "s/^    settle(cuda);//")
mistake(memory_not_zeroed cuda ${queue} device
  "s/fill(device, (void [*])(uintptr_t)memory, 0, bytes/fill(device, (void *)(uintptr_t)memory, 1, 1/")
mistake(leaked_graph cuda ${queue} device "s/if (recording->graph) cuda->api->cuGraphExecDestroy/if (false) cuda->api->cuGraphExecDestroy/")
mistake(stale_arena engine ${plan} device_plans "s/if (p->recording && p->recorded_for != .*/if (false)/")
mistake(stale_parameters engine ${plan} device_plans "s/^    bind_parameters(plan);/    if (plan->runs == 1) bind_parameters(plan);/")
mistake(packing_recorded engine ${plan} device_plans "s/if (pack && (version == 0 ||/if (pack \\&\\& plan->runs == 0 \\&\\& (version == 0 ||/")
mistake(short_copy engine ${plan} device_plans "s/copy_in(device, p->memory, p->host, b->small_bytes/& - 256/")
mistake(short_results engine ${plan} device_plans "s/b->results_host, b->results, b->result_bytes/b->results_host, b->results, 256/")
mistake(fault_stays engine ${plan} device_plans "s/if (!faulted) return first;/return first;/")
mistake(staged_block_unused engine ${plan} device_plans "s/if (copied) b->current = 1 - b->current;/(void)0;/")
mistake(host_pointer engine ${plan} device_plans
  "s/unsigned char [*]memory = parameters_of(plan)->memory;/unsigned char *memory = leati_calloc(1, 1 << 20);/")
mistake(seed_of_the_recording engine ${fallback} device_plans "s/run->clock, 2 [*] sizeof/run->clock, run->run_number ? 0 : 2 * sizeof/")
mistake(result_not_copied_back engine ${fallback} device_plans "s/f->writes >> i & 1u/f->writes >> i \\& 0u/")
mistake(copies_taken_as_ended cuda ${queue} device "s/== CUDA_SUCCESS) cuda->beside = false/!= CUDA_ERROR_UNKNOWN) cuda->beside = false/")
mistake(no_context cuda ${queue} device_plans "s/cuda->api->cuCtxSetCurrent(cuda->context); .. the first call.*//; /^static leat_status join/,/^}/s/ENTER(cuda);//")
mistake(wait_not_measured engine ${plan} device_plans "s/b->waits = is_copying .*/b->waits = is_copying \\&\\& copied;/")
mistake(marks_in_each_run engine ${plan} device_plans "s/b->waits = is_copying .*/b->waits = is_copying || copied || b->watching || true;/")
mistake(tf32_not_asked_for cuda backends/cuda/ops/matmul_blas.c device_plans "s/bool tf32 = s->cuda->device.tf32 \&\&/bool tf32 =/")
mistake(sum_does_not_wait cuda ${peers} device_group "s/peers->comm, cuda->stream)/peers->comm, cuda->copies)/")
mistake(sum_not_waited_for cuda ${queue} device_group "/CHECK(cuda, cuStreamSynchronize(cuda->stream))/d; /leati_cuda_wait_for_peers(cuda, err)/d")
mistake(sum_of_a_lost_process cuda ${peers} device_group "/^static void give_up/,/^}/s/(void)cuda->nccl.abort(peers->comm);//")
mistake(lost_process_not_noticed cuda ${peers} device_group "/^leat_status leati_cuda_wait_for_peers/,/^}/s/status = peers->check(peers->user, err);//")
