// SPDX-License-Identifier: MIT
// What the tests of libtenon-train share.
#ifndef TESTS_TRAIN_SUPPORT_H
#define TESTS_TRAIN_SUPPORT_H

#include "check.h"
#include <tenon/train.h>

extern tn_runtime *rt; // of the test that runs

void train_begin(void);
void train_finish(void);
void must(tn_status status);
void must_scope(const tn_scope *s);

// Parameters whose element i is 0.4 sin(0.7 i + k), for k the number of the parameter; read
// from a file of the test's folder. At most 32, of at most 128 elements.
tn_params *given(const char *const *names, const tn_shape *const *shapes, int count);

// Element i is 0.4 scale sin(0.7 i + k), at most 128 elements.
tn_array *filled(tn_scope *s, const tn_shape *shape, double k, double scale);

// The path of a file in the test's folder, one of four at a time; with these bytes.
char *in_folder(int slot, const char *name);
extern char path_text[4][256];
char *write_file(int slot, const char *name, const void *bytes, size_t size);
// Bytes of a file, at most `room`.
size_t read_bytes(const char *path, char *out, size_t room);

// --- a training ------------------------------------------------------------------------

enum { ROWS = 24, BATCH = 5 };

struct small {
    float x[ROWS][4];
    unsigned char y[ROWS];
    tn_table tables[2];
    tn_loader *loader;
    tn_params *params;
    tn_trainer *trainer;
};

// Two layers with dropout, over x.
tn_array *small_loss(tn_net *n, tn_array *const *batch, void *user);
void small_open(struct small *m, const char *optimiser, double lr);
// The loader of the data as they are now; while one lives they stay so.
void small_load(struct small *m);
void small_close(struct small *m);

// Trains until so many steps are done, with a checkpoint each four; the mean loss of the
// last report.
tn_status fit(struct small *m, uint64_t steps, const char *save);
extern double reported;

#endif // TESTS_TRAIN_SUPPORT_H
