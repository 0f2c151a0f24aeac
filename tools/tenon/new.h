// SPDX-License-Identifier: MIT
// What the files of `tenon new` share.
#ifndef TOOLS_TENON_NEW_H
#define TOOLS_TENON_NEW_H

#include "project.h"

#define NEW_MAX_NAME 40

// As given on the command line.
struct new_options {
    const char *name, *id, *license, *vendor;
    const char *op;                // of an op pack
    const char *target;            // that kernels are for, by name
    const tn_primitive *primitive; // the same, found
    tn_runtime *runtime;           // in which; borrowed
    bool c, glsl, with_vjp;
    char default_id[NEW_MAX_NAME + 16];
};

#define NEW_DEFAULTS                                                                       \
    {                                                                                      \
        .license = "MIT", .vendor = "Example", .op = "axpby"                               \
    }

// The files of kernels for o->primitive.
int new_kernels_add(struct project *project, const struct new_options *o);

#endif // TOOLS_TENON_NEW_H
