// SPDX-License-Identifier: MIT
// The checks of architectures, which are in two files: descriptions, and steps.
//
// Threads. As in kit.h.
#ifndef CONFORMANCE_MODEL_GROUP_MODEL_H
#define CONFORMANCE_MODEL_GROUP_MODEL_H

#include "run.h"

// The plugin under test, started with a fake host.
struct models {
    struct kit *kit;
    struct subject subject;
    struct fake_host host;
    const tn_model *ops;
    struct model_draft draft;
};

// The value of the plugin's selector `index` of kind "architecture", or NULL.
const char *model_architecture(const struct models *m, uint32_t index);

void group_model_steps(struct models *m); // the checks in group_model_steps.c

#endif // CONFORMANCE_MODEL_GROUP_MODEL_H
