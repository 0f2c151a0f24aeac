// SPDX-License-Identifier: MIT
// Applications of primitives that are not elementwise, as data: shared by the checks of
// values and of derivatives.
#ifndef SUITE_CASES_H
#define SUITE_CASES_H

#include "suite.h"

enum { MAX_OPERANDS = 7, MAX_ATTRS = 5 };

struct operand {
    int32_t rank; // -1: not given
    int64_t extent[5];
    tn_dtype dtype; // 0: the case's
    double lo, hi;  // both 0: -1 to 1
};

// What a result must be, when the primitive's own reference does not say it.
struct run;
typedef void (*oracle)(const struct run *run, struct host_array *want);

struct prim_case {
    const char *primitive;
    const char *label;
    uint32_t dtypes;
    uint32_t num_inputs;
    struct operand in[MAX_OPERANDS];
    struct {
        const char *name, *text; // parsed by the core, as on the command line
    } attrs[MAX_ATTRS];
    // Most terms that make one element, times the greatest: each may be off by one rounding
    // of the dtype in which it is accumulated (on a GPU: of the dtype itself).
    double terms;
    oracle oracle; // NULL: the reference
};

struct run {
    const struct prim_case *c;
    const struct host_array *in;
};

extern const struct prim_case prim_cases[];
extern const uint32_t num_prim_cases;
// The same for operators whose values are NumPy's (golden.c): for derivatives and batches.
extern const struct prim_case operator_cases[];
extern const uint32_t num_operator_cases;

// Whether a case's primitive, with or without its revision, has this id.
static inline bool case_is_of(const char *primitive, const char *id)
{
    size_t length = strlen(primitive);
    return strncmp(primitive, id, length) == 0 && (id[length] == '/' || id[length] == '\0');
}

// The attributes of a case; `items` has room for MAX_ATTRS.
tn_attr_list case_attrs(const struct prim_case *c, tn_attr *items);
// An integer list or number of a case's attribute; `absent` when it has none.
int64_t case_int(const struct prim_case *c, const char *name, uint32_t i, int64_t absent);
// Fills in new values for the case's inputs (those not given have no data).
void case_inputs(struct suite *s, const struct prim_case *c, tn_dtype dtype,
                 struct host_array in[MAX_OPERANDS]);

// A case of an operator of rows along an axis, for an array of cases; its inputs follow.
#define ROWS(op, label, count, terms, axis, ...)                                           \
    {                                                                                      \
        "nn." #op, label, TN_FLOAT_DTYPES, count, __VA_ARGS__, {{"axis", axis}}, terms,    \
            oracle_##op                                                                    \
    }

// Oracles in plain loops (oracles.c).
void oracle_same(const struct run *run, struct host_array *want);
void oracle_transpose(const struct run *run, struct host_array *want);
void oracle_broadcast(const struct run *run, struct host_array *want);
void oracle_sum_to(const struct run *run, struct host_array *want);
void oracle_mean(const struct run *run, struct host_array *want);
void oracle_slice(const struct run *run, struct host_array *want);
void oracle_arange(const struct run *run, struct host_array *want);
void oracle_full(const struct run *run, struct host_array *want);
void oracle_clip(const struct run *run, struct host_array *want);
void oracle_softmax(const struct run *run, struct host_array *want);
void oracle_log_softmax(const struct run *run, struct host_array *want);
void oracle_rms_norm(const struct run *run, struct host_array *want);
void oracle_layer_norm(const struct run *run, struct host_array *want);

#endif // SUITE_CASES_H
