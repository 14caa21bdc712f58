/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of the training data for the steps of an augmentation, and the file that keeps them. */
#ifndef LEATI_DATA_IMAGES_STATISTICS_H
#define LEATI_DATA_IMAGES_STATISTICS_H

#include "data/images.h"
#include "leat/picture.h"

typedef struct leati_image_fitting {
    leat_augment *augment;
    const leati_image_choices *choices; /* choices->statistics: the file, or NULL */
    const leat_source_options *options;
    const leati_image_list *list; /* the training data */
    const unsigned char *wanted;  /* (list->count) 0: the picture counts for nothing; NULL: all count */
    const char *path;             /* the folder or list, for messages */
    /* Makes the picture `number` of the list, of the size that the options give.  For any thread. */
    leat_status (*load)(const void *user, leati_picture *out, int64_t number, leat_error *err);
    const void *user;
} leati_image_fitting;

/* Gives the steps of the augmentation the numbers that they lack: from the file, or from the pictures.  Numbers that
 * were computed are written to the file.
 * Errors: LEAT_EINVAL the file has statistics of other pictures, or there is no file and none may be computed;
 * LEAT_EFORMAT the file; those of `load`; LEAT_EIO; LEAT_ENOMEM. */
leat_status leati_images_fit(const leati_image_fitting *fitting, leat_error *err);

#endif
