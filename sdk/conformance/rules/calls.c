// SPDX-License-Identifier: MIT
// Rules called with NULL cotangents or tangents, which count as zero, and with a builder
// that fails from its n-th call on and returns NULL, which rules must survive.
#include <math.h>
#include "rules.h"

enum { MAX_CALLS = 200, FEW = 3 }; // MAX_CALLS: of a rule's builder; FEW: samples

// An application in a scope of its own, for calling rules directly.
struct conformance_call {
    struct kit *kit;
    struct pack *pack;
    const struct sample *s;
    tn_scope *scope;
    tn_array *in[MAX_IN], *out[MAX_OUT], *cotangents[MAX_OUT], *results[MAX_IN];
    tn_rule rule;
};

typedef tn_status (*rule_call)(struct conformance_call *c, const tn_build *build);

static void call_open(struct conformance_call *c)
{
    c->scope = tn_scope_open(c->pack->maker.runtime);
    graph_inputs(c->scope, c->s, c->in);
    graph_op(c->scope, c->s, c->in, c->out);
    for (uint32_t i = 0; i < c->s->num_outputs; i++)
        if (dtype_derives(c->s->outputs[i].dtype))
            c->cotangents[i] = c->out[i]; // any array of the right type will do
    memset(c->results, 0, sizeof(c->results));
    c->rule = (tn_rule){.struct_size = sizeof(tn_rule),
                        .attrs = c->s->attrs,
                        .inputs = c->in,
                        .outputs = c->out,
                        .num_inputs = sample_operands(c->s),
                        .num_outputs = c->s->num_outputs};
    fake_host_reset(&c->pack->host);
}

// --- the rules -------------------------------------------------------------------------

static tn_status call_vjp(struct conformance_call *c, const tn_build *build)
{
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < c->s->num_inputs; i++)
        wanted |= (uint64_t)(c->in[i] && dtype_derives(c->s->types[i].dtype)) << i;
    return c->s->primitive->vjp(build, &c->rule, c->cotangents, &wanted, c->results);
}

static tn_status call_jvp(struct conformance_call *c, const tn_build *build)
{
    tn_array *tangents[MAX_IN] = {NULL};
    for (uint32_t i = 0; i < c->s->num_inputs; i++)
        if (dtype_derives(c->s->types[i].dtype))
            tangents[i] = c->in[i];
    return c->s->primitive->jvp(build, &c->rule, tangents, c->results);
}

// Every input that has an axis is mapped along its first axis.
static tn_status call_vmap(struct conformance_call *c, const tn_build *build)
{
    int32_t axes[MAX_IN], out_axes[MAX_OUT] = {0};
    int64_t size = 1;
    for (uint32_t i = 0; i < c->s->num_inputs; i++) {
        axes[i] = c->in[i] && c->s->types[i].rank > 0 ? 0 : -1;
        size = axes[i] == 0 ? c->s->types[i].extent[0] : size;
    }
    for (uint32_t i = c->s->num_inputs; i < sample_operands(c->s); i++)
        axes[i] = -1; // scalars of runtime attributes
    return c->s->primitive->vmap(build, &c->rule, axes, size, c->results, out_axes);
}

static tn_status call_decompose(struct conformance_call *c, const tn_build *build)
{
    c->rule.outputs = NULL;
    return c->s->primitive->decompose(build, &c->rule, c->results);
}

// --- NULL arguments --------------------------------------------------------------------

// Calls a rule with all cotangents or tangents zero but number `one`: zero as NULL, or as
// arrays of zeros.
typedef tn_status (*partial_call)(struct conformance_call *c, const tn_build *build,
                                  uint32_t one, bool as_null);

static tn_array *rule_calls_zeros_like(tn_scope *scope, const tn_type *type)
{
    struct array zeros = array_new(type, PLAIN, 0);
    tn_array *made = graph_data(scope, &zeros);
    array_free(&zeros);
    return made;
}

static tn_status partial_vjp(struct conformance_call *c, const tn_build *build,
                             uint32_t one, bool as_null)
{
    for (uint32_t i = 0; i < c->s->num_outputs; i++)
        if (c->cotangents[i] && i != one)
            c->cotangents[i] =
                as_null ? NULL : rule_calls_zeros_like(c->scope, &c->s->outputs[i]);
    return call_vjp(c, build);
}

static tn_status partial_jvp(struct conformance_call *c, const tn_build *build,
                             uint32_t one, bool as_null)
{
    tn_array *tangents[MAX_IN] = {NULL};
    for (uint32_t i = 0; i < c->s->num_inputs; i++)
        if (c->in[i] && dtype_derives(c->s->types[i].dtype))
            tangents[i] = i == one  ? c->in[i]
                          : as_null ? NULL
                                    : rule_calls_zeros_like(c->scope, &c->s->types[i]);
    return c->s->primitive->jvp(build, &c->rule, tangents, c->results);
}

// Sums the elements of each result; the sum of a NULL result is 0.
static void rule_calls_sums_of(struct conformance_call *c, partial_call run, uint32_t one,
                               bool as_null, double sums[MAX_IN], const char *what)
{
    call_open(c);
    tn_build build = graph_build(c->scope, c->pack->host.table);
    tn_status status = run(c, &build, one, as_null);
    if (status != TN_OK && status != TN_ERR_UNSUPPORTED)
        check_fail(c->kit, "%s: %s fails with all but number %u %s: %s", sample_text(c->s),
                   what, one, as_null ? "NULL" : "zero",
                   c->pack->host.failures ? c->pack->host.text : tn_scope_error(c->scope));
    for (uint32_t i = 0; i < MAX_IN; i++) {
        struct array got;
        sums[i] = 0;
        if (!c->results[i] || graph_read(c->scope, c->results[i], &got) != TN_OK)
            continue;
        for (int64_t n = 0; n < got.count; n++)
            sums[i] += array_get(&got, n);
        array_free(&got);
    }
    tn_scope_close(c->scope);
}

static void check_one_of(struct conformance_call *c, partial_call run, uint32_t one,
                         const char *what)
{
    double with_null[MAX_IN], with_zeros[MAX_IN];
    rule_calls_sums_of(c, run, one, true, with_null, what);
    rule_calls_sums_of(c, run, one, false, with_zeros, what);
    check_case(c->kit);
    for (uint32_t i = 0; i < MAX_IN; i++)
        if (fabs(with_null[i] - with_zeros[i]) > 2e-2 * (1 + fabs(with_zeros[i])))
            check_fail(c->kit,
                       "%s: %s, given number %u and NULL for the others: result %u sums "
                       "to %g, with zeros to %g",
                       sample_text(c->s), what, one, i, with_null[i], with_zeros[i]);
}

static void check_partial(struct conformance_call *c)
{
    const tn_primitive *p = c->s->primitive;
    for (uint32_t i = 0; p->vjp && c->s->num_outputs > 1 && i < c->s->num_outputs; i++)
        if (dtype_derives(c->s->outputs[i].dtype))
            check_one_of(c, partial_vjp, i, "vjp");
    for (uint32_t i = 0; p->jvp && c->s->num_inputs > 1 && i < c->s->num_inputs; i++)
        if (dtype_derives(c->s->types[i].dtype))
            check_one_of(c, partial_jvp, i, "jvp");
}

// --- a builder that fails --------------------------------------------------------------

struct failing {
    tn_build build; // the first member: rules get its address
    uint64_t calls, fail_at;
};

static bool rule_calls_fails_now(const tn_build *build)
{
    struct failing *f = (struct failing *)(uintptr_t)build;
    if (++f->calls == f->fail_at)
        tn_scope_fail(build->scope, TN_ERR_MEMORY, "out of memory, as planned");
    return f->calls >= f->fail_at;
}

static tn_array *failing_op(const tn_build *build, const char *primitive,
                            const tn_array *const *inputs, uint64_t num_inputs,
                            tn_attr_list attrs)
{
    return rule_calls_fails_now(build)
               ? NULL
               : tn_op(build->scope, primitive, inputs, num_inputs, attrs);
}

static tn_status failing_op_n(const tn_build *build, const char *primitive,
                              const tn_array *const *inputs, uint64_t num_inputs,
                              tn_attr_list attrs, tn_array **outputs, uint64_t num_outputs)
{
    if (rule_calls_fails_now(build))
        return tn_scope_status(build->scope);
    return tn_op_n(build->scope, primitive, inputs, num_inputs, attrs, outputs,
                   num_outputs);
}

static tn_array *failing_expr(const tn_build *build, const char *text,
                              const tn_array *const *inputs, uint64_t num_inputs,
                              tn_attr_list attrs)
{
    return rule_calls_fails_now(build)
               ? NULL
               : tn_expr(build->scope, text, inputs, num_inputs, attrs);
}

static tn_array *failing_scalar(const tn_build *build, tn_dtype dtype, double value)
{
    return rule_calls_fails_now(build) ? NULL : tn_scalar(build->scope, dtype, value);
}

// Calls the rule with a builder that fails at its n-th call, for each n. The rule only has
// to survive.
static void check_failing(struct conformance_call *c, rule_call run)
{
    bool was_met = true;
    for (uint64_t n = 1; n <= MAX_CALLS && was_met; n++) {
        call_open(c);
        struct failing f = {.build = graph_build(c->scope, c->pack->host.table),
                            .fail_at = n};
        f.build.op = failing_op;
        f.build.op_n = failing_op_n;
        f.build.expr = failing_expr;
        f.build.scalar = failing_scalar;
        tn_status status = run(c, &f.build);
        was_met = f.calls >= n;
        check_case(c->kit);
        if (status > 0 || status < TN_ERR_INTERNAL)
            check_fail(c->kit, "%s: a rule returns %d, which is no status",
                       sample_text(c->s), status);
        tn_scope_close(c->scope);
    }
}

static void check_failures(struct conformance_call *c)
{
    const tn_primitive *p = c->s->primitive;
    if (p->vjp)
        check_failing(c, call_vjp);
    if (p->jvp)
        check_failing(c, call_jvp);
    if (p->vmap)
        check_failing(c, call_vmap);
    if (p->decompose)
        check_failing(c, call_decompose);
}

// --- samples ---------------------------------------------------------------------------

static void each_sample(struct kit *k, struct pack *pack, const tn_primitive *p,
                        const char *check, void (*run)(struct conformance_call *c))
{
    static struct sample samples[MAX_SAMPLES];
    if (!check_begin(k, check, "%s", p->id))
        return;
    uint32_t count = pack->maker.runtime ? samples_make(&pack->maker, p, samples, FEW) : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct conformance_call call = {.kit = k, .pack = pack, .s = &samples[i]};
        sample_fill(k, &samples[i]);
        run(&call);
        sample_free(&samples[i]);
    }
    if (count == 0)
        check_skip(k, pack->maker.runtime ? "no application was found"
                                          : "no backend here computes");
    check_end(k);
}

void rules_partial(struct kit *k, struct pack *pack, const tn_primitive *p)
{
    each_sample(k, pack, p, "rules.partial", check_partial);
}

void rules_failure(struct kit *k, struct pack *pack, const tn_primitive *p)
{
    each_sample(k, pack, p, "rules.failure", check_failures);
}
