// SPDX-License-Identifier: MIT
// One reduction: what is accumulated, and how. A kernel of several reductions has this text once for
// each, with other names for `accumulator`, `accumulate` and `neutral`.
//
// OP_x: sum, mean, prod, max, min, argmax, logsumexp. IN, OUT: dtypes. ACC: the type of the
// accumulator's numbers. IS_COMPLEX: they are pairs. IS_FLOAT, of argmax: they may be NaN.
struct accumulator {
    ACC value;
#if defined(OP_argmax)
    uint index;
#elif defined(OP_logsumexp)
    ACC sum; // of exp(x - value)
#endif
};

accumulator combine(accumulator a, accumulator b)
{
#if defined(OP_sum) || defined(OP_mean)
    a.value += b.value;
    return a;
#elif defined(OP_prod) && defined(IS_COMPLEX)
    ACC x = a.value, y = b.value;
    a.value = ACC(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
    return a;
#elif defined(OP_prod)
    a.value *= b.value;
    return a;
#elif defined(OP_max)
    a.value = op_MAX(a.value, b.value);
    return a;
#elif defined(OP_min)
    a.value = op_MIN(a.value, b.value);
    return a;
#elif defined(OP_argmax)
    // The first of equal elements; a NaN is larger than every number.
#ifdef IS_FLOAT
    bool a_nan = is_nan(a.value), b_nan = is_nan(b.value);
    bool b_larger = (b_nan && !a_nan) || (!a_nan && b.value > a.value);
    bool equal = (a_nan && b_nan) || a.value == b.value;
#else
    bool b_larger = b.value > a.value;
    bool equal = a.value == b.value;
#endif
    if (b_larger || (equal && b.index < a.index))
        return b;
    return a;
#else
    if (is_nan(a.value) || is_nan(b.value))
        return accumulator(ACC(not_a_number()), ACC(not_a_number()));
    ACC high = max(a.value, b.value);
    if (is_inf(high)) // the sum is infinite, or has no terms yet
        return accumulator(high, a.value == high && b.value == high ? a.sum + b.sum
                                 : a.value == high                  ? a.sum
                                                                    : b.sum);
    ACC sum = a.sum * op_EXP(a.value - high) + b.sum * op_EXP(b.value - high);
    return accumulator(high, sum);
#endif
}

// Accumulates one element, number `index` of those that are reduced to one.
accumulator accumulate(PASTE(W_, IN) element, uint index)
{
    ACC x = ACC(PASTE(FROM_, IN)(element));
#if defined(OP_argmax)
    return accumulator(x, index);
#elif defined(OP_logsumexp)
    return accumulator(x, ACC(1));
#else
    return accumulator(x);
#endif
}

// The result of a reduction of no elements: the identity. max, min and argmax have none and are
// never dispatched so.
accumulator neutral()
{
#if defined(OP_argmax)
    return accumulator(ACC(0), 0u);
#elif defined(OP_logsumexp)
    return accumulator(ACC(-infinity()), ACC(0));
#elif defined(OP_prod) && defined(IS_COMPLEX)
    return accumulator(ACC(1, 0));
#elif defined(OP_prod)
    return accumulator(ACC(1));
#else
    return accumulator(ACC(0));
#endif
}

// The result of `count` elements, as TO_x gives it.
PASTE(W_, OUT) result_of(accumulator a, uint count)
{
#if defined(OP_argmax)
    return int64_t(a.index);
#elif defined(OP_logsumexp)
    ACC y = is_inf(a.value) ? a.value : a.value + op_LOG(a.sum);
    return PASTE(TO_, OUT)(y);
#elif defined(OP_mean)
    return PASTE(TO_, OUT)(a.value / ACC(count));
#else
    return PASTE(TO_, OUT)(PASTE(C_, OUT)(a.value));
#endif
}
