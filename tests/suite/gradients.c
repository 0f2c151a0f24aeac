// SPDX-License-Identifier: MIT
// Derivatives in f64 against central differences, and both modes against each other.
//
// A loss is the sum of all outputs' elements times fixed random weights. With a step of
// 1e-6 the difference is off by its square times the third derivative and by some 1e-16 /
// 1e-6 times the loss: 2e-6 of the gradient's size, and that, are allowed.
#include "cases.h"

static const double difference_step = 1e-6, bound = 2e-6, loss_rounding = 0x1p-50;

struct derivative {
    const char *primitive;
    tn_attr_list list;
    uint32_t num_inputs, num_outputs; // 0 outputs: 1
    uint32_t output;                  // the one that the loss is made of
    struct host_array in[MAX_OPERANDS];
    struct host_array weights; // of the output
};

static tn_array *apply(tn_scope *scope, const struct derivative *d, tn_array **arrays)
{
    for (uint32_t i = 0; i < d->num_inputs; i++) {
        struct host_array copy = d->in[i];
        arrays[i] = host_array_upload(scope, &copy, PLAIN);
    }
    tn_array *outputs[MAX_OPERANDS] = {NULL};
    tn_op_n(scope, d->primitive, (const tn_array *const *)arrays, d->num_inputs, d->list,
            outputs, d->num_outputs ? d->num_outputs : 1);
    return outputs[d->output];
}

static double loss(struct suite *s, const struct derivative *d)
{
    tn_array *arrays[MAX_OPERANDS];
    struct host_array got;
    double sum = 0;
    tn_scope *scope = tn_scope_open(s->runtime);
    if (host_array_read(scope, apply(scope, d, arrays), &got)) {
        for (int64_t i = 0; i < got.count; i++)
            sum += host_array_get(&got, i) * host_array_get(&d->weights, i);
        host_array_free(&got);
    } else {
        sum = NAN;
    }
    tn_scope_close(scope);
    return sum;
}

// The gradient of input k by differences, at up to 24 of its elements.
static const char *compare_gradient(struct suite *s, struct derivative *d, uint32_t k,
                                    const struct host_array *got)
{
    static char text[200];
    struct host_array *x = &d->in[k];
    int64_t tries = x->count < 24 ? x->count : 24;
    for (int64_t t = 0; t < tries; t++) {
        int64_t i = x->count <= 24 ? t : (int64_t)(random_bits(s) % (uint64_t)x->count);
        double at = host_array_get(x, i);
        tn_set_f64(&x->tensor, i, at + difference_step);
        double above = loss(s, d);
        tn_set_f64(&x->tensor, i, at - difference_step);
        double below = loss(s, d);
        tn_set_f64(&x->tensor, i, at);
        double want = (above - below) / (2 * difference_step),
               have = host_array_get(got, i);
        double noise = loss_rounding * fabs(above) / difference_step;
        if (fabs(have - want) <= bound * (1 + fabs(want)) + noise)
            continue;
        snprintf(text, sizeof(text), "element %lld is %.12g, the difference is %.12g",
                 (long long)i, have, want);
        return text;
    }
    return NULL;
}

// <weights, J t> = <J' weights, t> for random t: forward mode agrees with reverse mode.
static const char *compare_modes(struct suite *s, const struct derivative *d, uint32_t k,
                                 const struct host_array *gradient)
{
    static char text[200];
    tn_array *arrays[MAX_OPERANDS], *tangents[1], *out, *moved = NULL;
    const tn_layout *x = &d->in[k].tensor.layout;
    struct host_array t = host_array_new(TN_F64, x->rank, x->extent), got;
    tn_scope *scope = tn_scope_open(s->runtime);
    host_array_fill(s, &t, -1, 1);
    out = apply(scope, d, arrays);
    tangents[0] = host_array_upload(scope, &t, PLAIN);
    double forward = 0, reverse = 0;
    const char *failure = NULL;
    if (tn_jvp(scope, &out, 1, &arrays[k], tangents, 1, &moved) ||
        !host_array_read(scope, moved, &got)) {
        snprintf(text, sizeof(text), "jvp: %s", tn_scope_error(scope));
        failure = text;
    } else {
        for (int64_t i = 0; i < got.count; i++)
            forward += host_array_get(&got, i) * host_array_get(&d->weights, i);
        for (int64_t i = 0; i < t.count; i++)
            reverse += host_array_get(&t, i) * host_array_get(gradient, i);
        if (!(fabs(forward - reverse) <= 1e-9 * (1 + fabs(reverse)))) {
            snprintf(text, sizeof(text), "forward mode gives %.15g, reverse mode %.15g",
                     forward, reverse);
            failure = text;
        }
        host_array_free(&got);
    }
    host_array_free(&t);
    tn_scope_close(scope);
    return failure;
}

static void check_input(struct suite *s, struct derivative *d, uint32_t k,
                        const char *label)
{
    tn_array *arrays[MAX_OPERANDS], *gradient = NULL;
    struct host_array got;
    tn_scope *scope = tn_scope_open(s->runtime);
    tn_array *out = apply(scope, d, arrays);
    tn_array *weights = host_array_upload(scope, &d->weights, PLAIN);
    if (tn_vjp(scope, &out, &weights, 1, &arrays[k], 1, &gradient) ||
        !host_array_read(scope, gradient, &got)) {
        check(s, tn_scope_error(scope), "%s vjp of input %u", label, k);
        tn_scope_close(scope);
        return;
    }
    tn_scope_close(scope);
    check(s, compare_gradient(s, d, k, &got), "%s vjp of input %u", label, k);
    check(s, compare_modes(s, d, k, &got), "%s jvp of input %u", label, k);
    host_array_free(&got);
}

// Makes weights for the output's shape. False: the application fails.
static bool weigh(struct suite *s, struct derivative *d)
{
    tn_array *arrays[MAX_OPERANDS];
    tn_scope *scope = tn_scope_open(s->runtime);
    const tn_array *out = apply(scope, d, arrays);
    const tn_type *type = tn_array_type(out);
    if (out) {
        d->weights = host_array_new(TN_F64, type->rank, type->extent);
        host_array_fill(s, &d->weights, 0.5, 1.5);
    } else {
        check(s, tn_scope_error(scope), "%s", d->primitive);
    }
    tn_scope_close(scope);
    return out != NULL;
}

static void free_all(struct derivative *d)
{
    for (uint32_t i = 0; i < d->num_inputs; i++)
        host_array_free(&d->in[i]);
    host_array_free(&d->weights);
}

// --- elementwise -----------------------------------------------------------------------

// Where each is differentiated; kinks (abs, floor, max of equals) are kept away from by
// chance, which the seed fixes.
static const struct {
    const char *name;
    int arity;
    double lo, hi, lo2, hi2;
} elementwise[] = {
    {"base.negative", 1, -3, 3, 0, 0},    {"base.abs", 1, -3, 3, 0, 0},
    {"base.sign", 1, 0.1, 3, 0, 0},       {"base.floor", 1, 0.1, 0.9, 0, 0},
    {"base.ceil", 1, 0.1, 0.9, 0, 0},     {"base.trunc", 1, 0.1, 0.9, 0, 0},
    {"base.round", 1, 0.6, 1.4, 0, 0},    {"base.sqrt", 1, 0.5, 3, 0, 0},
    {"base.rsqrt", 1, 0.5, 3, 0, 0},      {"base.square", 1, -3, 3, 0, 0},
    {"base.reciprocal", 1, 0.5, 3, 0, 0}, {"base.exp", 1, -2, 2, 0, 0},
    {"base.exp2", 1, -2, 2, 0, 0},        {"base.expm1", 1, -2, 2, 0, 0},
    {"base.log", 1, 0.5, 3, 0, 0},        {"base.log2", 1, 0.5, 3, 0, 0},
    {"base.log10", 1, 0.5, 3, 0, 0},      {"base.log1p", 1, -0.5, 3, 0, 0},
    {"base.sin", 1, -3, 3, 0, 0},         {"base.cos", 1, -3, 3, 0, 0},
    {"base.tan", 1, -1, 1, 0, 0},         {"base.arcsin", 1, -0.9, 0.9, 0, 0},
    {"base.arccos", 1, -0.9, 0.9, 0, 0},  {"base.arctan", 1, -3, 3, 0, 0},
    {"base.sinh", 1, -2, 2, 0, 0},        {"base.cosh", 1, -2, 2, 0, 0},
    {"base.tanh", 1, -2, 2, 0, 0},        {"base.arcsinh", 1, -2, 2, 0, 0},
    {"base.arccosh", 1, 1.5, 3, 0, 0},    {"base.arctanh", 1, -0.8, 0.8, 0, 0},
    {"base.erf", 1, -2, 2, 0, 0},         {"base.erfinv", 1, -0.8, 0.8, 0, 0},
    {"base.sigmoid", 1, -3, 3, 0, 0},     {"base.copy", 1, -3, 3, 0, 0},
    {"nn.relu", 1, -3, 3, 0, 0},          {"base.add", 2, -3, 3, -3, 3},
    {"base.subtract", 2, -3, 3, -3, 3},   {"base.multiply", 2, -3, 3, -3, 3},
    {"base.divide", 2, -3, 3, 0.5, 3},    {"base.power", 2, 0.5, 3, -2, 2},
    {"base.maximum", 2, -3, 3, -3, 3},    {"base.minimum", 2, -3, 3, -3, 3},
    {"base.arctan2", 2, -3, 3, 0.5, 3},   {"base.remainder", 2, 0.1, 0.9, 1, 2},
};

static void elementwise_gradients(struct suite *s)
{
    if (!test_begin(s, "derivatives of elementwise primitives"))
        return;
    for (size_t e = 0; e < sizeof(elementwise) / sizeof(elementwise[0]); e++) {
        struct derivative d = {.primitive = elementwise[e].name,
                               .num_inputs = (uint32_t)elementwise[e].arity};
        // The second operand broadcasts: its gradient is summed down.
        d.in[0] = host_array_new(TN_F64, 2, (int64_t[]){2, 3});
        d.in[1] = host_array_new(TN_F64, 1, (int64_t[]){3});
        host_array_fill(s, &d.in[0], elementwise[e].lo, elementwise[e].hi);
        host_array_fill(s, &d.in[1], elementwise[e].lo2, elementwise[e].hi2);
        if (weigh(s, &d))
            for (uint32_t k = 0; k < d.num_inputs; k++)
                check_input(s, &d, k, d.primitive);
        host_array_free(&d.in[1]);
        d.num_inputs = 1;
        free_all(&d);
    }
    test_end(s);
}

// --- optimisers ------------------------------------------------------------------------

// Each output with respect to each input: parameters, gradient, moments. A second moment is
// positive.
static void optimiser_gradients(struct suite *s)
{
    static const struct {
        const char *name;
        uint32_t num_inputs, num_outputs, num_floats;
    } optimisers[] = {{"nn.sgd", 3, 2, 3}, {"nn.adam", 5, 3, 4}};
    if (!test_begin(s, "derivatives of optimisers"))
        return;
    for (int o = 0; o < 2; o++)
        for (uint32_t output = 0; output < optimisers[o].num_outputs; output++) {
            struct derivative d = {.primitive = optimisers[o].name,
                                   .list = tn_attrs("lr", 0.1, "weight_decay", 0.3),
                                   .num_inputs = optimisers[o].num_inputs,
                                   .num_outputs = optimisers[o].num_outputs,
                                   .output = output};
            for (uint32_t k = 0; k < d.num_inputs; k++) {
                d.in[k] = host_array_new(TN_F64, k < 4, (int64_t[]){5});
                host_array_fill(s, &d.in[k], k < 3 ? -1 : 1, k < 3 ? 1 : 2);
            }
            if (weigh(s, &d))
                for (uint32_t k = 0; k < optimisers[o].num_floats; k++)
                    check_input(s, &d, k, d.primitive);
            free_all(&d);
        }
    test_end(s);
}

// --- where there is none ---------------------------------------------------------------

// Points without a derivative, or where a function is subnormal: what is given there, and
// that what is given has a derivative of its own that is no NaN.
static const struct special {
    const char *primitive;
    tn_dtype dtype;
    uint32_t num_inputs;
    double at[2], want[2];
} special[] = {
    {"base.arctan2", TN_F64, 2, {0, 0}, {0, 0}},
    {"base.arctan2", TN_F32, 2, {0, 0}, {0, 0}},
    {"base.arctan2", TN_F32, 2, {-0.0, -0.0}, {0, 0}},
    {"base.arctan2", TN_F32, 2, {0, 2}, {0.5, 0}},
    {"base.arctan2", TN_F32, 2, {2, 0}, {0, -0.5}},
    {"base.sigmoid", TN_F64, 1, {-800}, {0}},
    {"base.sigmoid", TN_F64, 1, {800}, {0}},
    {"base.sigmoid", TN_F64, 1, {-700}, {9.85967654375977e-305}},
    {"base.sigmoid", TN_F32, 1, {-80}, {1.8048513878454153e-35}},
    {"nn.silu", TN_F32, 1, {-800}, {0}},
};

static const char *compare_special(const struct special *at, tn_scope *scope)
{
    static char text[200];
    tn_array *in[2], *g[2] = {NULL}, *again[2] = {NULL};
    for (uint32_t i = 0; i < at->num_inputs; i++) {
        struct host_array x = host_array_new(at->dtype, 0, NULL);
        tn_set_f64(&x.tensor, 0, at->at[i]);
        in[i] = host_array_upload(scope, &x, PLAIN);
        host_array_free(&x);
    }
    tn_array *out = tn_op(scope, at->primitive, (const tn_array *const *)in, at->num_inputs,
                          TN_NO_ATTRS);
    if (tn_vjp(scope, &out, NULL, 1, in, at->num_inputs, g))
        return tn_scope_error(scope);
    for (uint32_t i = 0; i < at->num_inputs; i++) {
        struct host_array read;
        if (!host_array_read(scope, g[i], &read))
            return tn_scope_error(scope);
        double got = tn_get_f64(&read.tensor, 0);
        host_array_free(&read);
        if (!(fabs(got - at->want[i]) <= 1e-5 * fabs(at->want[i]))) {
            snprintf(text, sizeof(text), "input %u: got %.9g, expected %.9g", i, got,
                     at->want[i]);
            return text;
        }
        if (tn_vjp(scope, &g[i], NULL, 1, in, at->num_inputs, again) ||
            !host_array_read(scope, again[0], &read))
            return tn_scope_error(scope);
        bool is_nan = isnan(tn_get_f64(&read.tensor, 0));
        host_array_free(&read);
        if (is_nan)
            return "the second derivative is a NaN";
    }
    return NULL;
}

static void special_gradients(struct suite *s)
{
    if (!test_begin(s, "derivatives at special points"))
        return;
    for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
        tn_scope *scope = tn_scope_open(s->runtime);
        check(s, compare_special(&special[i], scope), "%s %s at %g, %g",
              special[i].primitive, tn_dtype_name(special[i].dtype), special[i].at[0],
              special[i].at[1]);
        tn_scope_close(scope);
    }
    test_end(s);
}

// --- the others ------------------------------------------------------------------------

static uint32_t output_count(struct suite *s, const struct prim_case *c,
                             const struct derivative *d)
{
    tn_array *arrays[MAX_OPERANDS];
    tn_scope *scope = tn_scope_open(s->runtime);
    for (uint32_t i = 0; i < d->num_inputs; i++) {
        struct host_array copy = d->in[i];
        arrays[i] = host_array_upload(scope, &copy, PLAIN);
    }
    uint64_t count = tn_op_outputs(scope, c->primitive, (const tn_array *const *)arrays,
                                   d->num_inputs, d->list);
    tn_scope_close(scope);
    return (uint32_t)count;
}

// Whether there is a derivative: of a float result with respect to an input that is no
// constant.
static bool has_derivative(struct suite *s, const struct prim_case *c)
{
    const tn_primitive *prim = tn_primitive_find(s->runtime, c->primitive);
    bool is_variable = false, is_float = false;
    if (c->num_inputs == 0 || !tn_dtype_in(TN_F64, c->dtypes) ||
        strcmp(c->primitive, "base.stop_gradient") == 0)
        return false;
    for (uint32_t k = 0; k < prim->num_inputs; k++)
        is_variable = is_variable || !(prim->inputs[k].flags & TN_INPUT_CONSTANT);
    if (is_variable) {
        tn_attr items[MAX_ATTRS];
        tn_array *arrays[MAX_OPERANDS];
        struct derivative d = {.primitive = c->primitive,
                               .list = case_attrs(c, items),
                               .num_inputs = c->num_inputs};
        case_inputs(s, c, TN_F64, d.in);
        d.num_outputs = output_count(s, c, &d);
        tn_scope *scope = tn_scope_open(s->runtime);
        const tn_array *out = apply(scope, &d, arrays);
        is_float = !out || tn_dtype_in(tn_array_type(out)->dtype, TN_FLOAT_DTYPES);
        tn_scope_close(scope);
        free_all(&d);
    }
    return is_float;
}

static void case_gradients(struct suite *s, const struct prim_case *c)
{
    tn_attr items[MAX_ATTRS];
    struct derivative d = {.primitive = c->primitive,
                           .list = case_attrs(c, items),
                           .num_inputs = c->num_inputs};
    const tn_primitive *prim = tn_primitive_find(s->runtime, c->primitive);
    case_inputs(s, c, TN_F64, d.in);
    d.num_outputs = output_count(s, c, &d);
    if (strcmp(c->primitive, "nn.max_pool2d_grad") ==
        0) { // its second is max_pool2d(first)
        tn_scope *scope = tn_scope_open(s->runtime);
        tn_array *y = tn_op(scope, "nn.max_pool2d/1",
                            TN_IN(host_array_upload(scope, &d.in[0], PLAIN)), d.list);
        host_array_free(&d.in[1]);
        if (!host_array_read(scope, y, &d.in[1]))
            d.in[1] = host_array_new(TN_F64, 0, NULL);
        tn_scope_close(scope);
    }
    if (weigh(s, &d))
        for (uint32_t k = 0; k < c->num_inputs; k++) {
            uint32_t info = k < prim->num_inputs ? k : prim->num_inputs - 1;
            bool is_constant = prim->inputs[info].flags & TN_INPUT_CONSTANT ||
                               tn_dtype_in(d.in[k].tensor.layout.dtype, TN_INTEGER_DTYPES);
            if (!is_constant && d.in[k].count > 0)
                check_input(s, &d, k, c->label);
        }
    free_all(&d);
}

static void table_gradients(struct suite *s, const struct prim_case *cases, uint32_t count)
{
    bool wanted = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct prim_case *c = &cases[i];
        if (!has_derivative(s, c) || strcmp(c->label, "long") == 0)
            continue;
        if (!strstr(s->name, c->primitive) ||
            strncmp(s->name, "derivatives of ", 15) != 0 ||
            strcmp(s->name + 15, c->primitive) != 0) {
            if (wanted)
                test_end(s);
            wanted = test_begin(s, "derivatives of %s", c->primitive);
        }
        if (wanted)
            case_gradients(s, c);
    }
    if (wanted)
        test_end(s);
}

void gradient_tests(struct suite *s)
{
    if (!s->is_cpu) { // differences in f64 need exact functions; the rules are the same
        test_skip(s, "derivatives",
                  "differences are taken on the CPU: the rules are shared");
        return;
    }
    elementwise_gradients(s);
    optimiser_gradients(s);
    special_gradients(s);
    table_gradients(s, prim_cases, num_prim_cases);
    table_gradients(s, operator_cases, num_operator_cases);
}
