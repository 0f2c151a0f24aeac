// SPDX-License-Identifier: MIT
// Fuses pairs of instructions, such as a * b + c, into one loop. Each operation is still
// rounded on its own, so results do not change.
#include "program_prepare.h"

#include <math.h>

struct fusion_finder {
    struct prepare *p;
    uint8_t uses[TN_EXPR_MAX_INSNS]; // by others than absorbed ones; saturates at 255
    bool uniform[TN_EXPR_MAX_INSNS];
    bool has_absorbed[TN_EXPR_MAX_INSNS];
};

static void count_use(struct fusion_finder *f, uint32_t i)
{
    if (f->uses[i] < UINT8_MAX)
        f->uses[i]++;
}

// Whether the input is equal for all elements, or all of a row, that one pass works on.
static bool is_uniform_input(const struct prepare *p, const tn_layout *layout)
{
    int32_t last = layout->rank - 1;
    if (p->has_rows && layout->extent[last] != 1 && layout->stride[last] == 0)
        return true;
    return prepare_is_uniform(layout);
}

static void init_finder(struct fusion_finder *f)
{
    const tn_expr_program *source = f->p->source;
    for (uint32_t i = 0; i < source->num_insns; i++) {
        const tn_expr_insn *insn = &source->insns[i];
        uint32_t n = tn_expr_operands(insn->op);
        const uint32_t from[3] = {insn->a, insn->b, insn->c};
        f->p->fusions[i] = (struct fusion){
            .op = insn->op, .num_operands = n, .operands = {insn->a, insn->b, insn->c}};
        f->uniform[i] = insn->op == TN_EXPR_CONST || insn->op == TN_EXPR_PARAM || n > 0;
        if (insn->op == TN_EXPR_LOAD)
            f->uniform[i] =
                is_uniform_input(f->p, &tn_step_input(f->p->step, insn->a)->layout);
        for (uint32_t k = 0; k < n; k++) {
            f->uniform[i] &= f->uniform[from[k]];
            count_use(f, from[k]);
        }
        f->uniform[i] |=
            tn_expr_class(insn->op) == TN_EXPR_CLASS_REDUCE || insn->op == TN_EXPR_EXTENT;
    }
    for (uint32_t k = 0; k < source->num_outputs; k++)
        count_use(f, source->outputs[k]);
}

// Whether instruction `i` is an `op` that may be absorbed: used once, not uniform, not
// fused itself.
static bool is_free(const struct fusion_finder *f, uint32_t i, uint32_t op)
{
    return f->p->source->insns[i].op == op && f->uses[i] == 1 && !f->uniform[i] &&
           !f->has_absorbed[i];
}

// Whether instruction `i` is the difference of an element and a value of its row, which
// costs less to compute again than to keep for the row. Any number of instructions may
// absorb it.
static bool is_centred(const struct fusion_finder *f, uint32_t i)
{
    const tn_expr_insn *insn = &f->p->source->insns[i];
    return f->p->has_rows && insn->op == TN_EXPR_SUB && !f->has_absorbed[i] &&
           !f->uniform[insn->a] && f->uniform[insn->b];
}

// Takes `times` uses of `absorbed` into instruction `i`. Without other uses it is not run.
static void cpu_fuse_absorb(struct fusion_finder *f, uint32_t i, uint32_t absorbed,
                            uint8_t times)
{
    if (f->uses[absorbed] < UINT8_MAX)
        f->uses[absorbed] -= times;
    f->p->fusions[absorbed].absorbed = f->uses[absorbed] == 0;
    f->has_absorbed[i] = true;
}

// The operands of a commutative instruction, ordered so that a uniform one comes second.
static void cpu_fuse_ordered(const struct fusion_finder *f, uint32_t i, uint32_t *first,
                             uint32_t *second)
{
    const tn_expr_insn *insn = &f->p->source->insns[i];
    bool swap = f->uniform[insn->a];
    *first = swap ? insn->b : insn->a;
    *second = swap ? insn->a : insn->b;
}

static void cpu_fuse(struct fusion_finder *f, uint32_t i, uint32_t op, uint32_t inner,
                     uint32_t other)
{
    struct fusion *fusion = &f->p->fusions[i];
    uint32_t x, y;
    cpu_fuse_ordered(f, inner, &x, &y);
    *fusion = (struct fusion){.op = op, .num_operands = 3, .operands = {x, y, other}};
    cpu_fuse_absorb(f, i, inner, 1);
}

// Fuses a * b + c * d if both or none of b and d are uniform: only then the loop is fast.
static bool fuse_two_products(struct fusion_finder *f, uint32_t i, uint32_t left,
                              uint32_t right)
{
    uint32_t a, b, c, d;
    if (!is_free(f, left, TN_EXPR_MUL) || !is_free(f, right, TN_EXPR_MUL) || left == right)
        return false;
    cpu_fuse_ordered(f, left, &a, &b);
    cpu_fuse_ordered(f, right, &c, &d);
    if (f->uniform[b] != f->uniform[d])
        return false;
    f->p->fusions[i] = (struct fusion){
        .op = CPU_OP_MUL_ADD_MUL, .num_operands = 4, .operands = {a, b, c, d}};
    cpu_fuse_absorb(f, i, left, 1);
    cpu_fuse_absorb(f, i, right, 1);
    return true;
}

// Makes instruction `i` the operation `op`: that of `inner`, which is used once, extended
// by the operand `other`.
static void cpu_fuse_extend(struct fusion_finder *f, uint32_t i, uint32_t op,
                            uint32_t inner, uint32_t other)
{
    struct fusion *fusion = &f->p->fusions[i];
    *fusion = f->p->fusions[inner];
    fusion->op = op;
    fusion->operands[fusion->num_operands++] = other;
    cpu_fuse_absorb(f, i, inner, 1);
}

// Whether `i` is fused to `op`, used once, and so may be extended by an element.
static bool is_extensible(const struct fusion_finder *f, uint32_t i, uint32_t op)
{
    return f->p->fusions[i].op == op && f->uses[i] == 1 && !f->uniform[i];
}

// Fuses a product of three and a sum; the sets of scalars are those with fast loops.
static bool extend_product(struct fusion_finder *f, uint32_t i, uint32_t inner,
                           uint32_t other)
{
    const uint32_t *operands = f->p->fusions[inner].operands;
    if (f->uniform[other])
        return false;
    if (is_extensible(f, inner, CPU_OP_SUB_MUL_MUL))
        cpu_fuse_extend(f, i, CPU_OP_SUB_MUL_MUL_ADD, inner, other);
    else if (is_extensible(f, inner, CPU_OP_MUL_MUL) && !f->uniform[operands[2]])
        cpu_fuse_extend(f, i, CPU_OP_MUL_MUL_ADD, inner, other);
    else
        return false;
    return true;
}

static bool cpu_fuse_is_number(const struct fusion_finder *f, uint32_t i, double number)
{
    const tn_expr_insn *insn = &f->p->source->insns[i];
    const uint64_t *bits = insn->op == TN_EXPR_CONST   ? &f->p->source->constants[insn->a]
                           : insn->op == TN_EXPR_PARAM ? &f->p->step->params[insn->a]
                                                       : NULL;
    return bits && memcmp(bits, &number, sizeof(number)) == 0;
}

// Whether `i` is a product, used once, of *out_x and `number` (of f32 rounded).
static bool is_multiple(const struct fusion_finder *f, uint32_t i, double number,
                        uint32_t *out_x)
{
    uint32_t factor;
    if (!is_free(f, i, TN_EXPR_MUL))
        return false;
    cpu_fuse_ordered(f, i, out_x, &factor);
    return cpu_fuse_is_number(f, factor, number) ||
           cpu_fuse_is_number(f, factor, (double)(float)number);
}

// Fuses 1 + erf(x).
static bool fuse_one_plus_erf(struct fusion_finder *f, uint32_t i, uint32_t one,
                              uint32_t erf)
{
    if (!cpu_fuse_is_number(f, one, 1) || !is_free(f, erf, TN_EXPR_ERF))
        return false;
    f->p->fusions[i] = (struct fusion){.op = CPU_OP_ONE_PLUS_ERF,
                                       .num_operands = 1,
                                       .operands = {f->p->source->insns[erf].a}};
    cpu_fuse_absorb(f, i, erf, 1);
    return true;
}

// Fuses x / 2 times 1 + erf(x * sqrt(1 / 2)): nn.gelu.
static bool fuse_gelu(struct fusion_finder *f, uint32_t i, uint32_t half, uint32_t sum)
{
    uint32_t x, argument = f->p->fusions[sum].operands[0], same;
    if (!is_extensible(f, sum, CPU_OP_ONE_PLUS_ERF) || !is_multiple(f, half, 0.5, &x) ||
        !is_multiple(f, argument, CPU_SQRT_HALF, &same) || x != same)
        return false;
    f->p->fusions[i] =
        (struct fusion){.op = CPU_OP_GELU, .num_operands = 1, .operands = {x}};
    cpu_fuse_absorb(f, i, half, 1);
    cpu_fuse_absorb(f, i, sum, 1);
    cpu_fuse_absorb(f, i, argument, 1);
    return true;
}

static void fuse_sum(struct fusion_finder *f, uint32_t i, uint32_t a, uint32_t b)
{
    if (fuse_one_plus_erf(f, i, a, b) || fuse_one_plus_erf(f, i, b, a) ||
        fuse_two_products(f, i, a, b))
        return;
    if (is_free(f, a, TN_EXPR_MUL))
        cpu_fuse(f, i, CPU_OP_MUL_ADD, a, b);
    else if (is_free(f, b, TN_EXPR_MUL))
        cpu_fuse(f, i, CPU_OP_MUL_ADD, b, a);
    else if (!extend_product(f, i, a, b))
        extend_product(f, i, b, a);
}

static void fuse_difference(struct fusion_finder *f, uint32_t i, uint32_t a, uint32_t b)
{
    if (is_free(f, a, TN_EXPR_MUL))
        cpu_fuse(f, i, CPU_OP_MUL_SUB, a, b);
    else if (is_free(f, b, TN_EXPR_MUL))
        cpu_fuse(f, i, CPU_OP_SUB_MUL, b, a);
}

// Fuses a sum or difference, `inner`, and its product with `other`.
static bool fuse_sum_times(struct fusion_finder *f, uint32_t i, uint32_t inner,
                           uint32_t other)
{
    const tn_expr_insn *insn = &f->p->source->insns[inner];
    if (is_free(f, inner, TN_EXPR_ADD)) {
        cpu_fuse(f, i, CPU_OP_ADD_MUL, inner, other);
        return true;
    }
    if ((!is_free(f, inner, TN_EXPR_SUB) || f->uniform[insn->a]) &&
        (!is_centred(f, inner) || other == inner))
        return false;
    f->p->fusions[i] = (struct fusion){.op = CPU_OP_SUB_THEN_MUL,
                                       .num_operands = 3,
                                       .operands = {insn->a, insn->b, other}};
    cpu_fuse_absorb(f, i, inner, 1);
    return true;
}

// Fuses a product, `inner`, and its product with `other`.
static bool fuse_product_times(struct fusion_finder *f, uint32_t i, uint32_t inner,
                               uint32_t other)
{
    if (is_free(f, inner, TN_EXPR_MUL)) {
        cpu_fuse(f, i, CPU_OP_MUL_MUL, inner, other);
        return true;
    }
    if (!is_extensible(f, inner, CPU_OP_SUB_THEN_MUL) || f->uniform[other] ||
        !f->uniform[f->p->fusions[inner].operands[1]]) // has no fast loop
        return false;
    cpu_fuse_extend(f, i, CPU_OP_SUB_MUL_MUL, inner, other);
    return true;
}

static void fuse_product(struct fusion_finder *f, uint32_t i, uint32_t a, uint32_t b)
{
    if (!fuse_gelu(f, i, a, b) && !fuse_gelu(f, i, b, a) && !fuse_sum_times(f, i, a, b) &&
        !fuse_sum_times(f, i, b, a) && !fuse_product_times(f, i, a, b))
        fuse_product_times(f, i, b, a);
}

// Fuses a product and the sum over a row of it.
static void fuse_terms(struct fusion_finder *f, uint32_t i, uint32_t product)
{
    const struct fusion terms = f->p->fusions[product];
    uint32_t a = terms.operands[0], b = terms.operands[1];
    if (!is_extensible(f, product, TN_EXPR_MUL) || f->uniform[a] || f->uniform[b])
        return;
    struct fusion *fusion = &f->p->fusions[i];
    *fusion = terms;
    fusion->op = CPU_SUM_PRODUCTS;
    cpu_fuse_absorb(f, i, product, 1);
    if (a != b || !is_centred(f, a))
        return;
    fusion->op = CPU_SUM_SQUARED_DIFFERENCES;
    fusion->operands[0] = f->p->source->insns[a].a;
    fusion->operands[1] = f->p->source->insns[a].b;
    cpu_fuse_absorb(f, i, a, 2);
}

// Fuses min(max(x, lo), hi) of two values that are uniform.
static void fuse_clip(struct fusion_finder *f, uint32_t i, uint32_t inner, uint32_t hi)
{
    const tn_expr_insn *insn = &f->p->source->insns[inner];
    if (is_free(f, inner, TN_EXPR_MAX) && f->uniform[insn->b] && f->uniform[hi])
        cpu_fuse(f, i, CPU_OP_CLIP, inner, hi);
}

// Fuses isnan(x) ? value : x of a value that is uniform: nansum, nan_to_num.
static bool fuse_replacement(struct fusion_finder *f, uint32_t i)
{
    const tn_expr_insn *insn = &f->p->source->insns[i];
    uint32_t test = insn->a, value = insn->b, x = insn->c;
    if (!is_free(f, test, TN_EXPR_ISNAN) || f->p->source->insns[test].a != x ||
        !f->uniform[value])
        return false;
    f->p->fusions[i] = (struct fusion){
        .op = CPU_OP_REPLACE_NAN, .num_operands = 2, .operands = {x, value}};
    cpu_fuse_absorb(f, i, test, 1);
    return true;
}

// The number that a constant or parameter of dtype `dtype` has; NaN of other instructions.
static double cpu_fuse_number(const struct fusion_finder *f, uint32_t i, int32_t dtype)
{
    const tn_expr_insn *insn = &f->p->source->insns[i];
    double number = (double)NAN;
    if (insn->op == TN_EXPR_CONST)
        memcpy(&number, &f->p->source->constants[insn->a], sizeof(number));
    if (insn->op == TN_EXPR_PARAM)
        memcpy(&number, &f->p->step->params[insn->a], sizeof(number));
    return dtype == TN_F32 ? (double)(float)number : number;
}

// Fuses x <= lo ? lo : x >= hi ? hi : x, where lo < hi: then CLIP gives the same bits.
static bool fuse_bounds(struct fusion_finder *f, uint32_t i)
{
    const tn_expr_insn *insns = f->p->source->insns, *outer = &insns[i];
    const tn_expr_insn *below = &insns[outer->a], *inner = &insns[outer->c];
    uint32_t lo = outer->b, x = below->a, hi = inner->b;
    if (below->op != TN_EXPR_LE || below->b != lo ||
        f->p->fusions[outer->c].op != CPU_OP_SELECT_LE || f->uses[outer->c] != 1 ||
        insns[inner->a].op != TN_EXPR_GE || insns[inner->a].a != x ||
        insns[inner->a].b != hi || inner->c != x ||
        !(cpu_fuse_number(f, lo, outer->dtype) < cpu_fuse_number(f, hi, outer->dtype)))
        return false;
    f->p->fusions[i] =
        (struct fusion){.op = CPU_OP_CLIP, .num_operands = 3, .operands = {x, lo, hi}};
    cpu_fuse_absorb(f, i, outer->c, 1);
    return true;
}

// Fuses a choice and its comparison, which costs less to compute again than to keep: any
// number of choices may absorb it.
static void fuse_select(struct fusion_finder *f, uint32_t i)
{
    static const struct {
        uint32_t test, op;
        bool swapped;
    } rows[] = {{TN_EXPR_LT, CPU_OP_SELECT_LT, false},
                {TN_EXPR_GT, CPU_OP_SELECT_LT, true},
                {TN_EXPR_LE, CPU_OP_SELECT_LE, false},
                {TN_EXPR_GE, CPU_OP_SELECT_LE, true}};
    const tn_expr_insn *insns = f->p->source->insns, *insn = &insns[i];
    const tn_expr_insn *test = &insns[insn->a];
    for (uint32_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        if (test->op != rows[k].test || f->uniform[insn->a] ||
            insns[test->a].dtype != insn->dtype)
            continue;
        if (!fuse_bounds(f, i))
            f->p->fusions[i] = (struct fusion){
                .op = rows[k].op,
                .num_operands = 4,
                .operands = {rows[k].swapped ? test->b : test->a,
                             rows[k].swapped ? test->a : test->b, insn->b, insn->c}};
        cpu_fuse_absorb(f, i, insn->a, 1);
    }
}

static void fuse_exponential(struct fusion_finder *f, uint32_t i, uint32_t a)
{
    const tn_expr_insn *insn = &f->p->source->insns[a];
    if (!is_free(f, a, TN_EXPR_SUB))
        return;
    f->p->fusions[i] = (struct fusion){
        .op = CPU_OP_SUB_THEN_EXP, .num_operands = 2, .operands = {insn->a, insn->b}};
    cpu_fuse_absorb(f, i, a, 1);
}

// Replaces x ** 2, x ** 3 and x ** 4 by products, which are much faster; each is rounded,
// so that the last two are within 1.5 units of the last place.
static void fuse_power(struct fusion_finder *f, uint32_t i)
{
    const tn_expr_insn *insn = &f->p->source->insns[i];
    static const uint32_t products[] = {[2] = TN_EXPR_MUL, [3] = CPU_OP_MUL_MUL};
    for (uint32_t n = 2; n < 4; n++) {
        if (!cpu_fuse_is_number(f, insn->b, n))
            continue;
        f->p->fusions[i] = (struct fusion){
            .op = products[n], .num_operands = n, .operands = {insn->a, insn->a, insn->a}};
        for (uint32_t use = 1; use < n; use++)
            count_use(f, insn->a);
    }
    if (cpu_fuse_is_number(f, insn->b, 4))
        f->p->fusions[i] =
            (struct fusion){.op = CPU_OP_FOURTH, .num_operands = 1, .operands = {insn->a}};
}

// Fuses e / (1 + e), where e is min(exp(x), CPU_SIGMOID_MOST): base.sigmoid.
static void fuse_sigmoid(struct fusion_finder *f, uint32_t i, uint32_t e, uint32_t sum)
{
    const tn_expr_insn *insns = f->p->source->insns;
    if (insns[e].op != TN_EXPR_MIN || f->uses[e] != 2 || f->has_absorbed[e] ||
        (!cpu_fuse_is_number(f, insns[e].b, CPU_SIGMOID_MOST) && // of f32 rounded
         !cpu_fuse_is_number(f, insns[e].b, (double)(float)CPU_SIGMOID_MOST)) ||
        !is_free(f, insns[e].a, TN_EXPR_EXP) || !is_free(f, sum, TN_EXPR_ADD) ||
        !cpu_fuse_is_number(f, insns[sum].a, 1) || insns[sum].b != e)
        return;
    f->p->fusions[i] = (struct fusion){
        .op = CPU_OP_SIGMOID, .num_operands = 1, .operands = {insns[insns[e].a].a}};
    cpu_fuse_absorb(f, i, insns[e].a, 1);
    cpu_fuse_absorb(f, i, e, 2);
    cpu_fuse_absorb(f, i, sum, 1);
}

void prepare_fusions(struct prepare *p)
{
    struct fusion_finder f = {.p = p};
    init_finder(&f);
    for (uint32_t i = 0; i < p->source->num_insns; i++) {
        const tn_expr_insn *insn = &p->source->insns[i];
        if (insn->dtype != TN_F32 && insn->dtype != TN_F64)
            continue;
        if (insn->op == TN_EXPR_REDUCE_SUM)
            fuse_terms(&f, i, insn->a);
        if (f.uniform[i])
            continue;
        if (insn->op == TN_EXPR_POW)
            fuse_power(&f, i);
        if (insn->op == TN_EXPR_ADD)
            fuse_sum(&f, i, insn->a, insn->b);
        else if (insn->op == TN_EXPR_SUB)
            fuse_difference(&f, i, insn->a, insn->b);
        else if (insn->op == TN_EXPR_MUL)
            fuse_product(&f, i, insn->a, insn->b);
        else if (insn->op == TN_EXPR_MIN)
            fuse_clip(&f, i, insn->a, insn->b);
        else if (insn->op == TN_EXPR_SELECT && !fuse_replacement(&f, i))
            fuse_select(&f, i);
        else if (insn->op == TN_EXPR_EXP)
            fuse_exponential(&f, i, insn->a);
        else if (insn->op == TN_EXPR_DIV)
            fuse_sigmoid(&f, i, insn->a, insn->b);
    }
}
