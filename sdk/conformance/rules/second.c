// SPDX-License-Identifier: MIT
// Second derivatives compared with differences of gradients: forward over reverse (a
// Hessian times a vector), reverse over reverse, reverse over forward and forward over
// forward, which all are the same number for two directions of the inputs.
//
// The number is u H t, where H has the second derivatives of the sum of all outputs times
// fixed weights, and t and u are random directions of all inputs that derivatives flow
// through. By differences it is how the gradient times u moves along t.
#include <math.h>
#include "rules.h"

enum second_form {
    FORWARD_REVERSE,
    REVERSE_REVERSE,
    REVERSE_FORWARD,
    FORWARD_FORWARD,
    NUM_FORMS
};

static const char *const form_names[NUM_FORMS] = {
    "forward over reverse", "reverse over reverse", "reverse over forward",
    "forward over forward"};

// A graph of which derivatives are taken, in a scope.
struct second_graph {
    tn_scope *scope;
    tn_array *in[MAX_IN], *wrt[MAX_IN], *t[MAX_IN], *u[MAX_IN];
    tn_array *out[MAX_OUT], *weights[MAX_OUT];
    uint32_t num_wrt, num_out;
};

// Directions of the inputs; data NULL: derivatives do not flow through the input.
struct second_directions {
    struct array t[MAX_IN], u[MAX_IN];
};

static void second_open(struct second_graph *a, const struct rule_derivation *d,
                        const struct second_directions *by)
{
    *a = (struct second_graph){.scope = tn_scope_open(d->pack->maker.runtime)};
    a->num_out = rule_build(a->scope, d, a->in, a->out, a->weights);
    for (uint32_t i = 0; i < d->s->num_inputs; i++)
        if (by->t[i].tensor.data) {
            a->wrt[a->num_wrt] = a->in[i];
            a->t[a->num_wrt] = graph_data(a->scope, &by->t[i]);
            a->u[a->num_wrt++] = graph_data(a->scope, &by->u[i]);
        }
}

// Sums the products of elements of `arrays` and `factors`, and the magnitudes of these
// products.
static tn_status second_products(tn_scope *scope, tn_array *const *arrays,
                                 tn_array *const *factors, uint32_t count,
                                 struct rule_slope *sum)
{
    for (uint32_t n = 0; n < count; n++) {
        struct array x, y;
        tn_status status = graph_read(scope, arrays[n], &x);
        if (status != TN_OK)
            return status;
        status = graph_read(scope, factors[n], &y);
        if (status == TN_OK) {
            for (int64_t i = 0; i < x.count; i++) {
                tn_complex128 a = array_get_complex(&x, i), b = array_get_complex(&y, i);
                sum->value += rule_product(b, a);
                sum->noise += hypot(a.re, a.im) * hypot(b.re, b.im);
            }
            array_free(&y);
        }
        array_free(&x);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

// The gradient times u; noise is the sum of magnitudes.
static tn_status rule_second_gradient_along(const struct second_graph *a,
                                            struct rule_slope *out)
{
    tn_array *gradients[MAX_IN] = {NULL};
    *out = (struct rule_slope){0, 0};
    tn_status status =
        tn_vjp(a->scope, a->out, a->weights, a->num_out, a->wrt, a->num_wrt, gradients);
    return status != TN_OK ? status
                           : second_products(a->scope, gradients, a->u, a->num_wrt, out);
}

static tn_status second_along(const struct second_graph *a, enum second_form form,
                              struct rule_slope *out)
{
    tn_array *first[MAX_IN] = {NULL}, *second[MAX_IN] = {NULL};
    bool by_reverse = form == FORWARD_REVERSE || form == REVERSE_REVERSE;
    uint32_t num_first = by_reverse ? a->num_wrt : a->num_out;
    tn_status status =
        by_reverse
            ? tn_vjp(a->scope, a->out, a->weights, a->num_out, a->wrt, a->num_wrt, first)
            : tn_jvp(a->scope, a->out, a->num_out, a->wrt, a->t, a->num_wrt, first);
    *out = (struct rule_slope){0, 0};
    if (status != TN_OK)
        return status;
    if (form == FORWARD_REVERSE || form == FORWARD_FORWARD) {
        status = tn_jvp(a->scope, first, num_first, a->wrt, by_reverse ? a->t : a->u,
                        a->num_wrt, second);
        return status != TN_OK
                   ? status
                   : second_products(a->scope, second, by_reverse ? a->u : a->weights,
                                     num_first, out);
    }
    status = tn_vjp(a->scope, first, by_reverse ? a->u : a->weights, num_first, a->wrt,
                    a->num_wrt, second);
    return status != TN_OK ? status
                           : second_products(a->scope, second, by_reverse ? a->t : a->u,
                                             a->num_wrt, out);
}

// --- differences -----------------------------------------------------------------------

static bool moved_gradient(const struct rule_derivation *d,
                           const struct second_directions *by, double step,
                           struct rule_slope *out)
{
    struct sample moved = rule_moved(d, by->t, step);
    struct rule_derivation at = *d;
    struct second_graph a;
    at.s = &moved;
    second_open(&a, &at, by);
    bool is_known = rule_second_gradient_along(&a, out) == TN_OK && isfinite(out->value);
    tn_scope_close(a.scope);
    rule_moved_free(&moved, by->t);
    return is_known;
}

// The least precise dtype that gradients are computed in.
static double second_rounding(const struct sample *s)
{
    double rounding = 0;
    for (uint32_t i = 0; i < s->num_inputs; i++)
        rounding = fmax(rounding, dtype_rounding(s->types[i].dtype));
    for (uint32_t i = 0; i < s->num_outputs; i++)
        rounding = fmax(rounding, dtype_rounding(s->outputs[i].dtype));
    return rounding;
}

static struct rule_slope second_difference_by(const struct rule_derivation *d,
                                              const struct second_directions *by,
                                              double step)
{
    struct rule_slope plus, minus;
    if (!moved_gradient(d, by, step, &plus) || !moved_gradient(d, by, -step, &minus))
        return (struct rule_slope){NAN, 0};
    return (struct rule_slope){(plus.value - minus.value) / (2 * step),
                               8 * second_rounding(d->s) * fmax(plus.noise, minus.noise) /
                                   step};
}

// Whether two slopes agree; the bound includes roundings of sums with many terms.
static bool second_agrees(const struct rule_derivation *d, struct rule_slope got,
                          struct rule_slope want)
{
    return fabs(got.value - want.value) <= d->bound * (1 + fabs(want.value)) + want.noise +
                                               64 * second_rounding(d->s) * got.noise;
}

// Computes the difference by four steps. False: they disagree, so the gradient is not
// smooth.
static bool second_difference(const struct rule_derivation *d,
                              const struct second_directions *by, struct rule_slope *out)
{
    static const double parts[] = {1, 0.31, 0.83};
    *out = second_difference_by(d, by, d->step / 2);
    for (size_t i = 0; i < COUNT(parts); i++) {
        struct rule_slope other = second_difference_by(d, by, parts[i] * d->step);
        if (!(fabs(other.value - out->value) <=
              d->bound / 4 * (1 + fabs(out->value)) + out->noise + other.noise))
            return false;
    }
    return true;
}

// --- the check -------------------------------------------------------------------------

static void second_check(struct rule_derivation *d, const struct second_directions *by,
                         enum second_form form, struct rule_slope want)
{
    struct second_graph a;
    struct rule_slope got;
    second_open(&a, d, by);
    tn_status status = second_along(&a, form, &got);
    if (status == TN_ERR_UNSUPPORTED) {
        check_skip(d->kit, "%s", tn_scope_error(a.scope));
    } else if (status != TN_OK) {
        check_fail(d->kit, "%s: %s fails: %s", sample_text(d->s), form_names[form],
                   tn_scope_error(a.scope));
    } else {
        check_case(d->kit);
        if (!second_agrees(d, got, want))
            check_fail(
                d->kit,
                "%s: the second derivative, %s, is %.9g, by differences of gradients "
                "%.9g",
                sample_text(d->s), form_names[form], got.value, want.value);
    }
    tn_scope_close(a.scope);
}

static void second_of(struct rule_derivation *d)
{
    struct second_directions by = {0};
    struct rule_slope want, gradient;
    struct second_graph a;
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->s->num_inputs; i++)
        if (rules_flows(d->s, i)) {
            by.t[i] = array_new(&d->s->types[i], PLAIN, 0);
            by.u[i] = array_new(&d->s->types[i], PLAIN, 0);
            array_fill(d->kit, &by.t[i], -1, 1);
            array_fill(d->kit, &by.u[i], -1, 1);
            count++;
        }
    second_open(&a, d, &by);
    tn_status status = count ? rule_second_gradient_along(&a, &gradient) : TN_OK;
    if (status != TN_OK) // rules.vjp has the failure
        check_skip(d->kit, "%s", tn_scope_error(a.scope));
    tn_scope_close(a.scope);
    if (count && status == TN_OK && second_difference(d, &by, &want))
        for (enum second_form form = 0; form < NUM_FORMS; form++)
            second_check(d, &by, form, want);
    for (uint32_t i = 0; i < MAX_IN; i++) {
        array_free(&by.t[i]);
        array_free(&by.u[i]);
    }
}

void rules_second(struct kit *k, struct pack *pack, const tn_primitive *p)
{
    rules_derive(k, pack, p, "rules.second", 3, second_of);
}
