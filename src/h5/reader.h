/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the structures of HDF5 files without libhdf5, which crashes or hangs on some damaged files.  Every address,
 * length and count of a file is checked before it is used.
 * Source: HDF5 File Format Specification, version 3.0; the comments name its sections. */
#ifndef LEATI_H5_READER_H
#define LEATI_H5_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/tensor.h"

/* The address of an object that does not exist. */
#define LEATI_H5_UNDEFINED UINT64_MAX

enum { LEATI_H5_MAX_RANK = 32, LEATI_H5_MAX_NAME = 1024 };

/* An open file; does not change after leati_h5_read_superblock. */
typedef struct leati_h5_image {
    const unsigned char *bytes; /* content of a file in memory, borrowed; NULL: `fd` is set */
    int fd;
    uint64_t size; /* bytes */
    int offset_bytes, length_bytes;
    uint64_t root; /* address of the root group's object header */
} leati_h5_image;

/* One call's view of a file: the first error, and the work that the call may still do. */
typedef struct leati_h5_reader {
    const leati_h5_image *image;
    leat_status status;  /* LEAT_OK: no error yet */
    const char *problem; /* a static text */
    uint64_t at;         /* the address that the problem concerns; LEATI_H5_UNDEFINED: none */
    uint64_t work;       /* steps that are left; a structure that refers to itself uses them up */
    uint64_t collection; /* address of the global heap collection in collection_data */
    unsigned char *collection_data;
    size_t collection_bytes;
} leati_h5_reader;

/* Bytes that are parsed from front to back.  Reading beyond the end gives zeros and sets `cut_off`. */
typedef struct leati_h5_cursor {
    const unsigned char *next, *end;
    bool cut_off;
} leati_h5_cursor;

typedef struct leati_h5_message {
    unsigned type, flags;
    const unsigned char *data;
    size_t bytes;
} leati_h5_message;

/* The messages of an object header; leati_h5_header_fini frees them. */
typedef struct leati_h5_header {
    leati_h5_message *messages;
    size_t count, capacity;
    unsigned char **blocks; /* the memory that the messages lie in */
    size_t block_count;
} leati_h5_header;

/* Types of messages, section IV.A.2. */
enum {
    LEATI_H5_DATASPACE = 0x01,
    LEATI_H5_LINK_INFO = 0x02,
    LEATI_H5_DATATYPE = 0x03,
    LEATI_H5_FILL = 0x05,
    LEATI_H5_LINK = 0x06,
    LEATI_H5_EXTERNAL_FILES = 0x07,
    LEATI_H5_LAYOUT = 0x08,
    LEATI_H5_FILTERS = 0x0b,
    LEATI_H5_ATTRIBUTE = 0x0c,
    LEATI_H5_CONTINUATION = 0x10,
    LEATI_H5_SYMBOL_TABLE = 0x11,
    LEATI_H5_ATTRIBUTE_INFO = 0x15
};

typedef enum leati_h5_class {
    LEATI_H5_NUMBER,
    LEATI_H5_TEXT,          /* strings of fixed length */
    LEATI_H5_VARIABLE_TEXT, /* strings of variable length */
    LEATI_H5_OTHER
} leati_h5_class;

typedef struct leati_h5_type {
    leati_h5_class class;
    size_t bytes;     /* size of an element in the file */
    leat_dtype dtype; /* of numbers */
    bool swapped;     /* the byte order of numbers is not this machine's */
} leati_h5_type;

typedef struct leati_h5_space {
    int rank;
    uint64_t dims[LEATI_H5_MAX_RANK];
    uint64_t count; /* number of elements; 0 for a null dataspace */
} leati_h5_space;

/* An attribute; the pointers lie in the header that the attribute was found in, or in `owned`. */
typedef struct leati_h5_found {
    leati_h5_type type;
    leati_h5_space space;
    const unsigned char *data;
    size_t bytes;
    unsigned char *owned; /* for leati_free; NULL: none */
} leati_h5_found;

/* ---- reader.c: bytes and errors ---- */

void leati_h5_reader_init(leati_h5_reader *r, const leati_h5_image *image);
void leati_h5_reader_fini(leati_h5_reader *r);

/* Record the first problem and return false: the file is damaged (LEAT_EFORMAT), has something that leat does not
 * support (LEAT_ENOTSUP), or there is no memory. */
bool leati_h5_damaged(leati_h5_reader *r, uint64_t at, const char *problem);
bool leati_h5_refused(leati_h5_reader *r, const char *problem);
bool leati_h5_no_memory(leati_h5_reader *r);

/* Subtracts steps from the work that is left; false, with an error, if none is left. */
bool leati_h5_work(leati_h5_reader *r, uint64_t steps);

/* Copies bytes of the file to `dst`; false, with an error, if they are not inside the file. */
bool leati_h5_load(leati_h5_reader *r, uint64_t at, uint64_t bytes, void *dst);

/* Like leati_h5_load(), but into new memory, which has at least one byte and is for leati_free; NULL on failure. */
unsigned char *leati_h5_load_new(leati_h5_reader *r, uint64_t at, uint64_t bytes);

leati_h5_cursor leati_h5_cursor_make(const void *data, size_t bytes);
size_t leati_h5_left(const leati_h5_cursor *c);
/* Returns an unsigned integer of 0 to 8 bytes, in little endian. */
uint64_t leati_h5_take(leati_h5_cursor *c, int bytes);
/* Returns an address, LEATI_H5_UNDEFINED if all its bits are set. */
uint64_t leati_h5_take_address(const leati_h5_reader *r, leati_h5_cursor *c);
uint64_t leati_h5_take_length(const leati_h5_reader *r, leati_h5_cursor *c);
/* Returns a pointer to the next bytes and skips them; NULL if there are fewer. */
const unsigned char *leati_h5_skip(leati_h5_cursor *c, size_t bytes);

/* Returns the checksum of metadata: Bob Jenkins's hash function lookup3 with the initial value 0. */
uint32_t leati_h5_checksum(const unsigned char *data, size_t bytes);
/* Returns true if the last 4 of the bytes are the checksum of the bytes before. */
bool leati_h5_checksum_holds(const unsigned char *data, size_t bytes);

/* Reads the superblock (section II.A). */
bool leati_h5_read_superblock(leati_h5_reader *r, leati_h5_image *image);

/* ---- header.c: object headers ---- */

/* Reads an object header; *out is zeroed before and needs leati_h5_header_fini in every case. */
bool leati_h5_read_header(leati_h5_reader *r, uint64_t address, leati_h5_header *out);
void leati_h5_header_fini(leati_h5_header *header);
/* Returns the first message of a type; NULL if there is none. */
const leati_h5_message *leati_h5_message_of(const leati_h5_header *header, unsigned type);
/* Returns false, with an error, if the message is stored elsewhere in the file (flag "shared"). */
bool leati_h5_message_usable(leati_h5_reader *r, const leati_h5_message *message);

/* ---- dense.c: fractal heaps ---- */

/* Calls `visit` for each link (or attribute, if `links` is false) in the heap whose name has the checksum of `name`,
 * until `visit` sets *stop.  The object's bytes are valid during the call. */
typedef bool (*leati_h5_visit)(leati_h5_reader *r, const unsigned char *data, size_t bytes, void *user,
                               bool *stop);
bool leati_h5_visit_dense(leati_h5_reader *r, bool links, uint64_t heap, uint64_t tree, const char *name,
                          leati_h5_visit visit, void *user);

/* ---- group.c: links ---- */

/* Finds an object by its path from the root.  *address is LEATI_H5_UNDEFINED if it does not exist.  Links that are
 * not hard links are errors; they are never followed. */
bool leati_h5_find_object(leati_h5_reader *r, const char *path, uint64_t *address);

/* ---- types.c: datatypes, dataspaces, attributes ---- */

bool leati_h5_parse_type(leati_h5_reader *r, const unsigned char *data, size_t bytes, leati_h5_type *out);
bool leati_h5_parse_space(leati_h5_reader *r, const unsigned char *data, size_t bytes, leati_h5_space *out);
/* Finds an attribute; *found says if it exists. */
bool leati_h5_find_attribute(leati_h5_reader *r, const leati_h5_header *header, const char *name,
                             leati_h5_found *out, bool *found);
/* Gives the bytes of a string of variable length, whose element is at `element`: until the next call, not
 * terminated. */
bool leati_h5_variable_text(leati_h5_reader *r, const unsigned char *element, const unsigned char **text,
                            size_t *bytes);

/* ---- storage.c, chunks.c: the numbers of datasets ---- */

/* Reads the elements of a dataset as they are in the file: space->count * type->bytes bytes to `dst`, which is
 * zeroed. */
bool leati_h5_read_elements(leati_h5_reader *r, const leati_h5_header *header, const leati_h5_type *type,
                            const leati_h5_space *space, unsigned char *dst);
/* Finds the address of the elements of a dataset that are neighbours in the file; *address is LEATI_H5_UNDEFINED for
 * any other storage. */
bool leati_h5_find_contiguous(leati_h5_reader *r, const leati_h5_header *header, const leati_h5_type *type,
                              const leati_h5_space *space, uint64_t *address);
/* Reads the elements of a chunked dataset.  `c` is in its layout message, behind version and class. */
bool leati_h5_read_chunks(leati_h5_reader *r, const leati_h5_header *header, int version, leati_h5_cursor *c,
                          const leati_h5_type *type, const leati_h5_space *space, unsigned char *dst);

typedef struct leati_h5_filters {
    size_t count;
    unsigned ids[8];
} leati_h5_filters;

/* The place of a chunk in the file. */
typedef struct leati_h5_stored {
    uint64_t address, bytes; /* address 0, where no chunk can be, in an index: the chunk is not in the file */
    unsigned skipped;        /* bits of the filters that were not applied */
} leati_h5_stored;

/* The places of all chunks of a dataset.  The last dimension counts fastest. */
typedef struct leati_h5_index {
    bool chunked; /* false: the dataset is stored in another way, and nothing else is set */
    uint64_t dims[LEATI_H5_MAX_RANK]; /* of a chunk */
    uint64_t grid[LEATI_H5_MAX_RANK]; /* number of chunks in each dimension */
    uint64_t cells;                   /* number of chunks */
    uint64_t bytes;                   /* of a chunk, unpacked */
    leati_h5_filters filters;
    leati_h5_stored *places; /* (cells), for leati_free */
    unsigned char fill[16];  /* the element that chunks have which are not in the file */
} leati_h5_index;

/* Finds the chunks of a dataset, without reading them; *out is zeroed before, and out->places is to be freed in every
 * case. */
bool leati_h5_index_storage(leati_h5_reader *r, const leati_h5_header *header, const leati_h5_type *type,
                            const leati_h5_space *space, leati_h5_index *out);
/* The same for a cursor in the layout message, as leati_h5_read_chunks. */
bool leati_h5_index_chunks(leati_h5_reader *r, const leati_h5_header *header, int version, leati_h5_cursor *c,
                           const leati_h5_type *type, const leati_h5_space *space, leati_h5_index *out);
/* Reads a chunk that is in the file; returns `bytes` unpacked bytes, for leati_free, or NULL. */
unsigned char *leati_h5_load_chunk(leati_h5_reader *r, const leati_h5_filters *filters, size_t element,
                                   const leati_h5_stored *where, uint64_t bytes);

/* ---- filters.c ---- */

/* Parses the filters of a dataset; no message means no filter.  Filters other than deflate, shuffle and fletcher32 are
 * errors. */
bool leati_h5_parse_filters(leati_h5_reader *r, const leati_h5_header *header, leati_h5_filters *out);
/* Undoes the filters whose bits in `skipped` are 0.  *data, for leati_free, is replaced; the result has `bytes`
 * bytes. */
bool leati_h5_undo_filters(leati_h5_reader *r, const leati_h5_filters *filters, unsigned skipped,
                           size_t element, unsigned char **data, size_t packed, size_t bytes);

#endif
