/* SPDX-License-Identifier: Apache-2.0 */
/* Counts calls and lets them fail (calls.h, sim.h). */
#include "cuda/sim/calls.h"

#include <stdlib.h>
#include <string.h>

#include <string>

#include "cuda/sim/memory.h"
#include "cuda/sim/queue.h"
#include "cuda/sim/sim.h"
#include "cuda/sim/work.h"

namespace {

const char *const names[] = {
#define NAME(name) #name,
    LEATI_CUDA_DRIVER_FUNCTIONS(NAME) LEATI_CUDA_BLAS_FUNCTIONS(NAME) LEATI_CUDA_DNN_FUNCTIONS(NAME)
#undef NAME
};

struct state {
    int64_t calls[sim_function_count];
    int fails;  /* number of the function that will fail; sim_function_count: any; -1: none */
    int64_t at; /* number of its call */
    CUresult with;
    int failed; /* number of the function that has failed; -1: none */
    CUresult broken;
};

int number_of(const char *name) {
    if (!name) return sim_function_count;
    for (int i = 0; i < sim_function_count; ++i)
        if (strcmp(names[i], name) == 0) return i;
    sim_report("there is no function %s", name);
}

state from_environment() {
    state s = {{}, -1, 0, CUDA_SUCCESS, -1, CUDA_SUCCESS};
    const char *text = getenv("LEAT_SIM_FAIL");
    if (!text) return s;
    std::string name = text;
    size_t colon = name.find(':');
    std::string count = colon == std::string::npos ? "1" : name.substr(colon + 1);
    s.fails = number_of(name.substr(0, colon).c_str());
    s.at = strtoll(count.c_str(), nullptr, 10);
    s.with = count.find(":launch") != std::string::npos    ? CUDA_ERROR_LAUNCH_FAILED
             : count.find(":unknown") != std::string::npos ? CUDA_ERROR_UNKNOWN
                                                           : CUDA_ERROR_OUT_OF_MEMORY;
    return s;
}

state &now() {
    static state s = from_environment();
    return s;
}

/* ---- Libraries ---- */

cublasStatus_t failure_of(cublasStatus_t, CUresult result) {
    return result == CUDA_ERROR_OUT_OF_MEMORY ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_EXECUTION_FAILED;
}
cudnnStatus_t failure_of(cudnnStatus_t, CUresult result) {
    return result == CUDA_ERROR_OUT_OF_MEMORY ? CUDNN_STATUS_ALLOC_FAILED : CUDNN_STATUS_EXECUTION_FAILED;
}

/* Puts checks around a library's function in the table. */
template <auto member, sim_function_number f> struct guarded;
template <typename R, typename... A, R (*leati_cuda_api::*member)(A...), sim_function_number f>
struct guarded<member, f> {
    static inline R (*inside)(A...);
    static R call(A... a) {
        std::lock_guard<std::recursive_mutex> hold(sim_mutex());
        bool fails = sim_call_fails(f);
        bool acts = strstr(names[f], "Destroy") != nullptr;
        R result = (fails || sim_broken() != CUDA_SUCCESS) && !acts ? R{} : inside(a...);
        if (fails) return failure_of(R{}, sim_failure());
        return sim_broken() == CUDA_SUCCESS ? result : failure_of(R{}, sim_broken());
    }
    static void put_into(leati_cuda_api *api) {
        if (api->*member == call) return;
        inside = api->*member;
        api->*member = call;
    }
};

/* Functions that return no status stay as they are. */
template <auto member, sim_function_number f> struct plain {
    static void put_into(leati_cuda_api *) {
    }
};
template <sim_function_number f, auto member, typename R, typename... A> auto choose(R (*)(A...)) {
    if constexpr (std::is_same_v<R, cublasStatus_t> || std::is_same_v<R, cudnnStatus_t>)
        return guarded<member, f>();
    else
        return plain<member, f>();
}

} // namespace

#define GUARD(name) choose<number_##name, &leati_cuda_api::name>(api->name).put_into(api);

void sim_guard_blas(leati_cuda_api *api) {
    LEATI_CUDA_BLAS_FUNCTIONS(GUARD)
}

void sim_guard_dnn(leati_cuda_api *api){LEATI_CUDA_DNN_FUNCTIONS(GUARD)}

/* ---- For the driver ---- */

std::recursive_mutex &sim_mutex() {
    static std::recursive_mutex mutex;
    return mutex;
}

bool sim_is_error_text(sim_function_number f) {
    return f == number_cuGetErrorString || f == number_cuGetErrorName;
}

bool sim_call_fails(sim_function_number f) {
    state &s = now();
    ++s.calls[f];
    if (s.fails != f && s.fails != sim_function_count) return false;
    if (sim_is_error_text(f) || --s.at != 0) return false;
    s.fails = -1;
    s.failed = f;
    if (s.with == CUDA_ERROR_LAUNCH_FAILED) {
        s.broken = s.with;
        sim_drop_pending();
    }
    return true;
}

CUresult sim_failure(void) {
    return now().with;
}

CUresult sim_broken(void) {
    return now().broken;
}

void sim_repair(void) {
    now().broken = CUDA_SUCCESS;
}

/* ---- For tests ---- */

void sim_fail_at(const char *name, int64_t n, CUresult result) {
    now() = {{}, n > 0 ? number_of(name) : -1, n, result, -1, CUDA_SUCCESS};
}

bool sim_failed(const char **name) {
    int failed = now().failed;
    if (name) *name = failed < 0 ? nullptr : names[failed];
    return failed >= 0;
}

int64_t sim_calls(const char *name) {
    if (name) return now().calls[number_of(name)];
    int64_t sum = 0;
    for (int64_t calls : now().calls) sum += calls;
    return sum;
}

const char *sim_function_name(int index) {
    return index < sim_function_count ? names[index] : nullptr;
}
