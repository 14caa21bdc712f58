/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an augmentation: steps with their arguments, as the text of `augment=` names them, and what a run of the
 * steps works on.  docs/decisions/0603 has the rules. */
#ifndef LEATI_IMAGE_AUGMENT_AUGMENT_H
#define LEATI_IMAGE_AUGMENT_AUGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/augment/sample.h"
#include "leat/picture.h"

enum {
    LEATI_AUGMENT_MAX_STEPS = 32,
    LEATI_AUGMENT_MAX_ARGUMENTS = 8,
    LEATI_AUGMENT_MAX_NUMBERS = 16, /* of a list */
    LEATI_AUGMENT_MAX_DRAWS = 60
};

/* ---- Arguments ---- */

typedef enum leati_argument_kind {
    LEATI_ARGUMENT_NUMBER, /* a number, or a fraction such as 1/255 */
    LEATI_ARGUMENT_LIST, /* one number or several in ( ) or [ ]; or `true`, if the parameter has words: no number */
    LEATI_ARGUMENT_WORD, /* one of the words of the parameter */
    LEATI_ARGUMENT_BOOL  /* true or false; the value is a number, 0 or 1 */
} leati_argument_kind;

/* The value of an argument. */
typedef struct leati_argument {
    double number[LEATI_AUGMENT_MAX_NUMBERS];
    int count;       /* numbers; 0: not given, and no default */
    int word;        /* index of the word in the parameter's list */
    bool is_list;    /* written in ( ) or [ ] */
    bool is_integer; /* no number has a point or an exponent */
} leati_argument;

typedef struct leati_parameter {
    const char *name;
    leati_argument_kind kind;
    const char
        *fallback; /* the text of the default; "": the argument is required; NULL: optional, without value */
    const char *words;  /* for words: all of them with blanks between */
    double least, most; /* limits of each number */
} leati_parameter;

/* ---- Steps ---- */

typedef struct leati_step leati_step;

/* The size of a picture. */
typedef struct leati_extent {
    int64_t height, width, channels;
} leati_extent;

/* The picture that a run of the steps works on: bytes at first, floats from the first step that computes. */
typedef struct leati_work {
    leati_extent extent;
    const unsigned char *bytes; /* NULL: the picture is in `pixels` */
    float *pixels, *spare;      /* each has room for the largest picture of the run */
    bool is_mask;               /* a mask of segmentation: only its geometry changes */
    const struct leat_augment *augment;
} leati_work;

/* Descriptor of a type of step. */
typedef struct leati_step_type {
    const char *name;
    leati_parameter parameters[LEATI_AUGMENT_MAX_ARGUMENTS];
    const char *draws; /* names of the drawn numbers in their order, with blanks between */
    /* Checks the arguments together and sets step->after; NULL: nothing to check, and the size stays. */
    leat_status (*check)(leati_step *step, leat_error *err);
    /* Draws the numbers of one sample; NULL: the step has none. */
    void (*draw)(const leati_step *step, leat_rng *rng, double *drawn);
    /* Sets the numbers for a sample that is not augmented, such as the middle for a random crop.  NULL: a step that
     * draws is left out for such a sample. */
    void (*rest)(const leati_step *step, double *drawn);
    /* For a geometric step: sets the matrix that maps a position of the result to one of the input. */
    void (*matrix)(const leati_step *step, const double *drawn, leati_affine *out);
    /* For other steps: changes the picture.  Is not called for masks unless `on_masks` is set. */
    leat_status (*apply)(const leati_step *step, const double *drawn, leati_work *work, leat_error *err);
    bool on_masks;
    bool makes_floats;     /* the values do not stay between 0 and 255 */
    bool any_sampling;     /* a flip: it composes with neighbours of any sampling */
    bool takes_statistics; /* numbers that are not given are computed of the training data */
} leati_step_type;

struct leati_step {
    const leati_step_type *type;
    leati_argument arguments[LEATI_AUGMENT_MAX_ARGUMENTS]; /* in the order of the type's parameters */
    leati_sampling sampling;                               /* for a geometric step */
    leati_extent before, after;
    struct leat_augment *inner; /* the steps that a step of policy.c runs; NULL for others */
};

/* All types: ImageDataGenerator's arguments and short names, geometric layers of Keras, other layers of Keras.  Each
 * table ends with a NULL name. */
extern const leati_step_type leati_generator_steps[], leati_geometry_steps[], leati_color_steps[],
    leati_warp_steps[], leati_policy_steps[];

/* What ImageDataGenerator sets for all of its steps. */
typedef struct leati_generator_settings {
    leati_sampling sampling;
    double zca_epsilon;
} leati_generator_settings;

struct leat_augment {
    leati_step steps[LEATI_AUGMENT_MAX_STEPS];
    int step_count;
    leati_generator_settings settings;
    leati_extent before, after;
    size_t most_values; /* of the largest picture between two steps */
    bool makes_floats;
    int first_statistic; /* the first step whose numbers are computed of the training data; step_count: none */
    float *whitening; /* the matrix of zca_whitening, (values, values), symmetric; NULL: not computed yet */
};

/* Parses the text of all steps into augment->steps, and the settings.  Errors: LEAT_EINVAL. */
leat_status leati_augment_parse(struct leat_augment *augment, const char *text, leat_error *err);

/* Returns a number that is uniformly distributed between the two. */
double leati_draw_between(leat_rng *rng, double low, double high);

/* Makes the pair (low, high) of a factor of Keras's layers: a number f stands for (-f, f), or for (lowest, f) if -f is
 * below `lowest`.
 * Errors: LEAT_EINVAL more than two numbers. */
leat_status leati_check_factor(leati_step *step, int index, double lowest, leat_error *err);

/* Returns a number from the range that the argument has. */
double leati_draw_factor(const leati_step *step, int index, leat_rng *rng);

/* Makes floats of the picture's bytes, unless it has floats already. */
void leati_work_to_floats(leati_work *work);

/* Returns the job that samples the picture to work->spare, without a matrix. */
leati_sample_job leati_work_job(const leati_work *work, const leati_sampling *sampling,
                                const leati_extent *after);

/* Runs a step alone. */
leat_status leati_step_run(const leati_step *step, const double *drawn, leati_work *work, leat_error *err);

/* Ends a step that has written its result to work->spare. */
void leati_work_swap(leati_work *work);

#endif
