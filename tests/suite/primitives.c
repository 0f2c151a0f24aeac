// SPDX-License-Identifier: MIT
// Primitives that are not elementwise, against their own references and plain loops, over
// dtypes and layouts; and random numbers, optimisers and errors.
#include "cases.h"
#include <tenon/kernel.h>
#include <tenon/ops/stages.h>

// --- the reference as oracle -----------------------------------------------------------

static tn_status refuse(const tn_host *host, tn_status status, const char *format, ...)
{
    (void)host;
    printf("# a reference failed: %s\n", format);
    return status;
}

// One field of an attribute struct, from its default or from text.
static void fill_field(const tn_attr_field *field, const char *text, char *attrs)
{
    void *at = attrs + field->offset;
    if (field->kind == TN_ATTR_INTS) {
        tn_ints *ints = at;
        *ints = (tn_ints){.given = text != NULL};
        for (const char *p = text; p && (p = strpbrk(p, "-0123456789")) != NULL;) {
            char *end;
            ints->value[ints->count++] = strtoll(p, &end, 10);
            p = end;
        }
    } else if (field->kind > TN_ATTR_BITS) {
        return; // texts and lists of any length: left out
    } else if (field->kind == TN_ATTR_F64) {
        *(double *)at = text ? atof(text) : field->default_f;
    } else {
        bool is_true = text && strcmp(text, "true") == 0;
        *(int64_t *)at = is_true ? 1 : text ? strtoll(text, NULL, 10) : field->default_i;
    }
}

static void fill_attrs(const struct prim_case *c, const tn_attr_table *table, char *attrs)
{
    for (uint32_t i = 0; i < table->num_fields; i++) {
        const char *text = NULL;
        for (int k = 0; k < MAX_ATTRS && c->attrs[k].name; k++)
            if (strcmp(c->attrs[k].name, table->fields[i].name) == 0)
                text = c->attrs[k].text;
        fill_field(&table->fields[i], text, attrs);
    }
}

static tn_status run_reference(struct suite *s, const struct run *run,
                               struct host_array *want)
{
    const tn_primitive *prim = tn_primitive_find(s->runtime, run->c->primitive);
    tn_host host = {.struct_size = sizeof(host), .fail = refuse};
    tn_tensor in[MAX_OPERANDS] = {0};
    char attrs[512] __attribute__((aligned(8))) = {0};
    if (!prim || !prim->reference)
        return TN_ERR_UNSUPPORTED;
    for (uint32_t i = 0; i < run->c->num_inputs; i++)
        in[i] = run->in[i].tensor;
    fill_attrs(run->c, &prim->attrs, attrs);
    tn_cpu_call call = {.struct_size = sizeof(call),
                        .host = &host,
                        .inputs = in,
                        .outputs = &want->tensor,
                        .attrs = attrs,
                        .num_inputs = run->c->num_inputs,
                        .num_outputs = 1,
                        .num_threads = 1,
                        .parallel_for = tn_loop_here};
    return prim->reference(&call);
}

// --- one check --------------------------------------------------------------------------

// max_pool2d_grad's second input is max_pool2d of the first, not anything.
static void fix_inputs(struct suite *s, const struct prim_case *c, struct host_array *in)
{
    if (strcmp(c->primitive, "nn.max_pool2d_grad") != 0)
        return;
    struct prim_case forward = *c;
    forward.primitive = "nn.max_pool2d/1";
    forward.num_inputs = 1;
    run_reference(s, &(struct run){&forward, in}, &in[1]);
}

static const char *compare(struct suite *s, const struct run *run, tn_scope *scope,
                           tn_array *out)
{
    struct host_array got, want;
    if (!host_array_read(scope, out, &got))
        return tn_scope_error(scope);
    tn_dtype dtype = got.tensor.layout.dtype;
    want = host_array_new(dtype, got.tensor.layout.rank, got.tensor.layout.extent);
    const char *failure = NULL;
    if (run->c->oracle)
        run->c->oracle(run, &want);
    else if (run_reference(s, run, &want))
        failure = "has no reference";
    // Terms of integers are summed exactly.
    bool is_float = tn_dtype_in(dtype, TN_FLOAT_DTYPES);
    bool is_half = dtype == TN_F16 || dtype == TN_BF16;
    double term = is_half && s->is_cpu ? dtype_rounding(TN_F32) : dtype_rounding(dtype);
    bool adds_in_place = strcmp(run->c->primitive, "base.scatter_add") == 0 ||
                         strcmp(run->c->primitive, "nn.max_pool2d_grad") == 0;
    if (adds_in_place)
        term = dtype_rounding(dtype); // each addition is stored
    // Equal terms err the same way: up to a rounding of the sum each. Both results are
    // rounded when stored: neighbours may be chosen.
    double relative = 2 * dtype_rounding(dtype) + fmin(run->c->terms, 1000) * term;
    if (run->c->terms == 0)
        relative = 0;
    if (!failure)
        failure =
            host_array_compare(&got, &want, relative, is_float ? run->c->terms * term : 0);
    host_array_free(&got);
    host_array_free(&want);
    return failure;
}

static void check_case(struct suite *s, const struct prim_case *c, tn_dtype dtype,
                       enum layout_kind kind)
{
    struct host_array in[MAX_OPERANDS] = {0};
    tn_array *arrays[MAX_OPERANDS] = {NULL};
    tn_attr items[MAX_ATTRS + 1];
    tn_scope *scope = tn_scope_open(s->runtime);
    case_inputs(s, c, dtype, in);
    for (uint32_t i = 0; i < c->num_inputs; i++) {
        if (i == 1)
            fix_inputs(s, c, in);
        arrays[i] =
            host_array_upload(scope, &in[i], i == 1 && c->num_inputs == 3 ? PLAIN : kind);
    }
    tn_attr_list list = case_attrs(c, items);
    if (c->num_inputs == 0)
        items[list.count++] = (tn_attr)TN_ATTR_INIT("dtype", (int64_t)dtype);
    tn_array *out =
        tn_op(scope, c->primitive, (const tn_array *const *)arrays, c->num_inputs, list);
    check(s, compare(s, &(struct run){c, in}, scope, out), "%s %s %s", c->label,
          tn_dtype_name(dtype), layout_names[kind]);
    for (uint32_t i = 0; i < c->num_inputs; i++)
        host_array_free(&in[i]);
    tn_scope_close(scope);
}

void primitive_tests(struct suite *s)
{
    for (uint32_t i = 0; i < num_prim_cases; i++) {
        const struct prim_case *c = &prim_cases[i];
        bool starts = i == 0 || strcmp(c->primitive, c[-1].primitive) != 0;
        bool ends = i + 1 == num_prim_cases || strcmp(c->primitive, c[1].primitive) != 0;
        static bool wanted;
        if (starts) {
            cover(c->primitive);
            wanted = test_begin(s, "%s", c->primitive);
        }
        if (!wanted)
            continue;
        for (tn_dtype dtype = TN_BOOL; dtype <= TN_F64; dtype++)
            if (tn_dtype_in(dtype, c->dtypes))
                check_case(s, c, dtype, PLAIN);
        for (int kind = TRANSPOSED; kind < NUM_LAYOUTS && c->num_inputs > 0; kind++)
            check_case(s, c, TN_F32, (enum layout_kind)kind);
        if (ends)
            test_end(s);
    }
}
