// SPDX-License-Identifier: MIT
// Shared by the files of `tenon new`.
#ifndef TOOLS_TENON_NEW_NEW_H
#define TOOLS_TENON_NEW_NEW_H

#include "project.h"

#define NEW_MAX_NAME 40

// Options of the command line.
struct new_options {
    const char *name, *id, *license, *vendor;
    const char *op;                // the operator of an op pack
    const char *target;            // the operator that kernels are for
    const tn_primitive *primitive; // the record of `target`
    tn_runtime *runtime;           // owns `primitive`; borrowed
    bool c, glsl, with_vjp, python;
    char default_id[NEW_MAX_NAME + 16];
};

#define NEW_DEFAULTS                                                                       \
    {                                                                                      \
        .license = "MIT", .vendor = "Example", .op = "axpby"                               \
    }

// Adds the files of kernels for o->primitive.
int new_kernels_add(struct project *project, const struct new_options *o);

#endif // TOOLS_TENON_NEW_NEW_H
