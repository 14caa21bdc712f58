/* SPDX-License-Identifier: Apache-2.0 */
/* Data types, shapes and tensor views: a typed, row-major window on memory that somebody else owns. */
#ifndef LEAT_TENSOR_H
#define LEAT_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Every data type: enumerator, value, NumPy's name, bytes.  Values are part of the ABI and never reused.  A bool is one
 *  byte, false where it is 0; float16 is IEEE 754 binary16.  Data of every type may enter a model: it is computed with in
 *  float32, and class numbers and an Embedding's indices of integer types are read exactly. */
#define LEAT_DTYPE_LIST(X)                                                                                   \
    X(LEAT_F32, 0, "float32", 4)                                                                             \
    X(LEAT_F64, 1, "float64", 8)                                                                             \
    X(LEAT_I32, 2, "int32", 4)                                                                               \
    X(LEAT_I64, 3, "int64", 8)                                                                               \
    X(LEAT_U8, 4, "uint8", 1)                                                                                \
    X(LEAT_BOOL, 5, "bool", 1)                                                                               \
    X(LEAT_I8, 6, "int8", 1)                                                                                 \
    X(LEAT_I16, 7, "int16", 2)                                                                               \
    X(LEAT_U16, 8, "uint16", 2)                                                                              \
    X(LEAT_U32, 9, "uint32", 4)                                                                              \
    X(LEAT_U64, 10, "uint64", 8)                                                                             \
    X(LEAT_F16, 11, "float16", 2)

/** A data type, by LEAT_DTYPE_LIST. */
typedef enum leat_dtype {
#define LEAT_DTYPE_ENUM(name, value, text, bytes) name = value,
    LEAT_DTYPE_LIST(LEAT_DTYPE_ENUM)
#undef LEAT_DTYPE_ENUM
} leat_dtype;

/** The largest rank of a tensor. */
#define LEAT_MAX_RANK 8

/** A view: it owns nothing.  Row-major, contiguous; a scalar has rank 0.  Frozen. */
typedef struct leat_tensor {
    leat_dtype dtype;
    int32_t rank;
    int64_t shape[LEAT_MAX_RANK];
    void *data;
} leat_tensor;

/** NumPy's name of a data type, "unknown" for any other number.  Threads: any. */
LEAT_API const char *leat_dtype_name(leat_dtype dtype);

/** Bytes of one element, 0 for an unknown type.  Threads: any. */
LEAT_API size_t leat_dtype_bytes(leat_dtype dtype);

/** The data type with that NumPy name.  Errors: LEAT_EDTYPE names the known ones.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_dtype_parse(leat_dtype *out, const char *name, leat_error *err);

/** A view of `data` with the given type and shape (rank numbers, of which LEAT_MAX_RANK are read at most: whoever takes the
 *  view refuses a larger rank).  shape NULL: all dimensions are 0.  Threads: any. */
LEAT_API leat_tensor leat_tensor_view(leat_dtype dtype, int rank, const int64_t *shape, void *data);

/** leat_tensor_view through a pointer, with a check: *out is zeroed on failure.
 *  Errors: LEAT_EINVAL a shape that is NULL; LEAT_EDTYPE an unknown data type; LEAT_ESHAPE a rank below 0 or above
 *  LEAT_MAX_RANK.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_tensor_view_into(leat_dtype dtype, int rank, const int64_t *shape,
                                                        void *data, leat_tensor *out, leat_error *err);

/** Number of elements: the product of the shape, 1 for a scalar, INT64_MAX where it does not fit, 0 for a rank that does not
 *  exist.  Threads: any. */
LEAT_API int64_t leat_tensor_count(const leat_tensor *tensor);

/** Bytes of all elements, SIZE_MAX where they do not fit.  Threads: any. */
LEAT_API size_t leat_tensor_bytes(const leat_tensor *tensor);

/** Writes the elements of src to the memory of dst, contiguous and row-major, converted to dst's data type: real numbers are
 *  rounded to the nearest (ties to even) or, by an integer type, cut towards zero; what lies outside of an integer type's
 *  range becomes the nearest end of it; NaN becomes the integer 0; anything but 0 becomes the bool 1.
 *  @param strides  Of src: src->rank numbers, the distance in bytes to the next element along each dimension, as in NumPy and
 *  Py_buffer (DLPack counts elements: multiply by leat_dtype_bytes).  A stride may be negative, 0, or no multiple of the
 *  element's size; src->data is the address of the element whose indices are all 0, and need not be aligned.  NULL: src is
 *  contiguous and row-major.
 *  The memory of the two must not overlap.
 *  Errors: LEAT_ESHAPE shapes that differ, or an impossible rank; LEAT_EDTYPE unknown type; LEAT_EINVAL NULL data.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_tensor_copy(const leat_tensor *dst, const leat_tensor *src,
                                                   const int64_t *strides, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
