// SPDX-License-Identifier: MIT
// What the launching process and those that hold the ranks tell each other: lines over TCP.
//
//   rank to launcher          hello TOKEN RANK HOST     first of all
//                             alive                     each half second
//                             stopped SIGNAL, continued
//                             ended signal N, ended status N
//   launcher to rank          failed RANK WORDS         for the rank's process, as it is
//                             end                       end the process, if it runs
//                             bye                       all have ended: go
#ifndef TOOLS_TENON_RUN_WIRE_H
#define TOOLS_TENON_RUN_WIRE_H

#include "base/tool.h"

enum {
    WIRE_LINE = 512,
    ALIVE_MS = 500,    // interval of "alive"
    SILENT_MS = 3000,  // silence after which the machine, or the rank's holder, is gone
    STOPPED_MS = 2000, // a rank that is stopped for so long has failed
};

// Lines of a connection; `text` has `size` bytes that were received and not taken.
struct wire {
    int fd;
    size_t size;
    char text[WIRE_LINE];
};

// Sends a line (without "\n"). False: the other side is gone.
bool wire_send(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Reads what has come, once. False at the end of the connection, or when a line is too
// long.
bool wire_read(struct wire *wire);

// Takes the first whole line, if there is one. False: none.
bool wire_take(struct wire *wire, char line[WIRE_LINE]);

// Milliseconds of a clock that does not jump.
int64_t wire_clock(void);

#endif // TOOLS_TENON_RUN_WIRE_H
