// SPDX-License-Identifier: MIT
// Drawing progress of a training on a stream.
#ifndef TRAIN_PROGRESS_H
#define TRAIN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// `rows` and `epoch` are set before progress_begin, the rest is zero.
struct progress {
    uint64_t rows, epoch; // samples of a step, steps of an epoch
    FILE *stream;         // NULL: nothing is drawn
    bool terminal;
    bool drawn;          // a bar stands on the current line
    uint64_t first;      // step at which this run began
    uint64_t total;      // steps of the whole job
    uint64_t line_every; // steps between plain lines
    uint64_t next_line;
    double started, last_draw; // seconds
};

void progress_begin(struct progress *progress, FILE *stream, uint64_t first,
                    uint64_t total);
// Shows that `done` steps are finished.
void progress_show(struct progress *progress, uint64_t done, double loss);
// Wipes the bar, so that a line can be printed.
void progress_clear(struct progress *progress);

#endif // TRAIN_PROGRESS_H
