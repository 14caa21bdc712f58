/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a feed shares with its workers: one mapping, and the allocation of its pages. */
#ifndef LEATI_FEED_RING_MAPPING_H
#define LEATI_FEED_RING_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

typedef struct leati_mapping_request {
    size_t bytes;
    size_t control;         /* bytes at the beginning that get memory at once */
    bool between_processes; /* the workers are processes */
    bool by_descriptor;     /* the workers belong to another program, which maps a descriptor */
    bool elastic;           /* nothing is reserved for the pages behind the control part */
    bool inherited;         /* processes that the caller forks keep the mapping */
} leati_mapping_request;

typedef struct leati_mapping {
    unsigned char *memory; /* zeroed by the kernel */
    size_t bytes;
    int fd; /* the memfd that another program maps; -1: none */
    bool between_processes;
    bool inherited;
    bool backed;         /* all pages have memory from the start */
    uint32_t fork_depth; /* of the process that made the mapping */
} leati_mapping;

/* Errors: LEAT_ENOMEM, LEAT_EIO; then there is nothing to unmap. */
leat_status leati_mapping_create(leati_mapping *out, const leati_mapping_request *request, leat_error *err);

/* Maps the memory of another program's mapping.  *out has the number of bytes, and the descriptor, which is closed on
 * failure.  Errors: LEAT_ENOMEM. */
leat_status leati_mapping_attach(leati_mapping *out, leat_error *err);

/* Closes the descriptor of an attached mapping.  The mapping stays. */
void leati_mapping_release(leati_mapping *mapping);

/* Unmaps the memory, unless this process does not have it.  A zeroed mapping is allowed. */
void leati_mapping_destroy(leati_mapping *mapping);

/* Allocates pages of a mapping, so that a lack of memory is an error instead of a SIGBUS at the first access.  A kernel
 * before Linux 5.14 cannot do this: then *known is false.  Errors: LEAT_ENOMEM. */
leat_status leati_mapping_back(void *memory, size_t bytes, bool *known, leat_error *err);

/* Sets whether children that are forked from now on have the mapping.  Does nothing if they always have it. */
void leati_mapping_inherit(const leati_mapping *mapping, bool inherit);

#endif
