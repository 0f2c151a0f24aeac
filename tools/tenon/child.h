// SPDX-License-Identifier: MIT
// The command run once more in a child process, so that what crashes or hangs there harms
// nobody.
#ifndef TOOLS_TENON_CHILD_H
#define TOOLS_TENON_CHILD_H

#include "tool.h"

struct child {
    char *out, *err; // what it wrote; owned
    int status;      // its exit status; -1 when a signal ended it
    int signal;      // that signal; 0: none
    bool timed_out;  // it was ended after `seconds`
    bool stopped;    // and somebody had stopped it (SIGSTOP)
    int seconds;     // that it was given
};

// Runs this program with `args` (after its name, ended by NULL), with `variables`
// ("NAME=value", ended by NULL; may be NULL) added to the environment.
int child_run(const char *const *args, const char *const *variables, int seconds,
              struct child *out);

// "crashed (Aborted)", "did not answer within 30 s". False for one that ended by itself.
#define CHILD_FAULT 96
bool child_fault(const struct child *child, char text[CHILD_FAULT]);

// Whether its own code is to blame for that: a signal that faulty code gives itself, or
// time that it spent running. What somebody else, or the lack of memory, ended is not.
bool child_is_to_blame(const struct child *child);
void child_finish(struct child *child);

#endif // TOOLS_TENON_CHILD_H
