// SPDX-License-Identifier: MIT
// Specialisation constants, and the size of a workgroup, which may be made of them.
#include "build.h"

uint32_t spec_of_number(struct translator *t, uint32_t number, uint64_t bits, uint32_t type)
{
    for (uint32_t i = 0; i < t->num_specs; i++)
        if (t->specs[i].number == number)
            return t->specs[i].id;
    if (t->num_specs == t->capacity_specs)
        t->specs = compiler_grow(t->c, t->specs, t->num_specs, &t->capacity_specs,
                                 sizeof *t->specs);
    uint32_t id = ir_spec_constant(t->ir, type, bits, number);
    t->specs[t->num_specs].number = number;
    t->specs[t->num_specs++].id = id;
    return id;
}

// A constant, or of specialisation constants a composite.
struct tree_expr *workgroup_size(struct translator *t, const struct position *at)
{
    const struct type *type = type_vector(t, TYPE_UINT32, 3);
    uint32_t parts[3], vector = type_id(t, type, LAYOUT_NONE);
    uint32_t uint_id = type_id(t, type_scalar(t, TYPE_UINT32), LAYOUT_NONE);
    bool is_spec = false;
    struct tree_expr *e = expr_constant(t, type, at);
    static const uint32_t built_in = BuiltInWorkgroupSize;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t value = t->local_size.value[i] != 0 ? t->local_size.value[i] : 1;
        bool has_id = t->local_size.id[i] != UINT32_MAX;
        e->bits[i] = value;
        if (t->local_size.made != 0)
            continue;
        parts[i] = has_id ? spec_of_number(t, t->local_size.id[i], value, uint_id)
                          : ir_u32(t->ir, value);
        is_spec = is_spec || has_id;
    }
    if (t->local_size.made == 0) {
        t->local_size.is_spec = is_spec;
        t->local_size.made = is_spec ? ir_spec_composite(t->ir, vector, 3, parts)
                                     : ir_composite(t->ir, vector, 3, parts);
        ir_decorate(t->ir, t->local_size.made, DecorationBuiltIn, 1, &built_in);
    }
    return t->local_size.is_spec ? expr_spec(t, type, t->local_size.made, at) : e;
}

void local_size_finish(struct translator *t)
{
    uint32_t size[3];
    struct position at = {0};
    for (uint32_t i = 0; i < 3; i++) {
        size[i] = t->local_size.value[i] != 0 ? t->local_size.value[i] : 1;
    }
    ir_mode(t->ir, OpExecutionMode, t->main->ir, ExecutionModeLocalSize, 3, size);
    workgroup_size(t, &at);
}
