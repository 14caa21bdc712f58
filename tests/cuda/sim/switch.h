/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of execution with stacks of their own, between which a thread switches.  On x86-64 a switch is a few
 * instructions; elsewhere, and with SIM_UCONTEXT, it is ucontext's, with two system calls.  AddressSanitizer learns of
 * each switch. */
#ifndef LEAT_TESTS_CUDA_SIM_SWITCH_H
#define LEAT_TESTS_CUDA_SIM_SWITCH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && !defined(SIM_UCONTEXT)
#define SIM_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#endif
#ifdef SIM_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

struct sim_context {
#ifdef SIM_OWN_SWITCH
    void *stack_pointer;
#else
    ucontext_t saved;
#endif
    const void *bottom; /* of its stack; for the first context, known after the first switch */
    size_t bytes;
    void *fake_stack;  /* AddressSanitizer's */
    sim_context *from; /* the context that has switched to this one */
};

#ifdef SIM_OWN_SWITCH
extern "C" void sim_switch_stacks(void **save, void *to);
__asm__(".text\n"
        ".p2align 4\n"
        ".local sim_switch_stacks\n"
        ".type sim_switch_stacks, @function\n"
        "sim_switch_stacks:\n"
        "pushq %rbp\n"
        "pushq %rbx\n"
        "pushq %r12\n"
        "pushq %r13\n"
        "pushq %r14\n"
        "pushq %r15\n"
        "movq %rsp, (%rdi)\n"
        "movq %rsi, %rsp\n"
        "popq %r15\n"
        "popq %r14\n"
        "popq %r13\n"
        "popq %r12\n"
        "popq %rbx\n"
        "popq %rbp\n"
        "ret\n"
        ".size sim_switch_stacks, . - sim_switch_stacks\n");
#endif

/* Sets up a context that begins with `entry`, which never returns, on the given stack. */
static inline void sim_make_context(sim_context *context, void *bottom, size_t bytes, void (*entry)(void)) {
    context->bottom = bottom;
    context->bytes = bytes;
    context->fake_stack = nullptr;
#ifdef SIM_OWN_SWITCH
    uintptr_t *top = reinterpret_cast<uintptr_t *>(reinterpret_cast<uintptr_t>(bottom) + bytes) - 2;
    top[0] = reinterpret_cast<uintptr_t>(entry);
    top[1] = 0;                               /* the return address of `entry` */
    for (int i = 1; i <= 6; ++i) top[-i] = 0; /* the registers that a switch restores */
    context->stack_pointer = top - 6;
#else
    getcontext(&context->saved);
    context->saved.uc_stack.ss_sp = bottom;
    context->saved.uc_stack.ss_size = bytes;
    context->saved.uc_link = nullptr;
    makecontext(&context->saved, entry, 0);
#endif
}

/* Each context calls this when it begins or goes on. */
static inline void sim_arrived(sim_context *self) {
#ifdef SIM_ASAN
    __sanitizer_finish_switch_fiber(self->fake_stack, &self->from->bottom, &self->from->bytes);
#else
    (void)self;
#endif
}

static inline void sim_switch(sim_context *self, sim_context *to) {
    to->from = self;
#ifdef SIM_ASAN
    __sanitizer_start_switch_fiber(&self->fake_stack, to->bottom, to->bytes);
#endif
#ifdef SIM_OWN_SWITCH
    sim_switch_stacks(&self->stack_pointer, to->stack_pointer);
#else
    swapcontext(&self->saved, &to->saved);
#endif
    sim_arrived(self);
}

#endif
