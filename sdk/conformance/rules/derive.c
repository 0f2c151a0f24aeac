// SPDX-License-Identifier: MIT
// Derivatives compared with central differences.
//
// The loss is the sum of all floating-point outputs times fixed random weights; for a
// complex output the real part of the product with its conjugated weight, so that the
// weights are cotangents in PyTorch's convention, and a gradient's parts are derivatives by
// parts. The error of a difference with step h is h^2 times the third derivative, plus the
// rounding error of the moved elements divided by h, which is allowed as well. Each
// difference is computed with h and with h / 2; where the two disagree (a kink, a pole),
// nothing is concluded. Where a derivative differs from both, it is wrong only if two more
// steps agree with them, as jumps may cancel in two.
#include <math.h>
#include "rules.h"

enum { MAX_ELEMENTS = 10 };

bool rules_flows(const struct sample *s, uint32_t i)
{
    const tn_primitive *p = s->primitive;
    uint32_t slot = i < p->num_inputs ? i : p->num_inputs - 1;
    return s->types[i].dtype != TN_DTYPE_NONE && dtype_derives(s->types[i].dtype) &&
           !(p->inputs[slot].flags & TN_INPUT_CONSTANT);
}

// --- samples ---------------------------------------------------------------------------

// Makes floats f64, where infer accepts this: differences need the precision.
static void rule_derive_widen(struct pack *pack, struct sample *s)
{
    struct sample wide = *s;
    for (uint32_t i = 0; i < s->num_inputs; i++)
        if (dtype_derives(s->types[i].dtype))
            wide.types[i].dtype = tn_is_complex(s->types[i].dtype) ? TN_COMPLEX128 : TN_F64;
    if (sample_infer(&pack->maker, &wide) == TN_OK)
        *s = wide;
}

// Chooses step and bound by the least precise dtype. False: it is too coarse for
// differences, or there is nothing to derive.
static bool choose_step(const struct sample *s, double *step, double *bound)
{
    double rounding = 0;
    bool has_input = false, has_output = false;
    for (uint32_t i = 0; i < s->num_inputs; i++) {
        rounding = fmax(rounding, dtype_rounding(s->types[i].dtype));
        has_input |= dtype_derives(s->types[i].dtype);
    }
    for (uint32_t i = 0; i < s->num_outputs; i++) {
        rounding = fmax(rounding, dtype_rounding(s->outputs[i].dtype));
        has_output |= dtype_derives(s->outputs[i].dtype);
    }
    *step = rounding > 0x1p-30 ? 0x1p-7 : 0x1p-18;
    *bound = rounding > 0x1p-30 ? 1e-2 : 1e-5;
    return has_input && has_output && rounding < 0x1p-20;
}

static bool rule_derive_derivation_init(struct rule_derivation *d)
{
    struct array out[MAX_OUT];
    rule_derive_widen(d->pack, d->s);
    if (!choose_step(d->s, &d->step, &d->bound) || !rules_fill(d->kit, d->pack, d->s, out))
        return false;
    for (uint32_t i = 0; i < d->s->num_outputs; i++) {
        tn_type type = array_type(&out[i]);
        d->weights[i] = (struct array){.count = 0};
        if (!dtype_derives(type.dtype))
            continue;
        d->weights[i] = array_new(&type, PLAIN, 0);
        array_fill(d->kit, &d->weights[i], 0.5, 1.5);
    }
    outputs_free(out);
    return true;
}

static void derivation_finish(struct rule_derivation *d)
{
    for (uint32_t i = 0; i < d->s->num_outputs; i++)
        array_free(&d->weights[i]);
    sample_free(d->s);
}

// --- differences -----------------------------------------------------------------------

// Adds the difference of moved outputs to *slope: `plus` and `minus` are the outputs at
// `step` to either side. Their rounding errors, divided by the step, are added to its
// noise: a quotient by nearly nothing and a 32nd power have few correct digits.
static void add_outputs(const struct rule_derivation *d, uint32_t output,
                        const struct array *plus, const struct array *minus, double step,
                        struct rule_slope *slope)
{
    double rounding = 4 * dtype_rounding(d->s->outputs[output].dtype);
    for (int64_t i = 0; i < d->weights[output].count; i++) {
        tn_complex128 weight = array_get_complex(&d->weights[output], i);
        tn_complex128 a = array_get_complex(plus, i), b = array_get_complex(minus, i);
        tn_complex128 by = {a.re - b.re, a.im - b.im};
        slope->value += rule_product(weight, by) / (2 * step);
        if (by.re != 0 || by.im != 0)
            slope->noise += rounding * hypot(weight.re, weight.im) *
                            fmax(hypot(a.re, a.im), hypot(b.re, b.im)) / step;
    }
}

struct sample rule_moved(const struct rule_derivation *d, const struct array *along,
                         double by)
{
    struct sample moved = *d->s;
    for (uint32_t n = 0; n < d->s->num_inputs; n++) {
        if (!along[n].tensor.data)
            continue;
        moved.in[n] = array_laid_out(&d->s->in[n], PLAIN);
        for (int64_t i = 0; i < moved.in[n].count; i++) {
            tn_complex128 x = array_get_complex(&d->s->in[n], i);
            tn_complex128 t = array_get_complex(&along[n], i);
            array_set_complex(&moved.in[n], i,
                              (tn_complex128){x.re + by * t.re, x.im + by * t.im});
        }
    }
    return moved;
}

void rule_moved_free(struct sample *moved, const struct array *along)
{
    for (uint32_t n = 0; n < moved->num_inputs; n++)
        if (along[n].tensor.data)
            array_free(&moved->in[n]);
}

// The outputs after all inputs are moved by `by` times `along`. False: they cannot be
// computed.
static bool outputs_moved(const struct rule_derivation *d, const struct array *along,
                          double by, struct array out[MAX_OUT])
{
    struct sample moved = rule_moved(d, along, by);
    const char *why = apply_definition(&d->pack->maker, &moved, out);
    rule_moved_free(&moved, along);
    return !why;
}

static struct rule_slope difference_by(const struct rule_derivation *d,
                                       const struct array *along, double step)
{
    struct array plus[MAX_OUT], minus[MAX_OUT];
    struct rule_slope slope = {NAN, 0};
    if (!outputs_moved(d, along, step, plus))
        return slope;
    if (outputs_moved(d, along, -step, minus)) {
        slope.value = 0;
        for (uint32_t o = 0; o < d->s->num_outputs; o++)
            add_outputs(d, o, &plus[o], &minus[o], step, &slope);
        outputs_free(minus);
    }
    outputs_free(plus);
    return slope;
}

static bool is_near(const struct rule_derivation *d, struct rule_slope a,
                    struct rule_slope b)
{
    return fabs(a.value - b.value) <=
           d->bound / 4 * (1 + fabs(b.value)) + a.noise + b.noise;
}

// Central difference along `along`. False: the function is not smooth there.
static bool rule_derive_difference(const struct rule_derivation *d,
                                   const struct array *along, struct rule_slope *out)
{
    struct rule_slope coarse = difference_by(d, along, d->step);
    *out = difference_by(d, along, d->step / 2);
    return is_near(d, coarse, *out);
}

// Whether further steps give the difference `want`, too.
static bool is_certain(const struct rule_derivation *d, const struct array *along,
                       struct rule_slope want)
{
    return is_near(d, difference_by(d, along, 0.31 * d->step), want) &&
           is_near(d, difference_by(d, along, 0.83 * d->step), want);
}

static bool rule_derive_agrees(const struct rule_derivation *d, double got,
                               struct rule_slope want)
{
    return fabs(got - want.value) <= d->bound * (1 + fabs(want.value)) + want.noise;
}

// --- transforms ------------------------------------------------------------------------

uint32_t rule_build(tn_scope *scope, const struct rule_derivation *d, tn_array *in[MAX_IN],
                    tn_array *out[MAX_OUT], tn_array *weights[MAX_OUT])
{
    tn_array *all[MAX_OUT] = {NULL};
    uint32_t count = 0;
    graph_inputs(scope, d->s, in);
    graph_op(scope, d->s, in, all);
    for (uint32_t i = 0; i < d->s->num_outputs; i++) {
        if (!d->weights[i].tensor.data)
            continue;
        weights[count] = graph_data(scope, &d->weights[i]);
        out[count++] = all[i];
    }
    return count;
}

// Computes the gradient in one input. TN_OK, or *out_why is why there is none.
static tn_status gradient_of(const struct rule_derivation *d, uint32_t input,
                             struct array *out_gradient, const char **out_why)
{
    static char text[300];
    tn_array *in[MAX_IN] = {NULL}, *out[MAX_OUT], *weights[MAX_OUT], *gradient = NULL;
    tn_scope *scope = tn_scope_open(d->pack->maker.runtime);
    uint32_t count = rule_build(scope, d, in, out, weights);
    tn_status status = tn_vjp(scope, out, weights, count, &in[input], 1, &gradient);
    if (status == TN_OK)
        status = graph_read(scope, gradient, out_gradient);
    if (status != TN_OK)
        *out_why = format_text(text, sizeof(text), "%s", tn_scope_error(scope));
    tn_scope_close(scope);
    return status;
}

// Computes the sum of the outputs' tangents times the weights. TN_OK, or *out_why is why
// not.
static tn_status tangent_along(const struct rule_derivation *d, const struct array *along,
                               double *out, const char **out_why)
{
    static char text[300];
    tn_array *in[MAX_IN] = {NULL}, *outputs[MAX_OUT], *weights[MAX_OUT], *wrt[MAX_IN],
             *tangents[MAX_IN], *moved[MAX_OUT] = {NULL};
    tn_scope *scope = tn_scope_open(d->pack->maker.runtime);
    uint32_t count = rule_build(scope, d, in, outputs, weights), num_wrt = 0;
    for (uint32_t i = 0; i < d->s->num_inputs; i++)
        if (along[i].tensor.data) {
            wrt[num_wrt] = in[i];
            tangents[num_wrt++] = graph_data(scope, &along[i]);
        }
    tn_status status = tn_jvp(scope, outputs, count, wrt, tangents, num_wrt, moved);
    *out = 0;
    for (uint32_t n = 0, o = 0; n < count && status == TN_OK; n++, o++) {
        struct array tangent;
        while (!d->weights[o].tensor.data)
            o++;
        status = graph_read(scope, moved[n], &tangent);
        if (status != TN_OK)
            break;
        for (int64_t i = 0; i < tangent.count; i++)
            *out += rule_product(array_get_complex(&d->weights[o], i),
                                 array_get_complex(&tangent, i));
        array_free(&tangent);
    }
    if (status != TN_OK)
        *out_why = format_text(text, sizeof(text), "%s", tn_scope_error(scope));
    tn_scope_close(scope);
    return status;
}

// --- checks ----------------------------------------------------------------------------

static const char *input_name(const struct sample *s, uint32_t i)
{
    const tn_primitive *p = s->primitive;
    return p->inputs[i < p->num_inputs ? i : p->num_inputs - 1].name;
}

// Handles a derivative that fails: skips a primitive without a rule, and inputs for which
// the rule says that it has no derivative; other failures fail the check.
static void no_rule(struct rule_derivation *d, bool has_rule, tn_status status,
                    const char *what, const char *why)
{
    if (has_rule && status != TN_ERR_UNSUPPORTED)
        check_fail(d->kit, "%s: %s fails: %s", sample_text(d->s), what, why);
    else
        check_skip(d->kit, "%s", why);
}

// Compares element i of a gradient, `got`, with differences by moves of the input along
// `unit`.
static void rule_derive_check_part(struct rule_derivation *d, uint32_t input,
                                   struct array *along, int64_t i, tn_complex128 unit,
                                   double got)
{
    struct rule_slope want;
    array_set_complex(&along[input], i, unit);
    bool is_smooth = rule_derive_difference(d, along, &want);
    bool differs =
        is_smooth && !rule_derive_agrees(d, got, want) && is_certain(d, along, want);
    array_set(&along[input], i, 0);
    if (!is_smooth)
        return;
    check_case(d->kit);
    if (differs)
        check_fail(
            d->kit,
            "%s: the derivative in %selement %lld of %s is %.9g, by differences %.9g",
            sample_text(d->s), unit.im != 0 ? "the imaginary part of " : "", (long long)i,
            input_name(d->s, input), got, want.value);
}

static void vjp_of_input(struct rule_derivation *d, uint32_t input)
{
    struct array gradient, along[MAX_IN] = {0};
    const char *why = "";
    tn_status status = gradient_of(d, input, &gradient, &why);
    if (status != TN_OK) {
        no_rule(d, d->s->primitive->vjp != NULL, status, "vjp", why);
        return;
    }
    along[input] = array_new(&d->s->types[input], PLAIN, 0);
    int64_t count = gradient.count < MAX_ELEMENTS ? gradient.count : MAX_ELEMENTS;
    for (int64_t n = 0; n < count; n++) {
        int64_t i = count == gradient.count
                        ? n
                        : (int64_t)random_below(d->kit, (uint64_t)gradient.count);
        tn_complex128 got = array_get_complex(&gradient, i);
        rule_derive_check_part(d, input, along, i, (tn_complex128){1, 0}, got.re);
        if (tn_is_complex(d->s->types[input].dtype))
            rule_derive_check_part(d, input, along, i, (tn_complex128){0, 1}, got.im);
    }
    array_free(&gradient);
    array_free(&along[input]);
}

static void vjp_of(struct rule_derivation *d)
{
    for (uint32_t i = 0; i < d->s->num_inputs; i++)
        if (rules_flows(d->s, i))
            vjp_of_input(d, i);
}

// Compares along one random direction of the inputs whose bits are set.
static void jvp_along(struct rule_derivation *d, uint32_t inputs)
{
    struct array along[MAX_IN] = {0};
    double got;
    struct rule_slope want;
    for (uint32_t i = 0; i < d->s->num_inputs; i++)
        if (inputs >> i & 1) {
            along[i] = array_new(&d->s->types[i], PLAIN, 0);
            array_fill(d->kit, &along[i], -1, 1);
        }
    const char *why = "";
    tn_status status = tangent_along(d, along, &got, &why);
    if (status != TN_OK) {
        no_rule(d, d->s->primitive->jvp != NULL, status, "jvp", why);
    } else if (rule_derive_difference(d, along, &want)) {
        check_case(d->kit);
        if (!rule_derive_agrees(d, got, want) && is_certain(d, along, want))
            check_fail(d->kit,
                       "%s: along a direction of %s the derivative is %.9g, by differences "
                       "%.9g",
                       sample_text(d->s),
                       inputs & (inputs - 1) ? "all inputs" : "one input", got, want.value);
    }
    for (uint32_t i = 0; i < d->s->num_inputs; i++)
        array_free(&along[i]);
}

static void jvp_of(struct rule_derivation *d)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < d->s->num_inputs; i++)
        if (rules_flows(d->s, i)) {
            all |= UINT32_C(1) << i;
            jvp_along(d, UINT32_C(1) << i);
        }
    if (all & (all - 1))
        jvp_along(d, all);
}

void rules_derive(struct kit *k, struct pack *pack, const tn_primitive *p,
                  const char *check, uint32_t most, void (*run)(struct rule_derivation *d))
{
    static struct sample samples[MAX_SAMPLES];
    uint32_t tries = 0, all = samples_limit(k, most);
    if (!check_begin(k, check, "%s", p->id))
        return;
    uint32_t count =
        pack->maker.runtime ? samples_make(&pack->maker, p, samples, MAX_SAMPLES) : 0;
    for (uint32_t i = 0; i < count && tries < all; i++) {
        struct rule_derivation d = {.kit = k, .pack = pack, .s = &samples[i]};
        if (!rule_derive_derivation_init(&d))
            continue;
        run(&d);
        derivation_finish(&d);
        tries++;
    }
    if (!pack->maker.runtime)
        check_skip(k, "no backend here computes");
    else if (k->cases == 0)
        check_skip(k, "no application was found that is smooth in f32 or f64");
    check_end(k);
}

void rules_vjp(struct kit *k, struct pack *pack, const tn_primitive *p)
{
    rules_derive(k, pack, p, "rules.vjp", 8, vjp_of);
}

void rules_jvp(struct kit *k, struct pack *pack, const tn_primitive *p)
{
    rules_derive(k, pack, p, "rules.jvp", 8, jvp_of);
}
