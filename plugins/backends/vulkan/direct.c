// SPDX-License-Identifier: MIT
// Kernels made beforehand for single operations, found by the hash of program and class
// that make_programs.c gave them as their name.
#include "direct.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "embedded.h"

static int compare_name(const void *name, const void *variant)
{
    return strcmp(name, ((const struct spirv_variant *)variant)->name);
}

static const struct spirv_variant *find(const struct program_source *source)
{
    char name[48];
    struct vk_hash hash = program_class_hash(source->program, source->class);
    snprintf(name, sizeof(name), "p%016" PRIx64 "%016" PRIx64, hash.hi, hash.lo);
    return bsearch(name, spirv_variants, num_spirv_variants, sizeof(*spirv_variants),
                   compare_name);
}

static tn_status get_code(tn_device *device, void *context, struct vk_code *out)
{
    (void)device;
    const struct spirv_variant *variant = find(context);
    *out = (struct vk_code){.words = variant->words, .size = variant->size};
    return TN_OK;
}

tn_status direct_plan_program(struct vk_plan *plan, const tn_step *step, bool *out_found)
{
    struct program_class class;
    struct program_args args;
    program_classify(step, VK_MAX_PUSH, &class, &args);
    struct program_source source = {step->program, &class};
    *out_found = find(&source) != NULL;
    return *out_found ? plan_program_launch(plan, step, &class, &args, get_code) : TN_OK;
}
