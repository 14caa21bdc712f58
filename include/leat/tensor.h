/* SPDX-License-Identifier: Apache-2.0 */
/* Data types, shapes and tensor views.  A tensor view describes an array in memory that belongs to someone else. */
#ifndef LEAT_TENSOR_H
#define LEAT_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** All data types: enumerator, value, NumPy's name, bytes of an element.  The values are part of the ABI and are
 *  never reused.  A bool is one byte, and false if the byte is 0.  float16 is IEEE 754 binary16.  A model accepts
 *  data of every type and computes in float32; class numbers, and the indices of an Embedding, of integer types
 *  are read exactly. */
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

/** The type of a tensor's elements.  LEAT_DTYPE_LIST defines the values. */
typedef enum leat_dtype {
#define LEAT_DTYPE_ENUM(name, value, text, bytes) name = value,
    LEAT_DTYPE_LIST(LEAT_DTYPE_ENUM)
#undef LEAT_DTYPE_ENUM
} leat_dtype;

/** The largest rank (number of dimensions) of a tensor. */
#define LEAT_MAX_RANK 8

/** A view of an array in memory.  It never owns the memory.  The elements are contiguous and in row-major order.
 *  Frozen. */
typedef struct leat_tensor {
    leat_dtype dtype;
    int32_t rank; /* number of dimensions; 0: a scalar */
    int64_t shape[LEAT_MAX_RANK];
    void *data; /* NULL: a shape without elements */
} leat_tensor;

/** Returns NumPy's name of a data type, "unknown" for a value that is not in LEAT_DTYPE_LIST.  Threads: any. */
LEAT_API const char *leat_dtype_name(leat_dtype dtype);

/** Returns the size of one element in bytes, 0 for an unknown data type.  Threads: any. */
LEAT_API size_t leat_dtype_bytes(leat_dtype dtype);

/** Finds the data type with a NumPy name, such as "float32".
 *  @param[out] out  The data type; unchanged on failure.
 *  Errors: LEAT_EDTYPE the name is unknown; the message lists the known names.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_dtype_parse(leat_dtype *out, const char *name, leat_error *err);

/** Returns a view of `data` with the given type and shape.
 *  @param rank  The number of dimensions.  At most LEAT_MAX_RANK numbers of `shape` are read; a function that
 *  receives a view with a larger rank returns an error.
 *  @param shape  `rank` numbers; shape NULL: all dimensions are 0.
 *  @param data  Borrowed as long as the view is used; may be NULL.
 *  Threads: any. */
LEAT_API leat_tensor leat_tensor_view(leat_dtype dtype, int rank, const int64_t *shape, void *data);

/** Like leat_tensor_view, but checks the arguments and writes the view into *out.
 *  @param[out] out  The view; zeroed on failure.
 *  Errors: LEAT_EINVAL shape is NULL; LEAT_EDTYPE unknown data type; LEAT_ESHAPE rank < 0 or > LEAT_MAX_RANK.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_tensor_view_into(leat_dtype dtype, int rank, const int64_t *shape,
                                                        void *data, leat_tensor *out, leat_error *err);

/** Returns the number of elements: the product of the dimensions; 1 for a scalar; INT64_MAX if the product is
 *  larger; 0 if the rank is out of range.  Threads: any. */
LEAT_API int64_t leat_tensor_count(const leat_tensor *tensor);

/** Returns the size of all elements in bytes; SIZE_MAX if the size is larger.  Threads: any. */
LEAT_API size_t leat_tensor_bytes(const leat_tensor *tensor);

/** Copies the elements of src into the memory of dst, contiguous and in row-major order, and converts them to
 *  dst's data type.  Conversion to a floating-point type rounds to nearest, ties to even.  Conversion from a
 *  floating-point type to an integer type truncates towards zero.  A number out of an integer type's range
 *  becomes the nearest number of the type.  NaN becomes the integer 0.  A number other than 0 becomes the bool 1.
 *  @param strides  The strides of src: src->rank numbers, each the distance in bytes to the next element along a
 *  dimension, as in NumPy and Py_buffer.  (DLPack counts elements: multiply by leat_dtype_bytes.) A stride may be
 *  negative, 0, or not a multiple of the element's size.  src->data is the address of the element whose indices
 *  are all 0; it need not be aligned.  strides NULL: src is contiguous and in row-major order.
 *
 *  The memory of src and dst must not overlap.
 *  Errors: LEAT_ESHAPE the shapes differ, or a rank is out of range; LEAT_EDTYPE unknown data type; LEAT_EINVAL
 *  data is NULL.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_tensor_copy(const leat_tensor *dst, const leat_tensor *src,
                                                   const int64_t *strides, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
