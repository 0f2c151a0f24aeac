// SPDX-License-Identifier: MIT
// Multiples of a number as digits: a rule for each remainder of the digits so far.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../base/fail.h"
#include "schema_number.h"

#define MOST_WIDTH 18   // digits
#define MOST_DECIMAL 15 // digits of a fraction: a double has these
#define MOST_RULES 6000 // of widths and remainders
#define MOST_LISTED 1000
#define MOST_DECIMALS 6

int64_t schema_power(int exponent)
{
    int64_t value = 1;
    while (exponent-- > 0)
        value *= 10;
    return value;
}

int schema_decimals(double value)
{
    for (int decimals = 0; decimals <= 6; decimals++) {
        char text[400];
        snprintf(text, sizeof(text), "%.*f", decimals, value);
        if (strtod(text, NULL) == value)
            return decimals;
    }
    return -1;
}

// Multiples of `step`, in units of 10^-places.
struct multiples {
    struct grammar_builder *b;
    int64_t step;
    int decimals;
    int32_t *rules; // by width and remainder: the rule plus 1; 0: not made yet
};

static grammar_node multiples_digits(struct multiples *m, int64_t low, int64_t high,
                                     int width, int64_t rest);

static grammar_node multiples_digit(struct multiples *m, int64_t digit, int64_t low,
                                    int64_t high, int width, int64_t rest)
{
    const char text[] = {(char)('0' + digit), '\0'};
    return grammar_sequence(m->b,
                            GRAMMAR_NODES(grammar_text(m->b, text),
                                          multiples_digits(m, low, high, width - 1,
                                                           (rest * 10 + digit) % m->step)));
}

// Numbers low .. high of `width` more digits, where the digits so far have remainder
// `rest`.
static grammar_node multiples_expand(struct multiples *m, int64_t low, int64_t high,
                                     int width, int64_t rest)
{
    int64_t unit = schema_power(width - 1), first = low / unit, last = high / unit;
    grammar_node ways[10];
    uint64_t num = 0;
    for (int64_t digit = first; digit <= last; digit++)
        ways[num++] = multiples_digit(m, digit, digit == first ? low % unit : 0,
                                      digit == last ? high % unit : unit - 1, width, rest);
    grammar_node node = grammar_choice(m->b, ways, num);
    if (width == m->decimals)
        node = grammar_sequence(m->b, GRAMMAR_NODES(grammar_text(m->b, "."), node));
    // Zeros at the end of a fraction may be missing, and the point with them.
    bool may_end =
        width <= m->decimals && low == 0 && rest * schema_power(width) % m->step == 0;
    return may_end ? grammar_repeat(m->b, node, 0, 1) : node;
}

static grammar_node multiples_digits(struct multiples *m, int64_t low, int64_t high,
                                     int width, int64_t rest)
{
    if (m->b->status != TN_OK)
        return -1;
    if (width == 0)
        return rest ? grammar_choice(m->b, NULL, 0) : grammar_text(m->b, "");
    if (low != 0 || high != schema_power(width) - 1)
        return multiples_expand(m, low, high, width, rest);
    int32_t *rule = &m->rules[(width - 1) * m->step + rest];
    if (!*rule) {
        grammar_node body = multiples_expand(m, low, high, width, rest);
        int32_t added = grammar_rule_add(m->b, NULL, 0);
        if (added < 0)
            return -1;
        m->b->rules[added].body = body;
        *rule = added + 1;
    }
    return grammar_call(m->b, *rule - 1);
}

// Numbers low .. high, of 0 or more, of up to `most` digits.
static grammar_node multiples_natural(struct multiples *m, int64_t low, int64_t high,
                                      int most)
{
    grammar_node ways[MOST_WIDTH + 1];
    uint64_t num = 0;
    for (int width = m->decimals + 1; width <= most; width++) {
        int64_t least = width > m->decimals + 1 ? schema_power(width - 1) : 0,
                last = schema_power(width) - 1;
        least = low > least ? low : least;
        last = high < last ? high : last;
        if (least <= last)
            ways[num++] = multiples_digits(m, least, last, width, 0);
    }
    return grammar_choice(m->b, ways, num);
}

static grammar_node multiples_signed(struct multiples *m, int64_t low, int64_t high,
                                     int most)
{
    grammar_node ways[2];
    uint64_t num = 0;
    if (high >= 0)
        ways[num++] = multiples_natural(m, low > 0 ? low : 0, high, most);
    if (low < 0)
        ways[num++] = grammar_sequence(
            m->b, GRAMMAR_NODES(grammar_text(m->b, "-"),
                                multiples_natural(m, high < 0 ? -high : 1, -low, most)));
    return grammar_choice(m->b, ways, num);
}

// Lists the multiples one by one, where they are few.
static grammar_node multiples_listed(struct multiples *m, int64_t low, int64_t high)
{
    grammar_node whole = grammar_choice(m->b, NULL, 0);
    int64_t first = low / m->step + (low > 0 && low % m->step > 0);
    for (int64_t i = first; i * m->step <= high; i++) {
        char text[40];
        snprintf(text, sizeof(text), "%.*f", m->decimals,
                 (double)(i * m->step) / (double)schema_power(m->decimals));
        whole = grammar_choice(m->b, GRAMMAR_NODES(whole, grammar_text(m->b, text)));
        whole = grammar_lower(m->b, whole, (uint64_t)(i - first));
    }
    return whole;
}

// A bound in units of 10^-decimals, rounded inwards, and at most `most` in magnitude.
static int64_t schema_multiple_scaled(double value, int decimals, bool is_low, bool is_open,
                                      int64_t most)
{
    double unit = (double)schema_power(decimals);
    if (fabs(value) * unit >= (double)most)
        return value < 0 ? -most : most;
    double exact = schema_decimals(value) <= decimals && schema_decimals(value) >= 0
                       ? nearbyint(value * unit)
                       : value * unit;
    int64_t whole = (int64_t)(is_low ? ceil(exact) : floor(exact));
    if (is_open && (double)whole == exact)
        whole += is_low ? 1 : -1;
    return whole;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static grammar_node multiples_between(struct multiples *m,
                                      const struct schema_bounds *given)
{
    int most = m->step > MOST_RULES ? 0 : (int)(MOST_RULES / m->step);
    int width = m->decimals > 0 ? MOST_DECIMAL : MOST_WIDTH;
    most = most > width ? width : most;
    int64_t all = schema_power(most > m->decimals ? most : width) - 1;
    int64_t low =
                schema_multiple_scaled(given->low, m->decimals, true, given->low_open, all),
            high = schema_multiple_scaled(given->high, m->decimals, false, given->high_open,
                                          all);
    if (low > high)
        return grammar_choice(m->b, NULL, 0);
    if (most > m->decimals) {
        grammar_node node = -1;
        m->rules = calloc((size_t)(most * m->step), sizeof(*m->rules));
        if (m->rules)
            node = multiples_signed(m, low, high, most);
        else
            m->b->status = lm_fail(TN_ERR_MEMORY, "out of memory for a grammar");
        free(m->rules);
        return node;
    }
    return (high - low) / m->step <= MOST_LISTED ? multiples_listed(m, low, high) : -1;
}

grammar_node schema_multiples(struct grammar_builder *b, const json_t *of,
                              const struct schema_bounds *given, bool is_integer,
                              const char *where)
{
    double value = json_number_value(of);
    int decimals = value > 0 && value < 1e12 ? schema_decimals(value) : -1;
    struct multiples m = {.b = b, .decimals = decimals};
    if (decimals < 0 || decimals > MOST_DECIMALS) {
        b->status = lm_fail(TN_ERR_UNSUPPORTED,
                            "schema: %s: got multipleOf %g, expected a number above 0 and "
                            "below 1e12 with at most 6 decimal places",
                            where, value);
        return -1;
    }
    m.step = (int64_t)llround(value * (double)schema_power(decimals));
    if (is_integer) {
        m.step /= common_divisor(m.step, schema_power(decimals));
        m.decimals = 0;
    }
    grammar_node node = multiples_between(&m, given);
    if (node < 0 && b->status == TN_OK)
        b->status = lm_fail(TN_ERR_UNSUPPORTED,
                            "schema: %s: too many multiples of %g: expected a smaller "
                            "multipleOf, or bounds with at most 1000 of them",
                            where, value);
    return node;
}
