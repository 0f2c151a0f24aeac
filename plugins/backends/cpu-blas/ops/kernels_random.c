// SPDX-License-Identifier: MIT
// base.random_{bits,uniform,normal}/1 and random.{bits,random,standard_normal}/1 of u32 and
// f32, bits of u64, too: words of blocks of elements, which become numbers while they are
// in the nearest cache. The numbers are those of the primitives' expressions, to the bit:
// the functions are those that programs call.
#include <tenon/ops/random_attrs.h>
#include "kernels.h"

#define BLOCK 2048 // elements that are in the nearest cache with a second word each
#define PIECE_BLOCKS 4

enum number { BITS, UNIFORM, NORMAL };

struct random {
    const struct cpu_kernels *kernels;
    uint32_t *out;
    uint32_t key[2];
    int64_t n, half; // half: of words in halves, else n
    enum number number;
    bool is_base, is_wide, halves;
};

static void cpu_random_apply(const struct random *r, int32_t op, void *x, int64_t n)
{
    const void *in = x;
    r->kernels->map[TN_F32][op](x, &in, n, 0);
}

// Words become numbers, of the expressions of pack random.
static void convert_words(const struct random *r, uint32_t *words, int64_t n)
{
    const struct cpu_random_kernels *random = r->kernels->random;
    if (r->number == UNIFORM)
        random->unit[r->halves ? CPU_UNIT_32 : CPU_UNIT_23](words, n);
    if (r->number != NORMAL)
        return;
    random->unit[r->halves ? CPU_SIGNED_32 : CPU_SIGNED_23](words, n);
    cpu_random_apply(r, TN_EXPR_ERFINV, words, n);
    random->scale((float *)(void *)words, n, 1.41421356f);
}

// Elements [first, first + n) of pack base's: the words of (low, high) of their numbers.
static void make_base(const struct random *r, struct cpu_counters *c, uint32_t *out,
                      int64_t first, int64_t n)
{
    const struct cpu_random_kernels *random = r->kernels->random;
    uint32_t second[BLOCK];
    c->first[0] = (uint32_t)first;
    c->first[1] = (uint32_t)(first >> 32);
    c->mask[0] = UINT32_MAX;
    random->words[r->number == NORMAL ? CPU_WORDS_BOTH : CPU_WORDS_FIRST](out, second, c,
                                                                          n);
    if (r->number == UNIFORM)
        random->unit[CPU_UNIT_24](out, n);
    if (r->number != NORMAL)
        return;
    random->unit[CPU_UNIT_24_AFTER](out, n);
    cpu_random_apply(r, TN_EXPR_LOG, out, n);
    random->scale((float *)(void *)out, n, -2);
    cpu_random_apply(r, TN_EXPR_SQRT, out, n);
    random->unit[CPU_ANGLE_24](second, n);
    cpu_random_apply(r, TN_EXPR_COS, second, n);
    random->multiply((float *)(void *)out, (const float *)(const void *)second, n);
}

// Elements [first, first + n), and of words in halves their partners, of which an odd
// number of words lacks the last.
static void make_halves(const struct random *r, struct cpu_counters *c, int64_t first,
                        int64_t n)
{
    const struct cpu_random_kernels *random = r->kernels->random;
    uint32_t *out = r->out + first, *partner = r->out + r->half + first;
    bool lacks = r->half + first + n > r->n;
    int64_t pairs = lacks ? n - 1 : n;
    c->first[0] = (uint32_t)first;
    c->first[1] = (uint32_t)(r->half + first);
    c->mask[0] = c->mask[1] = UINT32_MAX;
    random->words[CPU_WORDS_BOTH](out, partner, c, pairs);
    if (lacks) { // the last pair is (half - 1, 0)
        c->first[0] += (uint32_t)pairs;
        c->first[1] = 0;
        random->words[CPU_WORDS_FIRST](out + pairs, NULL, c, 1);
    }
    convert_words(r, out, n);
    convert_words(r, partner, pairs);
}

// Elements [first, first + n) of 64 bits: both words of a pair, the first one above.
static void make_wide(const struct random *r, struct cpu_counters *c, int64_t first,
                      int64_t n)
{
    uint32_t above[BLOCK], below[BLOCK];
    uint64_t *out = (uint64_t *)(void *)r->out + first;
    c->first[0] = (uint32_t)(r->halves ? first : first >> 32);
    c->first[1] = (uint32_t)(r->halves ? first + r->n : first);
    c->mask[0] = r->halves ? UINT32_MAX : 0;
    c->mask[1] = UINT32_MAX;
    r->kernels->random->words[CPU_WORDS_BOTH](above, below, c, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = (uint64_t)above[i] << 32 | below[i];
}

static void make_blocks(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct random *r = context;
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * BLOCK, left = r->half - first;
        int64_t n = left < BLOCK ? left : BLOCK;
        struct cpu_counters c = {.key = {r->key[0], r->key[1]}};
        if (r->is_wide) {
            make_wide(r, &c, first, n);
        } else if (r->is_base) {
            make_base(r, &c, r->out + first, first, n);
        } else if (r->halves) {
            make_halves(r, &c, first, n);
        } else {
            c.first[0] = (uint32_t)(first >> 32);
            c.first[1] = (uint32_t)first;
            c.mask[1] = UINT32_MAX;
            r->kernels->random->words[CPU_WORDS_FOLDED](r->out + first, NULL, &c, n);
            convert_words(r, r->out + first, n);
        }
    }
}

static tn_status cpu_random_run(const tn_cpu_call *call, enum number number, bool is_base)
{
    const tn_tensor *key = &call->inputs[0], *out = &call->outputs[0];
    const uint32_t *words = first_element(key);
    const tn_random_bits_attrs *attrs = call->attrs;
    struct random r = {
        .kernels = kernel_variant(call),
        .out = first_element(out),
        .key = {words[0], words[1]},
        .n = count_elements(&out->layout),
        .number = number,
        .is_base = is_base,
        .is_wide = out->layout.dtype == TN_U64,
        .halves = !is_base && attrs->layout == TN_RANDOM_HALVES,
    };
    r.half = r.halves && !r.is_wide ? r.n / 2 + r.n % 2 : r.n;
    if (r.n > 0)
        call->parallel_for(call, (r.half + BLOCK - 1) / BLOCK, PIECE_BLOCKS, make_blocks,
                           &r);
    return TN_OK;
}

// Between other bounds the decomposition scales numbers between the usual ones.
static int32_t accepts_base(const tn_kernel_query *query)
{
    const tn_random_attrs *attrs = query->attrs;
    return attrs->a == 0 && attrs->b == 1;
}

static const tn_operand_rule rules[] = {
    {TN_DTYPE_BIT(TN_U32), TN_NEEDS_CONTIGUOUS, 0, 0},
    {TN_DTYPE_BIT(TN_U32) | TN_DTYPE_BIT(TN_U64) | TN_DTYPE_BIT(TN_F32),
     TN_NEEDS_CONTIGUOUS, 0, 0},
};

#define RECORD(identifier, name_of, kind, base, ...)                                       \
    static tn_status identifier(const tn_cpu_call *call)                                   \
    {                                                                                      \
        return cpu_random_run(call, kind, base);                                           \
    }                                                                                      \
    static const tn_cpu_kernel identifier##_payload = {                                    \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = identifier,                                                              \
    };                                                                                     \
    const tn_kernel identifier##_kernel = {.struct_size = sizeof(tn_kernel),               \
                                           .primitive = name_of,                           \
                                           .family = TN_FAMILY_CPU,                        \
                                           .name = "blocks",                               \
                                           .priority = 500,                                \
                                           TN_OPERANDS(rules),                             \
                                           .payload = &identifier##_payload,               \
                                           __VA_ARGS__}
RECORD(base_random_bits, "base.random_bits/1", BITS, true, );
RECORD(base_random_uniform, "base.random_uniform/1", UNIFORM, true,
       .accepts = accepts_base);
RECORD(base_random_normal, "base.random_normal/1", NORMAL, true, .accepts = accepts_base);
RECORD(random_bits, "random.bits/1", BITS, false, );
RECORD(random_floats, "random.random/1", UNIFORM, false, );
RECORD(random_normal, "random.standard_normal/1", NORMAL, false, );
#undef RECORD
