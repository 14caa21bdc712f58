/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the tables of public functions, and valid values for their parameters, for test_nonsense.c. */
#ifndef LEAT_TESTS_ARGUMENTS_VALUES_H
#define LEAT_TESTS_ARGUMENTS_VALUES_H

#include "leat/leat.h"

enum { MOST_PARAMETERS = 8, ANSWER_BYTES = 8192 };

typedef union value {
    void *pointer;
    void (*callback)(void);
    int64_t integer;
    double real;
} value;

typedef struct answer {
    leat_status status;
    size_t bytes; /* of returned; 0 if the function returns nothing or a status */
    unsigned char returned[ANSWER_BYTES];
} answer;

typedef enum kind {
    KIND_NONE,
    KIND_POINTER,
    KIND_CALLBACK,
    KIND_ENUM,
    KIND_RANK,
    KIND_INTEGER,
    KIND_REAL
} kind;
typedef enum returning { RETURNS_NOTHING, RETURNS_STATUS, RETURNS_VALUE, RETURNS_STRUCT } returning;

typedef struct parameter {
    const char *type, *name;
    kind kind;
} parameter;

/* A public function. */
typedef struct function {
    const char *name;
    returning returns;
    const char *result; /* the type that it returns */
    int variadic, count;
    parameter parameters[MOST_PARAMETERS];
    void (*call)(const value *arguments, answer *to);
} function;

/* A member of a public struct; "shape.rank" is a member of a struct inside it. */
typedef struct member {
    const char *root, *path, *type;
    kind kind;
    size_t offset, bytes;
} member;

/* Creates all objects that the values point to.  Call it once, before the first fork.  A failure fails the test. */
void make_values(void);

/* Gives the value of a parameter with which the function succeeds.  Returns false if values.c has none. */
bool valid_value(const function *f, const parameter *p, value *out);

/* Creates, in the process of a call, objects that no other process can use. */
void prepare_call(const function *f);

/* Calls the function with these arguments: directly, or in a callback if an argument is valid only there. */
void call_with(const function *f, value *arguments, answer *to);

#endif
