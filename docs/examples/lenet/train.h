// SPDX-License-Identifier: MIT
// Training: batches in an order that the seed fixes, one traced function a step, and
// checkpoints from which it continues exactly.
#ifndef LENET_TRAIN_H
#define LENET_TRAIN_H

#include <stdbool.h>
#include <stdint.h>
#include "images.h"
#include "lenet.h"
#include "progress.h"

struct train_options {
    const char *data;   // directory of the images
    const char *save;   // checkpoint to write
    const char *resume; // checkpoint to continue from, or NULL
    int64_t epochs;
    int64_t steps; // stop after this many; 0: all epochs
    int64_t batch;
    int64_t seed;
    int64_t test; // test images to use; 0: all
    double lr;
    bool json;
    bool given_seed, given_batch; // on the command line
};

struct trainer {
    struct train_options options;
    tn_runtime *runtime;
    tn_scope *scope;              // of the arrays that live throughout
    struct image_set train, test; // labels stay; images are freed once on the device
    tn_array *images, *labels;    // training set on the device; kept
    tn_array *test_images;        // kept
    tn_array *state[LENET_STATE]; // kept
    tn_function *step, *predict;
    int32_t *order;       // the epoch's order of images
    uint64_t order_epoch; // whose order it is, plus 1; 0: none
    uint64_t done;        // steps
    uint64_t steps_per_epoch, total;
    double epoch_loss; // sum over the epoch's steps of this run
    uint64_t epoch_steps;
    double epoch_seconds; // of its steps, evaluation apart
    double seconds;       // the same for this whole run
    struct progress progress;
};

// Opens everything; loads the checkpoint when resuming, else makes the initial state.
int trainer_open(struct trainer *trainer, const struct train_options *options);
void trainer_close(struct trainer *trainer);

// Trains until the last step or until *stop; saves after each epoch and at the end.
int trainer_run(struct trainer *trainer, const volatile int *stop);

// checkpoint.c
int checkpoint_save(struct trainer *trainer, const char *path);
// Restores state and position; checks that options agree with it.
int checkpoint_load(struct trainer *trainer, const char *path);

// evaluate.c: what the network says of the test images.
struct evaluation {
    int64_t confusion[LENET_CLASSES][LENET_CLASSES]; // [truth][answer]
    int64_t right, count;
    uint8_t *answers; // one a test image; owned
    float *certainty; // probability of each answer; owned
};
int evaluate(struct trainer *trainer, struct evaluation *out);
void evaluation_finish(struct evaluation *evaluation);
// Confusion matrix and accuracy; as one JSON line when the options say so.
int evaluation_print(const struct trainer *trainer, const struct evaluation *evaluation);
// Some test images as characters, with what the network says and the truth.
void evaluation_show_images(const struct trainer *trainer,
                            const struct evaluation *evaluation);

#endif // LENET_TRAIN_H
