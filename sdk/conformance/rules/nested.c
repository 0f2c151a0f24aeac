// SPDX-License-Identifier: MIT
// Transforms of transforms compared with a loop: the primitive, its gradient and its
// tangent, each mapped twice, and gradients of a batch that are mapped again. Each slice of
// a result equals the same derivative of that slice alone.
//
// An application has the sample's inputs and, behind them, cotangents of its float outputs
// and tangents of the inputs that derivatives flow through. Each input has an outer and an
// inner batch axis, or one, or none; cotangents and tangents have both in front.
#include <math.h>
#include "rules.h"

enum { OUTER = 2, INNER = 3, MAX_ALL = 2 * MAX_IN + MAX_OUT, TRIES = 4, APART = 32 };

// The function that is applied to a slice.
enum nest_unit { VALUE, GRADIENT, TANGENT, NUM_UNITS };

struct nest {
    struct kit *kit;
    struct pack *pack;
    struct sample *s; // types and attributes of a slice
    uint32_t given;   // number of the sample's inputs
    uint32_t num_all; // number of inputs with cotangents and tangents
    uint32_t num_flowing, num_floats;
    uint32_t flowing[MAX_IN], floats[MAX_OUT]; // inputs and outputs that have derivatives
    tn_type types[MAX_ALL];
    int32_t outer[MAX_ALL], inner[MAX_ALL]; // batch axes; -1: none
    struct array slices[OUTER][INNER][MAX_ALL];
    struct array whole[MAX_ALL];
    enum nest_unit unit;
    char failure[300];
};

static uint32_t nest_results(const struct nest *n, enum nest_unit unit)
{
    return unit == VALUE      ? n->s->num_outputs
           : unit == GRADIENT ? n->num_flowing
                              : n->num_floats;
}

// --- applications ----------------------------------------------------------------------

// Lists the float outputs among `all`.
static void floats_of(const struct nest *n, tn_array *const *all, tn_array **out)
{
    for (uint32_t i = 0; i < n->num_floats; i++)
        out[i] = all[n->floats[i]];
}

static void flowing_of(const struct nest *n, tn_array *const *in, tn_array **out)
{
    for (uint32_t i = 0; i < n->num_flowing; i++)
        out[i] = in[n->flowing[i]];
}

static tn_status nest_apply(tn_scope *scope, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    const struct nest *n = user;
    tn_array *all[MAX_OUT] = {NULL}, *floats[MAX_OUT], *wrt[MAX_IN];
    tn_status status = graph_op(scope, n->s, in, all);
    (void)num_in;
    if (status != TN_OK)
        return status;
    floats_of(n, all, floats);
    flowing_of(n, in, wrt);
    if (n->unit == VALUE)
        memcpy(out, all, num_out * sizeof(*out));
    else if (n->unit == GRADIENT)
        status =
            tn_vjp(scope, floats, in + n->given, n->num_floats, wrt, n->num_flowing, out);
    else
        status = tn_jvp(scope, floats, n->num_floats, wrt, in + n->given + n->num_floats,
                        n->num_flowing, out);
    return status;
}

static tn_status nest_map_inner(tn_scope *scope, tn_array *const *in, uint64_t num_in,
                                tn_array **out, uint64_t num_out, void *user)
{
    const struct nest *n = user;
    return tn_vmap_call(scope, nest_apply, user, in, n->inner, num_in, out, NULL, num_out);
}

// The gradient of a batch; an input that all slices share gets the sum of their gradients.
static tn_status nest_gradient(tn_scope *scope, tn_array *const *in, uint64_t num_in,
                               tn_array **out, uint64_t num_out, void *user)
{
    struct nest values = *(struct nest *)user;
    tn_array *all[MAX_OUT] = {NULL}, *floats[MAX_OUT], *wrt[MAX_IN];
    (void)num_out;
    values.unit = VALUE;
    tn_status status = tn_vmap_call(scope, nest_apply, &values, in, values.inner, num_in,
                                    all, NULL, values.s->num_outputs);
    floats_of(&values, all, floats);
    flowing_of(&values, in, wrt);
    return status != TN_OK ? status
                           : tn_vjp(scope, floats, in + values.given, values.num_floats,
                                    wrt, values.num_flowing, out);
}

// --- evaluating ------------------------------------------------------------------------

static void nest_arrays_free(struct array *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        array_free(&arrays[i]);
}

// Computes `results` of `arrays`, mapped by `outer`; NULL: of one slice. Gives `out` on
// success; else n->failure says why not.
static tn_status nest_evaluate(struct nest *n, const struct array *arrays,
                               tn_function_body body, bool is_mapped, uint32_t num_out,
                               struct array *out)
{
    tn_array *in[MAX_ALL] = {NULL}, *results[MAX_IN] = {NULL};
    tn_scope *scope = tn_scope_open(n->pack->maker.runtime);
    for (uint32_t i = 0; i < n->num_all; i++)
        in[i] = graph_data(scope, &arrays[i]);
    tn_status status = is_mapped ? tn_vmap_call(scope, body, n, in, n->outer, n->num_all,
                                                results, NULL, num_out)
                                 : body(scope, in, n->num_all, results, num_out, n);
    if (status == TN_OK)
        status = tn_eval_n(scope, results, num_out);
    for (uint32_t i = 0; i < num_out && status == TN_OK; i++) {
        status = graph_read(scope, results[i], &out[i]);
        if (status != TN_OK)
            nest_arrays_free(out, i);
    }
    if (status != TN_OK)
        format_text(n->failure, sizeof(n->failure), "%s", tn_scope_error(scope));
    tn_scope_close(scope);
    return status;
}

// --- slices ----------------------------------------------------------------------------

static int32_t draw_axis(struct kit *k, int32_t rank)
{
    return random_below(k, 4) ? (int32_t)random_below(k, (uint64_t)rank + 1) : -1;
}

// Lists cotangents and tangents behind the inputs, and draws batch axes. False: there is no
// room for them, or nothing to map.
static bool nest_list(struct nest *n)
{
    const struct sample *s = n->s;
    bool is_mapped = false;
    n->given = sample_given(s);
    for (uint32_t i = 0; i < s->num_outputs; i++) {
        if (s->outputs[i].rank + 2 > TN_MAX_RANK)
            return false;
        if (dtype_derives(s->outputs[i].dtype))
            n->floats[n->num_floats++] = i;
    }
    for (uint32_t i = 0; i < n->given; i++) {
        if (s->types[i].rank + 2 > TN_MAX_RANK)
            return false;
        n->types[i] = s->types[i];
        n->inner[i] = draw_axis(n->kit, s->types[i].rank);
        n->outer[i] = draw_axis(n->kit, s->types[i].rank + (n->inner[i] >= 0));
        is_mapped |= n->inner[i] >= 0 && n->outer[i] >= 0;
        if (rules_flows(s, i))
            n->flowing[n->num_flowing++] = i;
    }
    if (n->given > 0 && !is_mapped)
        n->inner[0] = n->outer[0] = 0;
    n->num_all = n->given;
    for (uint32_t i = 0; i < n->num_floats; i++)
        n->types[n->num_all++] = s->outputs[n->floats[i]];
    for (uint32_t i = 0; i < n->num_flowing; i++)
        n->types[n->num_all++] = s->types[n->flowing[i]];
    return n->given > 0;
}

// Fills a slice: inputs without an axis equal those of the first slice along it. False: it
// cannot be computed.
static bool nest_fill(struct nest *n, int a, int b)
{
    struct array *slice = n->slices[a][b], out[MAX_OUT];
    struct sample one = *n->s;
    memset(one.in, 0, sizeof(one.in));
    sample_fill(n->kit, &one);
    memcpy(slice, one.in, n->given * sizeof(*slice));
    for (uint32_t i = 0; i < n->given; i++) {
        int from_a = n->outer[i] < 0 ? 0 : a, from_b = n->inner[i] < 0 ? 0 : b;
        if (from_a == a && from_b == b)
            continue;
        array_free(&slice[i]);
        slice[i] = array_laid_out(&n->slices[from_a][from_b][i], PLAIN);
    }
    for (uint32_t i = n->given; i < n->num_all; i++) {
        slice[i] = array_new(&n->types[i], PLAIN, 0);
        array_fill(n->kit, &slice[i], 0.5, 1.5);
    }
    memcpy(one.in, slice, n->given * sizeof(*slice));
    bool is_sound = !apply_definition(&n->pack->maker, &one, out);
    if (is_sound) {
        is_sound =
            apply_is_sound(&n->pack->maker, &one, out, 4 * sample_tolerance(&one, true));
        outputs_free(out);
    }
    nest_arrays_free(one.in + n->given, MAX_IN - n->given); // scalars of runtime attributes
    return is_sound;
}

static bool nest_make(struct nest *n)
{
    if (!nest_list(n))
        return false;
    for (int a = 0; a < OUTER; a++)
        for (int b = 0; b < INNER; b++)
            if (!nest_fill(n, a, b))
                return false;
    for (uint32_t i = 0; i < n->num_all; i++) {
        tn_type part = rules_with_axis(&n->types[i], n->inner[i], INNER);
        tn_type type = rules_with_axis(&part, n->outer[i], OUTER);
        n->whole[i] = array_new(&type, PLAIN, 0);
        for (int a = 0; a < OUTER; a++)
            for (int b = 0; b < INNER; b++) {
                struct array at = rules_slice(&n->whole[i], n->outer[i], a);
                at = rules_slice(&at, n->inner[i], b);
                array_copy(&at, &n->slices[a][b][i]);
            }
    }
    return true;
}

static void nest_free(struct nest *n)
{
    for (int a = 0; a < OUTER; a++)
        for (int b = 0; b < INNER; b++)
            nest_arrays_free(n->slices[a][b], MAX_ALL);
    nest_arrays_free(n->whole, MAX_ALL);
}

// --- comparing -------------------------------------------------------------------------

// The results of each slice by itself.
struct nest_loop {
    struct array out[OUTER][INNER][MAX_IN];
};

static void nest_loop_free(struct nest_loop *loop)
{
    for (int a = 0; a < OUTER; a++)
        for (int b = 0; b < INNER; b++)
            nest_arrays_free(loop->out[a][b], MAX_IN);
}

// Runs the loop and gives its results; frees them on failure.
static tn_status nest_loop_run(struct nest *n, struct array slices[OUTER][INNER][MAX_ALL],
                               struct nest_loop *out)
{
    uint32_t count = nest_results(n, n->unit);
    memset(out, 0, sizeof(*out));
    for (int a = 0; a < OUTER; a++)
        for (int b = 0; b < INNER; b++) {
            tn_status status =
                nest_evaluate(n, slices[a][b], nest_apply, false, count, out->out[a][b]);
            if (status != TN_OK) {
                memset(out->out[a][b], 0, sizeof(out->out[a][b]));
                nest_loop_free(out);
                return status;
            }
        }
    return TN_OK;
}

// Adds up the slices of one batch where `of` is an input that they share.
static void nest_loop_join(const struct nest *n, struct nest_loop *loop)
{
    for (uint32_t r = 0; r < n->num_flowing; r++)
        for (int a = 0; a < OUTER && n->inner[n->flowing[r]] < 0; a++)
            for (int b = 1; b < INNER; b++) {
                struct array *sum = &loop->out[a][0][r], *more = &loop->out[a][b][r];
                for (int64_t i = 0; i < sum->count; i++) {
                    tn_complex128 x = array_get_complex(sum, i);
                    tn_complex128 y = array_get_complex(more, i);
                    array_set_complex(sum, i, (tn_complex128){x.re + y.re, x.im + y.im});
                }
            }
}

// Spread of result `r` of slice (a, b): by how much it moves when its inputs move by a
// rounding.
static void nest_spread(struct nest *n, int a, int b, uint32_t r, const struct array *want,
                        double *spread)
{
    struct array moved[MAX_ALL], out[MAX_IN];
    uint32_t count = nest_results(n, n->unit);
    for (int times = 0; times < 6; times++) {
        memcpy(moved, n->slices[a][b], sizeof(moved));
        for (uint32_t i = 0; i < n->num_all; i++) {
            if (!dtype_derives(n->types[i].dtype))
                continue;
            double unit = dtype_rounding(n->types[i].dtype);
            moved[i] = array_laid_out(&n->slices[a][b][i], PLAIN);
            for (int64_t e = 0; e < moved[i].count; e++) {
                tn_complex128 x = array_get_complex(&moved[i], e);
                x.re *= 1 + unit * (random_below(n->kit, 2) ? 3 : -3);
                x.im *= 1 + unit * (random_below(n->kit, 2) ? 3 : -3);
                array_set_complex(&moved[i], e, x);
            }
        }
        if (nest_evaluate(n, moved, nest_apply, false, count, out) == TN_OK) {
            for (int64_t e = 0; e < want->count; e++) {
                tn_complex128 x = array_get_complex(want, e);
                tn_complex128 y = array_get_complex(&out[r], e);
                double by = hypot(x.re - y.re, x.im - y.im);
                spread[e] = fmax(spread[e], isnan(by) ? INFINITY : APART * by);
            }
            nest_arrays_free(out, count);
        }
        for (uint32_t i = 0; i < n->num_all; i++)
            if (moved[i].memory != n->slices[a][b][i].memory)
                array_free(&moved[i]);
    }
}

// Returns NULL, or how a slice of a result differs.
static const char *nest_differs(struct nest *n, int a, int b, uint32_t r,
                                const struct array *got, const struct array *want,
                                bool joined)
{
    double bound = 4 * sample_tolerance(n->s, true), least = 0;
    if (n->unit != VALUE)
        bound = fmax(bound, 64 * dtype_rounding(array_type(want).dtype));
    // All of a small result may cancel, as the gradient of a norm of one element does.
    for (uint32_t i = 0; i < n->num_all && want->count < 64; i++)
        if (dtype_derives(n->types[i].dtype))
            least = fmax(least, array_largest(&n->slices[a][b][i]));
    const char *failure = array_compare(got, want, bound, least, NULL);
    if (!failure || !dtype_derives(array_type(want).dtype) || got->count != want->count)
        return failure;
    double *spread = calloc((size_t)want->count + 1, sizeof(*spread));
    if (!spread)
        abort();
    for (int other = joined ? 0 : b; other <= (joined ? INNER - 1 : b); other++)
        nest_spread(n, a, other, r, want, spread);
    failure = array_compare(got, want, bound, least, spread);
    free(spread);
    return failure;
}

static const char *nest_text(const struct nest *n)
{
    static char text[160];
    size_t at = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < n->given && at + 12 < sizeof(text); i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d %d", i ? ", " : "",
                               n->inner[i], n->outer[i]);
    return text;
}

// Compares the results of `body`, mapped by the outer axes, with those of the loop.
// `of_batch`: the results are gradients of a batch.
static void nest_compare(struct nest *n, const char *what, tn_function_body body,
                         const struct nest_loop *loop, bool of_batch)
{
    struct array got[MAX_IN];
    uint32_t count = nest_results(n, n->unit);
    if (nest_evaluate(n, n->whole, body, true, count, got) != TN_OK) {
        if (strstr(n->failure, "a batch would have rank"))
            return; // an array within has no room for two more axes
        check_fail(n->kit, "%s, batches on axes %s: %s: %s", sample_text(n->s),
                   nest_text(n), what, n->failure);
        return;
    }
    check_case(n->kit);
    for (uint32_t r = 0; r < count; r++) {
        int32_t axis = of_batch ? n->inner[n->flowing[r]] : 0;
        for (int a = 0; a < OUTER; a++)
            for (int b = 0; b < (axis < 0 ? 1 : INNER); b++) {
                struct array part = rules_slice(&got[r], 0, a);
                struct array one = rules_slice(&part, axis, b);
                const char *failure =
                    nest_differs(n, a, b, r, &one, &loop->out[a][b][r], axis < 0);
                if (failure)
                    check_fail(n->kit,
                               "%s, batches on axes %s: %s: slice %d, %d of result %u: %s",
                               sample_text(n->s), nest_text(n), what, a, b, r, failure);
            }
    }
    nest_arrays_free(got, count);
}

// Checks one unit, if the loop can compute it at all.
static void nest_check(struct nest *n, enum nest_unit unit)
{
    static const char *const names[NUM_UNITS] = {"mapped twice", "gradient, mapped twice",
                                                 "tangent, mapped twice"};
    static struct nest_loop loop;
    n->unit = unit;
    if (nest_results(n, unit) == 0 ||
        (unit != VALUE && (!n->num_flowing || !n->num_floats)))
        return;
    tn_status status = nest_loop_run(n, n->slices, &loop);
    if (status != TN_OK) { // rules.vjp and rules.jvp have the failure
        if (unit == VALUE)
            check_fail(n->kit, "%s: %s", sample_text(n->s), n->failure);
        return;
    }
    nest_compare(n, names[unit], nest_map_inner, &loop, false);
    if (unit == GRADIENT) {
        nest_loop_join(n, &loop);
        nest_compare(n, "gradient of a batch, mapped", nest_gradient, &loop, true);
    }
    nest_loop_free(&loop);
}

void rules_nested(struct kit *k, struct pack *pack, const tn_primitive *p)
{
    static struct sample samples[MAX_SAMPLES];
    static struct nest n;
    if (!check_begin(k, "rules.nested", "%s", p->id))
        return;
    uint32_t count =
        pack->maker.runtime ? samples_make(&pack->maker, p, samples, MAX_SAMPLES) : 0;
    for (uint32_t i = 0, tries = 0; i < count && tries < samples_limit(k, TRIES); i++) {
        struct array out[MAX_OUT];
        n = (struct nest){.kit = k, .pack = pack, .s = &samples[i]};
        if (sample_has_gap(n.s) || !rules_fill(k, pack, n.s, out))
            continue;
        outputs_free(out);
        if (nest_make(&n)) {
            tries++;
            for (enum nest_unit unit = VALUE; unit < NUM_UNITS; unit++)
                nest_check(&n, unit);
        }
        nest_free(&n);
        sample_free(n.s);
    }
    if (!pack->maker.runtime)
        check_skip(k, "no backend here computes");
    else if (k->cases == 0)
        check_skip(k, "no application was found that can be batched twice");
    check_end(k);
}
