// SPDX-License-Identifier: MIT
// Attributes: values that a primitive's attribute table allows survive printing and
// parsing; odd values are refused or computed with.
#include <math.h>
#include <tenon/stats.h>
#include "groups.h"
#include "../pack/pack.h"

// --- printed and parsed ----------------------------------------------------------------

// Prints the value of one field as on the command line. The caller frees the result with
// tn_text_free; *out_value points into it.
static char *field_text(const tn_primitive *p, uint32_t field, const void *attrs,
                        const char **out_value)
{
    tn_attr_table one = p->attrs;
    one.num_fields = 1;
    one.fields = &p->attrs.fields[field];
    char *text = tn_attrs_print(&one, attrs, 1), *equals = text ? strchr(text, '=') : NULL;
    *out_value = equals ? equals + 1 : NULL;
    return text;
}

// Evaluates the sample with its attributes as values or as text. TN_OK: gives `out`; else
// `message` says why.
static tn_status attrs_group_evaluate(struct pack *pack, const struct sample *s,
                                      bool as_text, struct array out[MAX_OUT],
                                      char message[300])
{
    tn_attr items[MAX_FIELDS];
    char *texts[MAX_FIELDS] = {NULL};
    tn_array *in[MAX_IN] = {NULL}, *results[MAX_OUT] = {NULL};
    tn_scope *scope = tn_scope_open(pack->maker.runtime);
    tn_attr_list list = sample_attr_list(s, items);
    for (uint32_t i = 0, n = 0; as_text && i < s->primitive->attrs.num_fields; i++) {
        if (!(s->given >> i & 1))
            continue;
        const char *value;
        texts[i] = field_text(s->primitive, i, s->attrs, &value);
        // a text is printed in quotes, for the command line; given as text it has none
        if (s->primitive->attrs.fields[i].kind != TN_ATTR_STRING &&
            !(s->primitive->attrs.fields[i].flags & TN_ATTR_RUNTIME))
            items[n] =
                (tn_attr){.name = items[n].name, .kind = TN_ATTR_TEXT, .text = value};
        n++;
    }
    tn_op_n(scope, s->primitive->id, (const tn_array *const *)in,
            graph_inputs(scope, s, in), list, results, s->num_outputs);
    tn_status status = graph_read_all(scope, s, results, out);
    format_text(message, 300, "%s", tn_scope_error(scope));
    tn_scope_close(scope);
    for (size_t i = 0; i < MAX_FIELDS; i++)
        tn_text_free(texts[i]);
    return status;
}

static uint64_t plans_made(const struct pack *pack)
{
    tn_stats stats = {.struct_size = sizeof(stats)};
    tn_runtime_stats(pack->maker.runtime, &stats);
    return stats.plans_made;
}

// Whether the same application gives `want` again, which an effect may prevent.
static bool attrs_group_repeats(struct pack *pack, const struct sample *s,
                                const struct array want[MAX_OUT])
{
    struct array again[MAX_OUT];
    char message[300];
    if (!(s->primitive->flags & TN_PRIM_EFFECT))
        return true;
    if (attrs_group_evaluate(pack, s, false, again, message) != TN_OK)
        return false;
    bool is_same = !outputs_compare(s, again, want, 0);
    outputs_free(again);
    return is_same;
}

// Attributes given as text must yield the same plan and the same result.
static void parse_sample(struct kit *k, struct pack *pack, struct sample *s)
{
    struct array want[MAX_OUT], got[MAX_OUT];
    char message[300];
    sample_fill(k, s);
    if (attrs_group_evaluate(pack, s, false, want, message) == TN_OK) {
        uint64_t plans = plans_made(pack);
        check_case(k);
        if (attrs_group_evaluate(pack, s, true, got, message) != TN_OK) {
            check_fail(k, "%s: printed, it cannot be parsed: %s", sample_text(s), message);
        } else {
            const char *failure = attrs_group_repeats(pack, s, want)
                                      ? outputs_compare(s, got, want, 0)
                                      : NULL;
            if (failure || plans_made(pack) != plans)
                check_fail(k, "%s: printed and parsed, it is something else: %s",
                           sample_text(s), failure ? failure : "another plan");
            outputs_free(got);
        }
        outputs_free(want);
    }
    sample_free(s);
}

static void check_attrs_parse(struct kit *k, struct pack *pack, const tn_primitive *p)
{
    static struct sample samples[MAX_SAMPLES];
    if (!check_begin(k, "attrs.parse", "%s", p->id))
        return;
    uint32_t count =
        pack->maker.runtime ? samples_make(&pack->maker, p, samples, MAX_SAMPLES) : 0;
    for (uint32_t i = 0; i < count; i++)
        parse_sample(k, pack, &samples[i]);
    if (k->cases == 0)
        check_skip(k, pack->maker.runtime ? "no application was found that can be computed"
                                          : "no backend here computes");
    check_end(k);
}

// --- extremes --------------------------------------------------------------------------

static const double odd_numbers[] = {0,         -1,       1e300,     -1e300, 0x1p31,
                                     0x1p-1074, INFINITY, -INFINITY, NAN};
static const int64_t odd_integers[] = {0,         -1,        INT64_MAX,       INT64_MIN,
                                       INT32_MAX, INT32_MIN, INT64_C(1) << 40};

// Texts of 0 and many bytes, with characters that are special in format strings, paths and
// terminals.
static char long_text[3000];
static const char *const odd_texts[] = {
    long_text,          "",   "%n%s%d", "../../etc", "\x1b[2J\n\t",
    "\xf0\x9f\xa6\x86", "->", ",,,,",   "((((",      "none"};
static const tn_int_list odd_lists[] = {{0, NULL},
                                        {1, odd_integers},
                                        {1, odd_integers + 1},
                                        {1, odd_integers + 2},
                                        {1, odd_integers + 3},
                                        {COUNT(odd_integers), odd_integers}};
static const tn_float_list odd_float_lists[] = {{0, NULL},
                                                {1, odd_numbers + 8},
                                                {1, odd_numbers + 6},
                                                {COUNT(odd_numbers), odd_numbers}};

// Sets the n-th odd text or list of a field; NULL is one of them where it is allowed.
static bool set_odd_value(const tn_attr_field *field, size_t n, const void **at)
{
    size_t count = field->kind == TN_ATTR_STRING     ? COUNT(odd_texts)
                   : field->kind == TN_ATTR_INT_LIST ? COUNT(odd_lists)
                                                     : COUNT(odd_float_lists);
    memset(long_text, 'a', sizeof(long_text) - 1);
    if (field->kind == TN_ATTR_GRAPH) { // NULL is the only odd value
        *at = NULL;
        return n == 0 && !(field->flags & TN_ATTR_REQUIRED);
    }
    if (n > count || (n == count && field->flags & TN_ATTR_REQUIRED))
        return false;
    *at = n == count                        ? NULL
          : field->kind == TN_ATTR_STRING   ? (const void *)odd_texts[n]
          : field->kind == TN_ATTR_INT_LIST ? (const void *)&odd_lists[n]
                                            : (const void *)&odd_float_lists[n];
    return true;
}

// Sets the n-th odd value of a field. False: there are no more.
static bool set_odd(struct sample *s, const tn_attr_field *field, size_t n)
{
    void *at = (char *)s->attrs + field->offset;
    if (field->flags & TN_ATTR_RUNTIME)
        return false; // infer does not see it
    if (field->kind == TN_ATTR_F64 && n < COUNT(odd_numbers)) {
        *(double *)at = odd_numbers[n];
    } else if ((field->kind == TN_ATTR_I64 || field->kind == TN_ATTR_BITS) &&
               n < COUNT(odd_integers)) {
        *(int64_t *)at = odd_integers[n];
    } else if (field->kind == TN_ATTR_INTS && n < 2 * COUNT(odd_integers)) {
        tn_ints *ints = at; // a list of one, or of TN_MAX_RANK, equal integers
        *ints = (tn_ints){.count = n % 2 ? TN_MAX_RANK : 1, .given = 1};
        for (uint32_t i = 0; i < ints->count; i++)
            ints->value[i] = odd_integers[n / 2];
    } else if (field->kind > TN_ATTR_BITS) {
        return set_odd_value(field, n, at);
    } else {
        return false;
    }
    return true;
}

// True when all outputs together take less than 1 MB, at 8 bytes an element.
static bool attrs_group_is_small(const struct sample *s)
{
    double bytes = 0;
    for (uint32_t o = 0; o < s->num_outputs; o++) {
        double count = 8;
        for (int32_t i = 0; i < s->outputs[o].rank; i++)
            count *= s->outputs[o].extent[i] < 0 ? 1e30 : (double)s->outputs[o].extent[i];
        bytes += count;
    }
    return bytes < 1e6;
}

// False when an integer attribute is large: a reference may loop that often, so it is not
// run.
static bool is_tame(const struct sample *s)
{
    for (uint32_t i = 0; i < s->primitive->attrs.num_fields; i++) {
        const tn_attr_field *field = &s->primitive->attrs.fields[i];
        const int64_t *at = (const void *)((const char *)s->attrs + field->offset);
        if (field->kind == TN_ATTR_I64 && (*at > 10000 || *at < -10000))
            return false;
    }
    return true;
}

static void odd_sample(struct kit *k, struct pack *pack, struct sample *s)
{
    struct array out[MAX_OUT];
    fake_host_reset(&pack->host);
    tn_status status = sample_infer(&pack->maker, s);
    check_case(k);
    if (status > 0 || status < TN_ERR_INTERNAL || (status && pack->host.failures != 1))
        check_fail(k, "%s: infer returns %d, and recorded %llu messages", sample_text(s),
                   status, (unsigned long long)pack->host.failures);
    if (status != TN_OK || !attrs_group_is_small(s) || !is_tame(s) ||
        !s->primitive->reference)
        return;
    sample_fill(k, s);
    outputs_new(s, PLAIN, 0, out);
    apply_reference(&pack->maker, s, s->in, out);
    outputs_free(out);
    sample_free(s);
}

// Sets odd values, one field at a time, in applications that infer accepts.
static void check_attrs_extremes(struct kit *k, struct pack *pack, const tn_primitive *p)
{
    static struct sample samples[4];
    if (!check_begin(k, "attrs.extremes", "%s", p->id))
        return;
    uint32_t count = samples_make(&pack->maker, p, samples, COUNT(samples));
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t f = 0; f < p->attrs.num_fields; f++) {
            struct sample odd = samples[i];
            for (size_t n = 0; set_odd(&odd, &p->attrs.fields[f], n); n++) {
                odd_sample(k, pack, &odd);
                odd = samples[i];
            }
        }
    if (count == 0)
        check_skip(k, "no application was found");
    check_end(k);
}

// --- the dtype of the result ------------------------------------------------------------

static tn_array *graph_cast(tn_scope *scope, const tn_array *x, tn_dtype dtype)
{
    char text[64];
    snprintf(text, sizeof(text), "x -> %s(x)", tn_dtype_name(dtype));
    return x ? tn_expr(scope, text, TN_IN(x), TN_NO_ATTRS) : NULL;
}

// Applies the primitive with the dtype given, or between conversions to it.
static tn_status evaluate_result(struct pack *pack, struct sample *s, uint32_t field,
                                 tn_dtype dtype, bool is_given, struct array out[MAX_OUT])
{
    tn_attr items[MAX_FIELDS];
    tn_array *in[MAX_IN] = {NULL}, *results[MAX_OUT] = {NULL};
    tn_scope *scope = tn_scope_open(pack->maker.runtime);
    uint32_t count = graph_inputs(scope, s, in);
    s->given |= (uint64_t)is_given << field;
    *(int64_t *)sample_field(s, &s->primitive->attrs.fields[field]) = dtype;
    tn_attr_list list = sample_attr_list(s, items);
    s->given &= ~(UINT64_C(1) << field);
    if (!is_given)
        in[0] = graph_cast(scope, in[0], dtype);
    tn_op_n(scope, s->primitive->id, (const tn_array *const *)in, count, list, results,
            s->num_outputs);
    for (uint32_t i = 0; i < s->num_outputs && !is_given; i++) {
        const tn_type *type = results[i] ? tn_array_type(results[i]) : NULL;
        bool is_part = type && tn_is_complex(dtype) && !tn_is_complex(type->dtype);
        results[i] = graph_cast(scope, results[i], is_part ? tn_dtype_real(dtype) : dtype);
    }
    tn_status status = graph_read_all(scope, s, results, out);
    tn_scope_close(scope);
    return status;
}

// Tolerance for two computations in this dtype, by other kernels or in another order.
static double tolerance_in(const struct sample *s, tn_dtype dtype)
{
    struct sample other = *s;
    for (uint32_t i = 0; i < s->num_outputs; i++)
        other.outputs[i].dtype = dtype;
    return sample_tolerance(&other, true);
}

static void result_sample(struct kit *k, struct pack *pack, struct sample *s,
                          uint32_t field)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_I32, TN_U8, TN_COMPLEX64};
    struct array want[MAX_OUT], got[MAX_OUT];
    sample_fill(k, s);
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        bool is_computed = evaluate_result(pack, s, field, dtypes[i], false, want) == TN_OK;
        bool is_given = evaluate_result(pack, s, field, dtypes[i], true, got) == TN_OK;
        const char *dtype = tn_dtype_name(dtypes[i]), *failure = NULL;
        check_case(k);
        if (is_computed != is_given)
            check_fail(k, "%s, %s=%s: %s, and between conversions %s", sample_text(s),
                       s->primitive->attrs.fields[field].name, dtype,
                       is_given ? "is computed" : "fails", is_given ? "fails" : "does not");
        else if (is_given &&
                 (failure = outputs_compare(s, got, want, tolerance_in(s, dtypes[i]))))
            check_fail(k, "%s, %s=%s: differs from what is between conversions: %s",
                       sample_text(s), s->primitive->attrs.fields[field].name, dtype,
                       failure);
        if (is_computed)
            outputs_free(want);
        if (is_given)
            outputs_free(got);
    }
    sample_free(s);
}

static void check_attrs_result(struct kit *k, struct pack *pack, const tn_primitive *p)
{
    static struct sample samples[4];
    uint32_t field = 0;
    while (field < p->attrs.num_fields && !(p->attrs.fields[field].flags & TN_ATTR_RESULT))
        field++;
    if (field == p->attrs.num_fields || !check_begin(k, "attrs.result", "%s", p->id))
        return;
    uint32_t count =
        pack->maker.runtime ? samples_make(&pack->maker, p, samples, COUNT(samples)) : 0;
    for (uint32_t i = 0; i < count; i++)
        result_sample(k, pack, &samples[i], field);
    if (k->cases == 0)
        check_skip(k, pack->maker.runtime ? "no application was found"
                                          : "no backend here computes");
    check_end(k);
}

void group_attrs(struct kit *k)
{
    struct pack pack;
    if (!pack_open(&pack, k))
        return;
    for (uint32_t i = 0; pack.ops && i < pack.ops->num_primitives; i++) {
        const tn_primitive *p = pack.ops->primitives[i];
        if (!p->attrs.num_fields || !sample_fits(p))
            continue;
        check_attrs_parse(k, &pack, p);
        if (p->infer)
            check_attrs_extremes(k, &pack, p);
        check_attrs_result(k, &pack, p);
    }
    pack_close(&pack);
}
