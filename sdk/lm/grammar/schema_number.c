// SPDX-License-Identifier: MIT
// Numbers of JSON within bounds, as digits. Integers have at most 18 digits; fractions at
// most 16, and exponents only where there are no bounds.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../base/fail.h"
#include "schema_number.h"

#define MOST_INTEGER INT64_C(999999999999999999)
#define MORE_DIGITS 6

static const struct grammar_range ten[] = {{'0', '9'}};

static grammar_node schema_number_digits(struct grammar_builder *b, uint32_t min,
                                         uint32_t max)
{
    return grammar_repeat(b, grammar_class(b, ten, 1), min, max);
}

static grammar_node schema_number_digit(struct grammar_builder *b, int64_t first,
                                        int64_t last)
{
    const struct grammar_range one = {(uint32_t)('0' + first), (uint32_t)('0' + last)};
    return grammar_class(b, &one, 1);
}

// --- integers --------------------------------------------------------------------------

// Numbers low .. high of `width` digits, zeros in front included.
static grammar_node schema_number_padded(struct grammar_builder *b, int64_t low,
                                         int64_t high, int width)
{
    if (width == 0 || (low == 0 && high == schema_power(width) - 1))
        return schema_number_digits(b, (uint32_t)width, (uint32_t)width);
    int64_t unit = schema_power(width - 1), first = low / unit, last = high / unit;
    if (first == last)
        return grammar_sequence(
            b, GRAMMAR_NODES(schema_number_digit(b, first, first),
                             schema_number_padded(b, low % unit, high % unit, width - 1)));
    grammar_node choices[3];
    uint64_t num = 0;
    choices[num++] = grammar_sequence(
        b, GRAMMAR_NODES(schema_number_digit(b, first, first),
                         schema_number_padded(b, low % unit, unit - 1, width - 1)));
    if (last - first > 1)
        choices[num++] =
            grammar_sequence(b, GRAMMAR_NODES(schema_number_digit(b, first + 1, last - 1),
                                              schema_number_digits(b, (uint32_t)width - 1,
                                                                   (uint32_t)width - 1)));
    choices[num++] = grammar_sequence(
        b, GRAMMAR_NODES(schema_number_digit(b, last, last),
                         schema_number_padded(b, 0, high % unit, width - 1)));
    return grammar_choice(b, choices, num);
}

// Numbers low .. high, both at least 0; no text if low > high.
static grammar_node schema_number_natural(struct grammar_builder *b, int64_t low,
                                          int64_t high)
{
    grammar_node choices[20];
    uint64_t num = 0;
    for (int width = 1; width <= 18; width++) {
        int64_t least = width > 1 ? schema_power(width - 1) : 0,
                most = schema_power(width) - 1;
        least = low > least ? low : least;
        most = high < most ? high : most;
        if (least <= most)
            choices[num++] = schema_number_padded(b, least, most, width);
    }
    return grammar_choice(b, choices, num);
}

static grammar_node schema_number_negative(struct grammar_builder *b, grammar_node number)
{
    return grammar_sequence(b, GRAMMAR_NODES(grammar_text(b, "-"), number));
}

static grammar_node schema_number_integer(struct grammar_builder *b, int64_t low,
                                          int64_t high)
{
    grammar_node choices[2];
    uint64_t num = 0;
    if (high >= 0)
        choices[num++] = schema_number_natural(b, low > 0 ? low : 0, high);
    if (low < 0)
        choices[num++] =
            schema_number_negative(b, schema_number_natural(b, high < 0 ? -high : 1, -low));
    return grammar_choice(b, choices, num);
}

// --- fractions -------------------------------------------------------------------------

// A bound of numbers of 0 or more, in units of 10^-places.
struct schema_number_bound {
    int64_t value;
    bool is_open; // the bound itself is left out
};

// Digits of a fraction of low .. high units of 10^-width; trailing zeros may be missing.
// `is_tight`: only zeros may follow the digits of `high`.
static grammar_node schema_number_fraction(struct grammar_builder *b, int64_t low,
                                           int64_t high, int width, bool is_tight)
{
    if (width == 0)
        return is_tight ? grammar_text(b, "") : schema_number_digits(b, 0, MORE_DIGITS);
    int64_t unit = schema_power(width - 1), first = low / unit, last = high / unit;
    grammar_node choices[3];
    uint64_t num = 0;
    bool is_one = first == last;
    grammar_node rest = schema_number_fraction(
        b, low % unit, is_one ? high % unit : unit - 1, width - 1, is_one && is_tight);
    if (low % unit == 0)
        rest = grammar_repeat(b, rest, 0, 1);
    choices[num++] =
        grammar_sequence(b, GRAMMAR_NODES(schema_number_digit(b, first, first), rest));
    if (last - first > 1)
        choices[num++] = grammar_sequence(
            b,
            GRAMMAR_NODES(schema_number_digit(b, first + 1, last - 1),
                          schema_number_digits(b, 0, (uint32_t)width - 1 + MORE_DIGITS)));
    if (!is_one) {
        rest = grammar_repeat(
            b, schema_number_fraction(b, 0, high % unit, width - 1, is_tight), 0, 1);
        choices[num++] =
            grammar_sequence(b, GRAMMAR_NODES(schema_number_digit(b, last, last), rest));
    }
    return grammar_choice(b, choices, num);
}

// Numbers whose integer part is `whole`, with fractions low .. high, if there are any.
static grammar_node with_fraction(struct grammar_builder *b, int64_t whole, int64_t low,
                                  int64_t high, int decimals, bool is_tight)
{
    grammar_node choices[2];
    uint64_t num = 0;
    if (low == 0 && high >= 0)
        choices[num++] = schema_number_natural(b, whole, whole);
    if (low <= high)
        choices[num++] = grammar_sequence(
            b, GRAMMAR_NODES(schema_number_natural(b, whole, whole), grammar_text(b, "."),
                             schema_number_fraction(b, low, high, decimals, is_tight)));
    return grammar_choice(b, choices, num);
}

static grammar_node schema_number_positive(struct grammar_builder *b,
                                           struct schema_number_bound low,
                                           struct schema_number_bound high, int decimals)
{
    int64_t unit = schema_power(decimals);
    int64_t least = low.value + low.is_open, most = high.value - high.is_open;
    if (least > most)
        return grammar_choice(b, NULL, 0);
    int64_t first = least / unit, last = most / unit;
    if (first == last)
        return with_fraction(b, first, least % unit, most % unit, decimals, !high.is_open);
    grammar_node more =
        grammar_repeat(b,
                       grammar_sequence(b, GRAMMAR_NODES(grammar_text(b, "."),
                                                         schema_number_digits(b, 1, 16))),
                       0, 1);
    return grammar_choice(
        b, GRAMMAR_NODES(
               with_fraction(b, first, least % unit, unit - 1, decimals, false),
               grammar_sequence(
                   b, GRAMMAR_NODES(schema_number_natural(b, first + 1, last - 1), more)),
               with_fraction(b, last, 0, most % unit, decimals, !high.is_open)));
}

static grammar_node schema_number_real(struct grammar_builder *b,
                                       struct schema_number_bound low,
                                       struct schema_number_bound high, int decimals)
{
    const struct schema_number_bound zero = {0, false};
    grammar_node choices[2];
    uint64_t num = 0;
    if (high.value > 0 || (high.value == 0 && !high.is_open))
        choices[num++] =
            schema_number_positive(b, low.value < 0 ? zero : low, high, decimals);
    if (low.value < 0) {
        const struct schema_number_bound from = {-high.value, high.is_open},
                                         to = {-low.value, low.is_open};
        choices[num++] = schema_number_negative(
            b, schema_number_positive(b, high.value > 0 ? zero : from, to, decimals));
    }
    return grammar_choice(b, choices, num);
}

static grammar_node any_number(struct grammar_builder *b)
{
    grammar_node minus = grammar_repeat(b, grammar_text(b, "-"), 0, 1);
    grammar_node part =
        grammar_repeat(b,
                       grammar_sequence(b, GRAMMAR_NODES(grammar_text(b, "."),
                                                         schema_number_digits(b, 1, 16))),
                       0, 1);
    const struct grammar_range e[] = {{'E', 'E'}, {'e', 'e'}},
                               sign[] = {{'+', '+'}, {'-', '-'}};
    grammar_node exponent = grammar_repeat(
        b,
        grammar_sequence(b,
                         GRAMMAR_NODES(grammar_class(b, e, 2),
                                       grammar_repeat(b, grammar_class(b, sign, 2), 0, 1),
                                       schema_number_digits(b, 1, 2))),
        0, 1);
    return grammar_sequence(
        b, GRAMMAR_NODES(minus, schema_number_natural(b, 0, MOST_INTEGER / 1000), part,
                         exponent));
}

// --- bounds ----------------------------------------------------------------------------

static bool schema_number_read_bounds(struct grammar_builder *b, const json_t *schema,
                                      const char *where, struct schema_bounds *out)
{
    static const char *const names[] = {"minimum", "exclusiveMinimum", "maximum",
                                        "exclusiveMaximum"};
    *out = (struct schema_bounds){.low = -INFINITY, .high = INFINITY};
    for (int i = 0; i < 4; i++) {
        const json_t *given = json_object_get(schema, names[i]);
        if (!given)
            continue;
        if (!json_is_number(given)) {
            b->status =
                lm_fail(TN_ERR_REFUSED, "schema: %s: %s is no number", where, names[i]);
            return false;
        }
        double value = json_number_value(given);
        bool is_tighter = i < 2 ? value >= out->low : value <= out->high;
        if (!is_tighter)
            continue;
        *(i < 2 ? &out->low : &out->high) = value;
        *(i < 2 ? &out->low_open : &out->high_open) = i % 2;
    }
    return true;
}

static grammar_node bounded_integer(struct grammar_builder *b,
                                    const struct schema_bounds *given)
{
    double low = ceil(given->low), high = floor(given->high);
    low += given->low_open && low == given->low;
    high -= given->high_open && high == given->high;
    double most = (double)MOST_INTEGER;
    if (low > high || low >= most || high <= -most)
        return grammar_choice(b, NULL, 0);
    return schema_number_integer(b, low <= -most ? -MOST_INTEGER : (int64_t)low,
                                 high >= most ? MOST_INTEGER : (int64_t)high);
}

grammar_node schema_number(struct grammar_builder *b, const json_t *schema, bool is_integer,
                           const char *where)
{
    struct schema_bounds given;
    if (!schema_number_read_bounds(b, schema, where, &given))
        return -1;
    const json_t *multiple = json_object_get(schema, "multipleOf");
    if (multiple)
        return schema_multiples(b, multiple, &given, is_integer, where);
    if (is_integer)
        return bounded_integer(b, &given);
    if (isinf(given.low) && isinf(given.high))
        return any_number(b);
    int low_decimals = isinf(given.low) ? 0 : schema_decimals(given.low);
    int high_decimals = isinf(given.high) ? 0 : schema_decimals(given.high);
    double most = 1e9;
    if (low_decimals < 0 || high_decimals < 0 ||
        (!isinf(given.low) && fabs(given.low) >= most) ||
        (!isinf(given.high) && fabs(given.high) >= most)) {
        b->status = lm_fail(TN_ERR_UNSUPPORTED,
                            "schema: %s: numbers from %g to %g: expected bounds within "
                            "1e9 with at most 6 decimal places",
                            where, given.low, given.high);
        return -1;
    }
    int decimals = (low_decimals > high_decimals ? low_decimals : high_decimals) + 3;
    double unit = (double)schema_power(decimals);
    const struct schema_number_bound low = {(int64_t)llround(fmax(given.low, -most) * unit),
                                            given.low_open},
                                     high = {
                                         (int64_t)llround(fmin(given.high, most) * unit),
                                         given.high_open};
    if (low.value > high.value)
        return grammar_choice(b, NULL, 0);
    return schema_number_real(b, low, high, decimals);
}
