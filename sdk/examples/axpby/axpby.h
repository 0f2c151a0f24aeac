// SPDX-License-Identifier: MIT
// What the files of this pack share: the attributes, and the records that plugin.c lists.
#ifndef ACME_AXPBY_H
#define ACME_AXPBY_H

#include <tenon/plugin.h>

// Attributes are a plain struct; axpby_table describes its fields to the host, which from
// then on can parse, print, hash and compare it.
typedef struct axpby_attrs {
    double alpha;
    double beta;
} axpby_attrs;

extern const tn_attr_field axpby_fields[2];
#define AXPBY_TABLE                                                                        \
    {                                                                                      \
        sizeof(axpby_attrs), 2, sizeof(tn_attr_field), axpby_fields                        \
    }

extern const tn_input_info axpby_inputs[2]; // x, y

extern const tn_primitive axpby_with_rules; // rules.c
extern const tn_kernel axpby_cpu;           // cpu.c
extern const tn_kernel axpby_vulkan_glsl;   // vulkan.c
extern const tn_kernel axpby_vulkan_spirv;

#endif // ACME_AXPBY_H
