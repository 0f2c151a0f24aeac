// SPDX-License-Identifier: MIT
// Runs this program again in a child process, so that a crash or hang there does no harm
// here.
#ifndef TOOLS_TENON_BASE_CHILD_H
#define TOOLS_TENON_BASE_CHILD_H

#include "tool.h"

struct child {
    char *out, *err; // standard output and error; owned
    int status;      // exit status; -1: ended by a signal
    int signal;      // the signal; 0: none
    bool timed_out;  // killed after `seconds`
    bool stopped;    // it was stopped (SIGSTOP) at that time
    int seconds;     // time limit
};

// Runs this program with `args` (after its name, ended by NULL), with `variables`
// ("NAME=value", ended by NULL; may be NULL) added to the environment.
int child_run(const char *const *args, const char *const *variables, int seconds,
              struct child *out);

// Describes an abnormal end: "crashed (Aborted)", "did not answer within 30 s". False when
// the child ended by itself.
#define CHILD_FAULT 96
bool child_fault(const struct child *child, char text[CHILD_FAULT]);

// True when the child's own code is to blame: a signal that faulty code raises, or a time
// limit that it exceeded while running. False for other signals (kill, out of memory) and
// for a stopped child.
bool child_is_to_blame(const struct child *child);
void child_finish(struct child *child);

#endif // TOOLS_TENON_BASE_CHILD_H
