// SPDX-License-Identifier: MIT
// The program of an MPI that starts processes, and how it is asked for them.
#ifndef TOOLS_TENON_RUN_LAUNCHER_H
#define TOOLS_TENON_RUN_LAUNCHER_H

#include "base/tool.h"

enum { MOST_WORDS = 256 };

struct launcher {
    char path[4096];
    bool is_open_mpi;   // else MPICH's Hydra
    int major;          // of Open MPI
    char library[4096]; // what ranks open: TENON_MPI
};

// Order to start processes.
struct launch_order {
    int count;         // of ranks
    const char *hosts; // "a:2,b:2"; NULL: here
    bool allows_root;
    const char *self; // this program
    char **command;   // ended by NULL
};

// Finds a launcher: the program `given`, or the first of mpirun and mpiexec on PATH. Fails
// with what to install.
int launcher_find(const char *given, struct launcher *out);

// Writes the words that start it, ended by NULL, into words[MOST_WORDS]. Texts that are
// made lie in `texts`, of 256 bytes.
int launcher_words(const struct launcher *launcher, const struct launch_order *launch,
                   const char **words, char texts[256]);

#endif // TOOLS_TENON_RUN_LAUNCHER_H
