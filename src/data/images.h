/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the source of pictures: its options, the list of its files, and the split of that list. */
#ifndef LEATI_DATA_IMAGES_H
#define LEATI_DATA_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "data/archive/archive.h"
#include "data/images_mix.h"
#include "data/kinds.h"
#include "image/picture.h"

/* The forms of labels, with the names of Keras's label_mode where it has one. */
typedef enum leati_label_mode {
    LEATI_LABELS_INT,    /* int32 (1,) */
    LEATI_LABELS_ONEHOT, /* float32 (classes,): Keras's categorical */
    LEATI_LABELS_BINARY, /* float32 (1,), two classes */
    LEATI_LABELS_RAW,    /* float32 (columns,): the numbers of a CSV list */
    LEATI_LABELS_NONE,
    LEATI_LABELS_MULTIHOT, /* float32 (classes,): several classes of a CSV list */
    LEATI_LABELS_INPUT,    /* the picture itself, as the model receives it */
    LEATI_LABELS_MULTI     /* float32 (1,) for each column of a CSV list: as many targets */
} leati_label_mode;

/* Returns true if the labels are classes. */
bool leati_labels_are_classes(leati_label_mode labels);

/* The ways to choose the files of validation. */
typedef enum leati_split_mode {
    LEATI_SPLIT_SHUFFLED,  /* image_dataset_from_directory(seed=...) */
    LEATI_SPLIT_ORDERED,   /* image_dataset_from_directory(shuffle=False): the last files */
    LEATI_SPLIT_PER_CLASS, /* flow_from_directory: the first files of each class */
} leati_split_mode;

/* The parsed options.  Strings point into the SPEC. */
typedef struct leati_image_choices {
    int64_t width, height, max_pixels;
    leati_picture_color color;
    leati_filter filter;
    leati_fit fit;
    leati_label_mode labels;
    leati_split_mode split;
    bool follow_links, scaled_decoding, skip_bad;
    double validation; /* 0: no split */
    bool is_validation, has_seed;
    uint32_t seed;
    char *classes[256]; /* in the order of their numbers */
    int class_count;    /* 0: all subfolders */
    char *augment;      /* the steps; NULL: none */
    char *masks;        /* the folder or the archive of the masks, which are the targets; NULL */
    char *mask_column;  /* the column of a CSV list that has the paths of the masks; NULL */
    char *statistics;   /* the file of their statistics; NULL */
    char *cache;        /* memory, memory:SIZE or a file; NULL: none */
    leati_mix mix;
    char *directory; /* of the paths of a CSV list; NULL: that of the list */
    char *x_column;
    char label_separator; /* between the classes of LEATI_LABELS_MULTIHOT */
    char *y_columns[32];
    int y_count;
    double numerator, denominator; /* of `scale`; denominator 0: no scaling */
} leati_image_choices;

/* Returns how to decode a picture for these choices. */
leati_picture_options leati_image_decoding(const leati_image_choices *choices);
/* Writes the values of a picture, each through the table of leati_scaled_bytes. */
void leati_image_write_scaled(const leati_picture *picture, const float table[256], float *dst);

/* Parses the options of `images`.  Decodes the texts in place.  Errors: LEAT_EINVAL. */
leat_status leati_image_choices_read(leati_image_choices *out, const leati_settings *settings,
                                     leat_error *err);

/* One file. */
typedef struct leati_image_file {
    char *path;
    size_t folder;        /* length of the part of the path that names the file's folder */
    int32_t label;        /* the number of its class */
    const float *raw;     /* the numbers of the row, for LEATI_LABELS_RAW */
    int64_t first_number; /* of `label_count` numbers in list->numbers, for LEATI_LABELS_MULTIHOT */
    int label_count;
    int64_t member; /* number of the member in list->archive; -1: the file at `path` */
    char *mask;     /* the path of its mask, as the CSV list has it; NULL */
} leati_image_file;

typedef struct leati_image_list {
    leati_image_file *files;
    int64_t count, capacity;
    char **classes; /* names; NULL without labels */
    int class_count;
    int32_t *numbers; /* the classes of all files with LEATI_LABELS_MULTIHOT */
    int64_t number_count, number_capacity;
    float *raw; /* (rows, raw_columns) */
    int raw_columns;
    bool from_csv;
    leati_archive *archive; /* NULL: the pictures are files */
    /* The first `prefix` characters of the paths name the folder, the archive or the folder of the list, the first
     * `root` also the folder inside of an archive that all pictures are in.  An absolute path of a list has neither. */
    size_t prefix, root;
} leati_image_list;

/* Lists the pictures of a folder, of an archive, or those that a CSV file names, in Keras's order.
 * Errors: LEAT_ENOTFOUND, LEAT_EIO; LEAT_EFORMAT a damaged CSV file or archive; LEAT_ENOTSUP a compressed file;
 * LEAT_EINVAL no pictures, or wrong classes; LEAT_ENOMEM.  On failure the list is empty. */
leat_status leati_image_list_read(leati_image_list *out, const char *path, const leati_image_choices *choices,
                                  leat_error *err);
void leati_image_list_fini(leati_image_list *list);
void leati_image_file_fini(leati_image_file *file);

/* Appends a file; takes `path`, which the list frees. */
leat_status leati_image_list_add(leati_image_list *list, char *path, int32_t label, leat_error *err);

/* Returns the number of the class with this name, after adding the class if it is new; -1 without memory. */
int leati_image_list_class(leati_image_list *list, const char *name);

/* Returns true for a file whose name ends as that of a picture does. */
bool leati_is_picture_name(const char *name);

/* Compares files by folder, as texts, then by name: an order for qsort(). */
int leati_compare_image_files(const void *a, const void *b);

/* Adds the classes that the option `classes` names.  Errors: LEAT_EINVAL a name is there twice; LEAT_ENOMEM. */
leat_status leati_image_list_take_classes(leati_image_list *list, const leati_image_choices *choices,
                                          leat_error *err);

/* Sorts the classes by name.  No file may have a label yet. */
void leati_image_list_sort_classes(leati_image_list *list);

/* Lists the pictures of list->archive as leati_image_list_read() lists those of the unpacked folder.  `path` is the
 * archive's. */
leat_status leati_image_list_read_archive(leati_image_list *list, const char *path,
                                          const leati_image_choices *choices, leat_error *err);

/* Returns true if the open file is an archive. */
bool leati_image_is_archive(int fd);

/* Reads the bytes of a picture, from its file or from the archive.
 * @param[out] out  For leati_free; NULL on failure.
 * Errors: those of leati_image_read_file and of leati_archive_read.  Threads: any. */
leat_status leati_image_list_bytes(const leati_image_list *list, const leati_image_file *file,
                                   unsigned char **out, size_t *bytes, leat_error *err);

/* Reads the rows of a CSV list. */
leat_status leati_image_list_read_csv(leati_image_list *list, const char *path,
                                      const leati_image_choices *choices, leat_error *err);

/* Keeps the files of the subset that the options name, in their order.  Errors: LEAT_EINVAL the subset would be empty;
 * LEAT_ENOMEM. */
leat_status leati_image_list_split(leati_image_list *list, const leati_image_choices *choices,
                                   leat_error *err);

/* Finds the mask of each picture of the list that was read from `path`: the file of the same name below the folder, or
 * in the archive, choices->masks, or the one that the CSV list names.
 * @param[out] out  The masks, in the order of the pictures.
 * Errors: LEAT_ENOTFOUND a picture has no mask; LEAT_ENOMEM; those of leati_image_list_read.  On failure the list is
 * empty. */
leat_status leati_image_masks_find(leati_image_list *out, const leati_image_list *list, const char *path,
                                   const leati_image_choices *choices, leat_error *err);

/* Returns true for a sequence that `images` made. */
bool leati_is_images(const leat_sequence *sequence);

/* Returns the files of a sequence that `images` made, in the order of its samples; NULL for others. */
const leati_image_list *leati_images_list(const leat_sequence *sequence);

/* leat_source_note_sizes for a sequence that `images` made. */
leat_status leati_images_note_sizes(const leat_sequence *sequence, int64_t *sizes, leat_error *err);

/* Gets the statistics that the augmentation of an opened source of pictures needs, which leat_source_open has left out,
 * of the samples n for which wanted[n] is set.  Other sequences are left alone.  Errors: those of leati_images_fit. */
leat_status leati_images_fit_source(const leat_sequence *sequence, const unsigned char *wanted,
                                    const leat_source_options *options, leat_error *err);

/* Reads a whole regular file.  @param[out] out  For leati_free.  Errors: LEAT_ENOTFOUND, LEAT_EIO; LEAT_EINVAL not a
 * regular file; LEAT_ENOMEM. */
leat_status leati_image_read_file(unsigned char **out, size_t *bytes, const char *path, leat_error *err);

#endif
