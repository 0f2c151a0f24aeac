// SPDX-License-Identifier: MIT
// Literals of numbers. strtod() reads the decimal point of the process's locale, so the
// conversion is our own: exact, in integers, rounded once.
#include "lex.h"

#include <string.h>

// --- natural numbers --------------------------------------------------------------------

enum {
    // Digits that can matter for a double; what follows matters only as not zero.
    MOST_DIGITS = 800,
    LARGEST_EXPONENT = 310,   // 10^310 is infinite
    SMALLEST_EXPONENT = -345, // 10^-345 is zero
    // Words of 10^(MOST_DIGITS + 345), and room for shifts.
    NATURAL_WORDS = 128,
};

// A number of 32-bit words, the low one first; the highest is not zero.
struct natural {
    uint32_t size;
    uint32_t words[NATURAL_WORDS];
};

static void natural_multiply_add(struct natural *n, uint32_t factor, uint32_t addend)
{
    uint64_t carry = addend;
    for (uint32_t i = 0; i < n->size; i++) {
        carry += (uint64_t)n->words[i] * factor;
        n->words[i] = (uint32_t)(carry & UINT32_MAX);
        carry >>= 32;
    }
    if (carry && n->size < NATURAL_WORDS)
        n->words[n->size++] = (uint32_t)carry;
}

static void natural_multiply_power_of_ten(struct natural *n, int exponent)
{
    for (; exponent >= 9; exponent -= 9)
        natural_multiply_add(n, 1000000000, 0);
    for (; exponent > 0; exponent--)
        natural_multiply_add(n, 10, 0);
}

static int natural_bits(const struct natural *n)
{
    int bits = 0;
    for (uint32_t top = n->size ? n->words[n->size - 1] : 0; top; top >>= 1)
        bits++;
    return n->size ? bits + 32 * ((int)n->size - 1) : 0;
}

static void natural_shift(struct natural *n, int bits)
{
    uint32_t words = (uint32_t)bits / 32;
    if (words > 0 && n->size + words <= NATURAL_WORDS) {
        memmove(n->words + words, n->words, n->size * sizeof(n->words[0]));
        memset(n->words, 0, words * sizeof(n->words[0]));
        n->size += words;
    }
    if (bits % 32)
        natural_multiply_add(n, UINT32_C(1) << bits % 32, 0);
}

static int natural_compare(const struct natural *a, const struct natural *b)
{
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    for (uint32_t left = a->size; left > 0; left--)
        if (a->words[left - 1] != b->words[left - 1])
            return a->words[left - 1] < b->words[left - 1] ? -1 : 1;
    return 0;
}

// a -= b, where b <= a.
static void natural_subtract(struct natural *a, const struct natural *b)
{
    int64_t borrow = 0;
    for (uint32_t i = 0; i < a->size; i++) {
        int64_t word = (int64_t)a->words[i] - (i < b->size ? b->words[i] : 0) + borrow;
        borrow = word < 0 ? -1 : 0;
        a->words[i] = (uint32_t)(word & UINT32_MAX);
    }
    while (a->size > 0 && a->words[a->size - 1] == 0)
        a->size--;
}

// --- decimal to double ------------------------------------------------------------------

static double double_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

// The double nearest to a / b, ties to even. Changes both.
static double preprocess_number_divide(struct natural *a, struct natural *b)
{
    int exponent = natural_bits(a) - natural_bits(b);
    natural_shift(exponent > 0 ? b : a, exponent > 0 ? exponent : -exponent);
    if (natural_compare(a, b) < 0) {
        natural_shift(a, 1);
        exponent--;
    }
    // a / b is in [1, 2) and the value 2^exponent times that.
    if (exponent > 1023)
        return double_of_bits(UINT64_C(0x7FF) << 52);
    int bits = exponent < -1022 ? 53 - (-1022 - exponent) : 53;
    if (bits < 0)
        return 0;
    uint64_t mantissa = 0;
    for (int i = 0; i < bits; i++) {
        bool is_one = natural_compare(a, b) >= 0;
        if (is_one)
            natural_subtract(a, b);
        mantissa = mantissa << 1 | is_one;
        natural_shift(a, 1);
    }
    int rest = natural_compare(a, b); // of what is left, with a half
    mantissa += rest > 0 || (rest == 0 && (mantissa & 1));
    // The mantissa's first bit adds one to the exponent of a normal number, and a carry
    // of the rounding another.
    uint64_t biased = exponent < -1022 ? 0 : (uint64_t)(exponent + 1022);
    return double_of_bits((biased << 52) + mantissa);
}

// A decimal number's digits, without leading zeros, and its exponent: 0.d1d2d3... *
// 10^exponent is d1d2d3... * 10^(exponent - count).
struct decimal {
    uint8_t digits[MOST_DIGITS + 1];
    int count, exponent;
};

static void read_decimal(const char *text, size_t size, struct decimal *out)
{
    bool has_point = false, has_more = false;
    size_t i = 0;
    out->count = out->exponent = 0;
    for (; i < size && (text[i] == '.' || (text[i] >= '0' && text[i] <= '9')); i++) {
        if (text[i] == '.') {
            has_point = true;
            continue;
        }
        if (out->count == 0 && text[i] == '0') {
            out->exponent -= has_point;
            continue;
        }
        out->exponent += !has_point;
        if (out->count < MOST_DIGITS)
            out->digits[out->count++] = (uint8_t)(text[i] - '0');
        else
            has_more |= text[i] != '0';
    }
    if (has_more)
        out->digits[out->count++] = 1;
    if (i == size)
        return;
    int exponent = 0; // behind the 'e'
    bool is_negative = text[++i] == '-';
    for (i += text[i] == '-' || text[i] == '+'; i < size; i++)
        exponent = exponent < 100000000 ? exponent * 10 + (text[i] - '0') : exponent;
    out->exponent += is_negative ? -exponent : exponent;
}

double decimal_to_double(const char *text, size_t size)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    struct decimal decimal;
    read_decimal(text, size, &decimal);
    int exponent = decimal.exponent - decimal.count;
    if (decimal.count == 0 || decimal.exponent < SMALLEST_EXPONENT)
        return 0;
    if (decimal.exponent > LARGEST_EXPONENT)
        return double_of_bits(UINT64_C(0x7FF) << 52);
    if (decimal.count <= 15 && exponent >= -22 && exponent <= 22) {
        // Both are exact, so that one rounding is left.
        uint64_t integer = 0;
        for (int i = 0; i < decimal.count; i++)
            integer = integer * 10 + decimal.digits[i];
        return exponent < 0 ? (double)integer / powers[-exponent]
                            : (double)integer * powers[exponent];
    }
    struct natural a = {0}, b = {.size = 1, .words = {1}};
    for (int i = 0; i < decimal.count; i++)
        natural_multiply_add(&a, 10, decimal.digits[i]);
    natural_multiply_power_of_ten(exponent < 0 ? &b : &a,
                                  exponent < 0 ? -exponent : exponent);
    return preprocess_number_divide(&a, &b);
}

// --- literals ---------------------------------------------------------------------------

static const struct suffix {
    char text[3]; // in lower case
    uint8_t kind; // enum token_kind
    uint8_t bits; // of an integer
} suffixes[] = {
    {"", TOKEN_INT, 32},      {"u", TOKEN_UINT, 32},  {"s", TOKEN_INT16, 16},
    {"us", TOKEN_UINT16, 16}, {"l", TOKEN_INT64, 64}, {"ul", TOKEN_UINT64, 64},
    {"", TOKEN_FLOAT, 0},     {"f", TOKEN_FLOAT, 0},  {"hf", TOKEN_FLOAT16, 0},
    {"lf", TOKEN_DOUBLE, 0},
};

static _Noreturn void fail_number(struct compiler *c, const struct lexeme *number,
                                  const char *expected)
{
    compiler_fail(c, &number->at, "'%.*s' is no number: expected %s",
                  (int)(number->size < 60 ? number->size : 60), number->text, expected);
}

static const struct suffix *find_suffix(struct compiler *c, const struct lexeme *number,
                                        size_t from, bool is_integer)
{
    const char *text = number->text + from;
    size_t size = number->size - from;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        const struct suffix *suffix = &suffixes[i];
        if (strlen(suffix->text) == size && (suffix->bits > 0) == is_integer &&
            (size < 1 || (text[0] | 0x20) == suffix->text[0]) &&
            (size < 2 || (text[1] | 0x20) == suffix->text[1]))
            return suffix;
    }
    fail_number(c, number,
                is_integer ? "digits, and a suffix of u, l, ul, s or us, or none; a float "
                             "has a point or an exponent"
                           : "digits, and a suffix of f, hf or lf, or none");
}

static int digit_of(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    character |= 0x20;
    return character >= 'a' && character <= 'f' ? character - 'a' + 10 : 16;
}

static void integer_number(struct compiler *c, const struct lexeme *number,
                           struct glsl_token *out)
{
    const char *text = number->text;
    bool is_hex = number->size > 1 && text[0] == '0' && (text[1] | 0x20) == 'x';
    size_t at = is_hex ? 2 : 0;
    int base = is_hex ? 16 : text[0] == '0' ? 8 : 10;
    int limit = is_hex ? 16 : 10; // so that 08 is a wrong octal number, and not a suffix
    uint64_t value = 0;
    bool is_too_large = false;
    for (; at < number->size && digit_of(text[at]) < limit; at++) {
        uint64_t digit = (uint64_t)digit_of(text[at]);
        if (digit >= (uint64_t)base)
            fail_number(c, number, "octal digits behind the leading 0");
        is_too_large |= value > (UINT64_MAX - digit) / (uint64_t)base;
        if (!is_too_large)
            value = value * (uint64_t)base + digit;
    }
    if (is_hex && at == 2)
        fail_number(c, number, "hexadecimal digits behind 0x");
    const struct suffix *suffix = find_suffix(c, number, at, true);
    if (is_too_large || (suffix->bits < 64 && value >> suffix->bits != 0))
        compiler_fail(
            c, &number->at, "the number %.*s is too large: expected at most %d bits",
            (int)(number->size < 60 ? number->size : 60), number->text, suffix->bits);
    out->kind = suffix->kind;
    out->integer = value;
}

void lexeme_number(struct compiler *c, const struct lexeme *number, struct glsl_token *out)
{
    const char *text = number->text;
    size_t size = number->size, at = 0, points = 0;
    while (at < size && (text[at] == '.' || digit_of(text[at]) < 10))
        points += text[at++] == '.';
    if (points > 1)
        fail_number(c, number, "one point");
    bool has_exponent = at < size && (text[at] | 0x20) == 'e';
    if (points == 0 && !has_exponent) {
        integer_number(c, number, out);
        return;
    }
    if (has_exponent) {
        at++;
        at += at < size && (text[at] == '+' || text[at] == '-');
        size_t first = at;
        while (at < size && digit_of(text[at]) < 10)
            at++;
        if (at == first)
            fail_number(c, number, "digits behind the exponent's e");
    }
    out->kind = find_suffix(c, number, at, false)->kind;
    out->number = decimal_to_double(text, at);
}
