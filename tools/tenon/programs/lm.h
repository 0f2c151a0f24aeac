// SPDX-License-Identifier: MIT
// The commands of language models: parsed by the table of ../lm/given.c, and run by a
// program of their own, which links the library.
#ifndef TOOLS_TENON_PROGRAMS_LM_H
#define TOOLS_TENON_PROGRAMS_LM_H

#include "base/args.h"

enum { LM_OPTIONS = 32 }; // of a command, at most

// Words of a command line. Options point into it.
struct lm_parsed {
    struct option options[LM_OPTIONS];
    const char *texts[LM_OPTIONS];
    bool flags[LM_OPTIONS];
    bool is_aside[LM_OPTIONS]; // not for the program
    size_t count;
    struct args args;
};

// Parses by the options of one command, FOR_...; the rest as args_parse().
int lm_parse(const struct command *self, uint32_t command, int min, int max, int argc,
             char **argv, struct lm_parsed *out);

// The value of an option of the command, or NULL; whether it was given.
const char *lm_text(const struct lm_parsed *line, const char *name);
bool lm_is_given(const struct lm_parsed *line, const char *name);

// Executes tenon-lm in place of this process, for `mode`.
int lm_run(const char *mode, struct lm_parsed *line);

#endif // TOOLS_TENON_PROGRAMS_LM_H
