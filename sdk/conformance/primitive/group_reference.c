// SPDX-License-Identifier: MIT
// References: the definition of a primitive, for any layout and dtype that infer accepts.
#include <stdarg.h>
#include "groups.h"
#include "../pack/pack.h"

enum { POISON = 0xa5 };

// A check of one filled sample whose reference gives `want`.
typedef void (*sample_check)(struct pack *pack, struct kit *k, struct sample *s,
                             const struct array *want);

static tn_status reference_group_run(struct pack *pack, const struct sample *s,
                                     const struct array *in, const struct array *out)
{
    fake_host_reset(&pack->host);
    return apply_reference(&pack->maker, s, in, out);
}

// Runs the reference on copies of the inputs, because it may write to them.
static tn_status run_on_copies(struct pack *pack, struct sample *s, const struct array *out)
{
    struct array copies[MAX_IN] = {0};
    for (uint32_t i = 0; i < s->num_inputs; i++)
        if (s->in[i].tensor.data)
            copies[i] = array_laid_out(&s->in[i], PLAIN);
    tn_status status = reference_group_run(pack, s, copies, out);
    for (uint32_t i = 0; i < s->num_inputs; i++)
        array_free(&copies[i]);
    return status;
}

static void check_reference_sample(struct pack *pack, struct kit *k, struct sample *s,
                                   sample_check check)
{
    struct array want[MAX_OUT];
    sample_fill(k, s);
    outputs_new(s, PLAIN, POISON, want);
    tn_status status = run_on_copies(pack, s, want);
    if (status == TN_OK) {
        check_case(k);
        check(pack, k, s, want);
    } else if (pack->host.failures != 1) {
        check_fail(k, "%s: it returns %d, and recorded %llu messages, expected 1",
                   sample_text(s), status, (unsigned long long)pack->host.failures);
    }
    outputs_free(want);
    sample_free(s);
}

static void check_reference_each(struct pack *pack, struct kit *k, const tn_primitive *p,
                                 const char *name, sample_check check)
{
    static struct sample samples[MAX_SAMPLES];
    if (!check_begin(k, name, "%s", p->id))
        return;
    uint32_t count = samples_make(&pack->maker, p, samples, MAX_SAMPLES);
    for (uint32_t i = 0; i < count; i++)
        check_reference_sample(pack, k, &samples[i], check);
    if (k->cases == 0)
        check_skip(k, "no application was found that it computes");
    check_end(k);
}

// Fails the check: results of two runs differ. Skips it if the primitive has an effect and
// its results need not repeat.
__attribute__((format(printf, 4, 5))) static void check_differs(struct pack *pack,
                                                                struct kit *k,
                                                                const struct sample *s,
                                                                const char *format, ...)
{
    char text[DETAIL_SIZE];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (apply_repeats(&pack->maker, s))
        check_fail(k, "%s: %s", sample_text(s), text);
    else
        check_skip(k, "it has an effect, and gives something else each time");
}

static void check_reference_guards(struct pack *pack, struct kit *k, struct sample *s,
                                   const struct array *want)
{
    static const enum layout_kind kinds[] = {PLAIN, SHIFTED, GAPS, TRANSPOSED};
    (void)want;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct array out[MAX_OUT];
        outputs_new(s, kinds[i], POISON, out);
        reference_group_run(pack, s, s->in, out);
        for (uint32_t o = 0; o < s->num_outputs; o++)
            if (!array_guards_hold(&out[o], POISON))
                check_fail(k, "%s: it writes outside of output %u (layout %s)",
                           sample_text(s), o, layout_names[kinds[i]]);
        outputs_free(out);
    }
}

static void check_reference_complete(struct pack *pack, struct kit *k, struct sample *s,
                                     const struct array *want)
{
    static const unsigned char poisons[] = {0x00, 0xff, 0x3c};
    for (size_t i = 0; i < COUNT(poisons); i++) {
        struct array out[MAX_OUT];
        outputs_new(s, PLAIN, poisons[i], out);
        reference_group_run(pack, s, s->in, out);
        const char *failure = outputs_compare(s, out, want, 0);
        if (failure)
            check_differs(pack, k, s,
                          "it leaves elements unwritten, or reads what was in its "
                          "outputs: %s",
                          failure);
        outputs_free(out);
    }
}

static void check_reference_repeat(struct pack *pack, struct kit *k, struct sample *s,
                                   const struct array *want)
{
    for (int i = 0; i < 3; i++) {
        struct array out[MAX_OUT];
        outputs_new(s, PLAIN, POISON, out);
        reference_group_run(pack, s, s->in, out);
        const char *failure = outputs_compare(s, out, want, 0);
        if (failure)
            check_differs(pack, k, s, "it gives something else the next time: %s", failure);
        outputs_free(out);
    }
}

static void check_reference_inputs(struct pack *pack, struct kit *k, struct sample *s,
                                   const struct array *want)
{
    struct array copies[MAX_IN] = {0}, out[MAX_OUT];
    (void)want;
    for (uint32_t i = 0; i < s->num_inputs; i++)
        copies[i] = array_laid_out(&s->in[i], GAPS);
    struct array kept[MAX_IN] = {0};
    for (uint32_t i = 0; i < s->num_inputs; i++)
        kept[i] = array_laid_out(&copies[i], GAPS);
    outputs_new(s, PLAIN, POISON, out);
    reference_group_run(pack, s, copies, out);
    for (uint32_t i = 0; i < s->num_inputs; i++)
        if (copies[i].size && memcmp(copies[i].memory, kept[i].memory, kept[i].size) != 0)
            check_fail(k, "%s: it writes to input %u", sample_text(s), i);
    outputs_free(out);
    for (uint32_t i = 0; i < s->num_inputs; i++) {
        array_free(&copies[i]);
        array_free(&kept[i]);
    }
}

// The same inputs in any layout must give the same outputs.
static void check_reference_layouts(struct pack *pack, struct kit *k, struct sample *s,
                                    const struct array *want)
{
    static const enum layout_kind out_kinds[] = {PLAIN, GAPS, TRANSPOSED, REVERSED};
    (void)want;
    for (int kind = SHIFTED; kind < NUM_LAYOUTS; kind++) {
        struct array in[MAX_IN] = {0}, plain[MAX_OUT], out[MAX_OUT];
        enum layout_kind out_kind = out_kinds[kind % COUNT(out_kinds)];
        for (uint32_t i = 0; i < s->num_inputs; i++)
            in[i] = array_laid_out(&s->in[i], (enum layout_kind)kind);
        outputs_new(s, PLAIN, POISON, plain); // computed again: REPEATED changes the inputs
        outputs_new(s, out_kind, POISON, out);
        tn_status first = reference_group_run(pack, s, s->in, plain),
                  second = reference_group_run(pack, s, in, out);
        const char *failure =
            first != second ? "it fails with one of them"
            : first         ? NULL
                    : apply_compare(&pack->maker, s, out, plain, sample_tolerance(s, true));
        if (failure)
            check_differs(pack, k, s, "inputs %s, outputs %s: %s", layout_names[kind],
                          layout_names[out_kind], failure);
        outputs_free(plain);
        outputs_free(out);
        for (uint32_t i = 0; i < s->num_inputs; i++)
            array_free(&in[i]);
    }
}

// --- several meanings ------------------------------------------------------------------

static void compare_meanings(struct pack *pack, struct kit *k, struct sample *s)
{
    static const char *const names[] = {"reference", "expression", "decomposition"};
    struct array want[MAX_OUT], got[MAX_OUT];
    enum meaning first = BY_REFERENCE;
    while (!has_meaning(s->primitive, first))
        first++;
    if (apply_meaning(&pack->maker, s, first, want))
        return;
    for (enum meaning m = first + 1; m <= BY_DECOMPOSE; m++) {
        if (!has_meaning(s->primitive, m))
            continue;
        const char *why = apply_meaning(&pack->maker, s, m, got);
        check_case(k);
        const char *failure =
            why ? why
                : apply_compare(&pack->maker, s, got, want, sample_tolerance(s, true));
        if (failure)
            check_differs(pack, k, s, "its %s and its %s differ: %s", names[m],
                          names[first], failure);
        if (!why)
            outputs_free(got);
    }
    outputs_free(want);
}

static void check_reference_meanings(struct pack *pack, struct kit *k,
                                     const tn_primitive *p)
{
    static struct sample samples[MAX_SAMPLES];
    int meanings = 0;
    for (enum meaning m = BY_REFERENCE; m <= BY_DECOMPOSE; m++)
        meanings += has_meaning(p, m);
    if (meanings < 2 || !check_begin(k, "reference.meanings", "%s", p->id))
        return;
    uint32_t count =
        pack->maker.runtime ? samples_make(&pack->maker, p, samples, MAX_SAMPLES) : 0;
    for (uint32_t i = 0; i < count; i++) {
        sample_fill(k, &samples[i]);
        compare_meanings(pack, k, &samples[i]);
        sample_free(&samples[i]);
    }
    if (k->cases == 0)
        check_skip(k, pack->maker.runtime ? "no application was found that it computes"
                                          : "no backend here computes");
    check_end(k);
}

void group_reference(struct kit *k)
{
    static const struct {
        const char *name;
        sample_check check;
    } checks[] = {
        {"reference.repeat", check_reference_repeat},
        {"reference.complete", check_reference_complete},
        {"reference.guards", check_reference_guards},
        {"reference.inputs", check_reference_inputs},
        {"reference.layouts", check_reference_layouts},
    };
    struct pack pack;
    if (!pack_open(&pack, k))
        return;
    for (uint32_t i = 0; pack.ops && i < pack.ops->num_primitives; i++)
        for (size_t c = 0; c < COUNT(checks) && pack.ops->primitives[i]->reference; c++)
            check_reference_each(&pack, k, pack.ops->primitives[i], checks[c].name,
                                 checks[c].check);
    for (uint32_t i = 0; pack.ops && i < pack.ops->num_primitives; i++)
        check_reference_meanings(&pack, k, pack.ops->primitives[i]);
    pack_close(&pack);
}
