// SPDX-License-Identifier: MIT
// Progress of a long job: one line that is redrawn on a terminal, plain lines elsewhere.
#ifndef LENET_PROGRESS_H
#define LENET_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool terminal;
    bool silent;         // draw nothing
    bool drawn;          // a bar stands on the current line
    uint64_t total;      // steps of the whole job
    uint64_t first;      // step at which this run began
    uint64_t images;     // a step
    uint64_t line_every; // steps between plain lines
    uint64_t next_line;
    double started, last_draw; // seconds
};

// Seconds of a clock that never jumps.
double now_seconds(void);

void progress_begin(struct progress *progress, bool silent, uint64_t first, uint64_t total,
                    uint64_t images);

// `done` steps are finished, in epoch `epoch` of `epochs` (counted from 1).
void progress_show(struct progress *progress, uint64_t done, uint64_t epoch,
                   uint64_t epochs, double loss);

// Wipes the bar, so that a line can be printed.
void progress_clear(struct progress *progress);

#endif // LENET_PROGRESS_H
