// SPDX-License-Identifier: MIT
// What the programs of `tenon train` share: options, the failure that a program ends with,
// and the training itself. 0 is success throughout.
#ifndef NETWORKS_COMMAND_H
#define NETWORKS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <tenon/train.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { FAILED = 1, MISUSED = 2 };

// main.c: records why the program fails, when nothing is recorded yet. Returns FAILED;
// MISUSED; for a status of the library, whose sentence is recorded, FAILED or 0.
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
int failed_call(tn_status status);
int failed_scope(const tn_scope *scope);

// Prints a text of others: nothing in it is left that a terminal would obey.
void show(FILE *stream, const char *text, uint32_t flags);

// What is asked for; numbers that were not given are 0, texts NULL.
struct asked {
    const char *network, *data, *save, *resume;
    int64_t epochs, steps, batch, seed, test, sample;
    double lr;
    bool json, classify;
    bool has_seed; // given
};

// options.c. Fills in defaults: the name of the checkpoint.
int options_read(int argc, char **argv, struct asked *out);
// Reads a whole number of [low, high], or a number of the rates that are taken; `name` is
// for the message.
int read_integer(const char *name, const char *text, int64_t low, int64_t high,
                 int64_t *out);
int read_rate(const char *name, const char *text, double *out);

// A network: its title, its loss, and how it is trained unless told otherwise.
struct network {
    const char *title, *unit; // "LeNet-5", of "images"
    tn_loss_body loss;
    int64_t batch, epochs, steps; // steps 0: epochs
    uint64_t every;               // steps from checkpoint to checkpoint; 0: an epoch
    tn_trainer_options trainer;
};

struct course {
    const struct network *network;
    struct asked *options;
    tn_runtime *runtime;
    tn_params *params;
    tn_loader *loader;
    tn_trainer *trainer;
    int64_t rows;          // of the data
    uint64_t total, every; // steps; from one report to the next
    // Called behind each `every` steps; NULL: nothing is to be said.
    int (*report)(struct course *t, uint64_t step, double loss, double seconds);
    double marked, seconds; // when the last report ended; of steps, without reports
    int failed;             // of a report
    // One of several processes of `tenon run` that trains, and neither tells nor tests.
    bool is_quiet;
};

// resume.c. Opens the runtime and the parameters, from the checkpoint of --resume where
// there is one, whose size of a batch, rate and seed hold.
int training_open(struct course *t, const struct network *network, struct asked *options);
void training_close(struct course *t);
// What is in the file that was saved takes the place of the parameters.
int training_reload(struct course *t);
// training.c. Trains on batches of tables, `window` as tn_loader_options has it, and saves.
// Ctrl-C saves and fails with what continues.
int training_run(struct course *t, const tn_table *tables, uint64_t num_tables,
                 int64_t window);

// images.c: images [n, 28, 28] of bytes and labels [n] below CLASSES, of `prefix`.
enum { CLASSES = 10, SIDE = 28 };
int images_read(tn_runtime *runtime, const char *folder, const char *prefix,
                tn_table tables[2]);
// Bytes as numbers around 0, [n, rows, columns, 1].
tn_array *images_normalised(tn_scope *scope, tn_array *images);

// classifier.c: trains and tests a network that gives scores of images.
typedef tn_array *(*scores_body)(tn_net *net, tn_array *images);
int classifier_run(const struct network *network, scores_body scores,
                   struct asked *options);

// answers.c: test images by class and answer, `right` of `all` on the diagonal; images of
// some rows with the probabilities of their classes.
void answers_print(int64_t counts[CLASSES][CLASSES], int64_t right, int64_t all, bool json);
void answers_show(const tn_table test[2], const int32_t *rows, int count,
                  float p[][CLASSES]);

// A file each.
int train_mlp(struct asked *options);
int train_lenet(struct asked *options);
int train_resnet(struct asked *options);
int train_transformer(struct asked *options);

#endif // NETWORKS_COMMAND_H
