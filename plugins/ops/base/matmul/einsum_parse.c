// SPDX-License-Identifier: MIT
// Reads the equation of einsum: "ij,jk->ik", "...i,i", "ii->i".
#include "einsum.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

struct einsum_reader {
    const tn_host *host;
    const char *text;
    size_t at;
    struct einsum *e;
    int32_t dots; // most axes that "..." stands for
};

// Fails with printf's format, the position from 1 on, and the equation.
__attribute__((format(printf, 3, 4))) static tn_status
einsum_parse_fail_at(const struct einsum_reader *r, size_t at, const char *format, ...)
{
    char why[200];
    va_list list;
    va_start(list, format);
    vsnprintf(why, sizeof(why), format, list);
    va_end(list);
    return r->host->fail(r->host, TN_ERR_ARGUMENT, "equation '%s', column %zu: %s", r->text,
                         at + 1, why);
}

static void einsum_parse_skip_spaces(struct einsum_reader *r)
{
    while (r->text[r->at] == ' ')
        r->at++;
}

static int32_t label_of(char letter)
{
    return letter >= 'a' ? 26 + letter - 'a' : letter - 'A';
}

static char einsum_parse_letter_of(int32_t label)
{
    return (char)(label >= 26 ? 'a' + label - 26 : 'A' + label);
}

// One term as it is written: its letters, and the position of "..." among them (-1: none).
struct einsum_parse_written {
    size_t begin;
    int32_t count, dots_at;
    int32_t label[TN_MAX_RANK];
    size_t column[TN_MAX_RANK];
};

static tn_status read_term(struct einsum_reader *r, struct einsum_parse_written *out)
{
    struct einsum_parse_written w = {.begin = r->at, .dots_at = -1};
    for (;; r->at++) {
        einsum_parse_skip_spaces(r);
        char c = r->text[r->at];
        if (c == '.') {
            if (strncmp(r->text + r->at, "...", 3) != 0)
                return einsum_parse_fail_at(r, r->at, "got a lone '.', expected '...'");
            if (w.dots_at >= 0)
                return einsum_parse_fail_at(r, r->at, "'...' stands twice in a term");
            w.dots_at = w.count;
            r->at += 2;
        } else if (isascii((unsigned char)c) && isalpha((unsigned char)c)) {
            if (w.count == TN_MAX_RANK)
                return einsum_parse_fail_at(r, r->at, "a term has more than %d letters",
                                            TN_MAX_RANK);
            w.column[w.count] = r->at;
            w.label[w.count++] = label_of(c);
        } else {
            break;
        }
    }
    *out = w;
    return TN_OK;
}

// Records that an axis with this label has `extent`. False: it has another extent already.
static int note_extent(struct einsum *e, int32_t label, int64_t extent)
{
    int64_t *known = &e->extent[label];
    if (*known < 0 || *known == 1)
        *known = extent;
    return extent == 1 || *known == extent;
}

// Gives the operand's axes their labels. Axes of "..." are numbered from the last one.
static tn_status operand_assign(struct einsum_reader *r,
                                const struct einsum_parse_written *w, uint32_t number,
                                const tn_type *type)
{
    struct einsum_term *term = &r->e->operand[number];
    int32_t dots = type->rank - w->count;
    char text[SHAPE_TEXT];
    if (w->dots_at < 0 ? dots != 0 : dots < 0)
        return einsum_parse_fail_at(r, w->begin,
                                    "operand %u has shape %s, expected %s%d axes", number,
                                    shape_text(type->rank, type->extent, text),
                                    w->dots_at < 0 ? "" : "at least ", w->count);
    r->dots = w->dots_at >= 0 && dots > r->dots ? dots : r->dots;
    term->rank = type->rank;
    for (int32_t i = 0, letter = 0; i < type->rank; i++) {
        int is_dot = w->dots_at >= 0 && i >= w->dots_at && i < w->dots_at + dots;
        int32_t label =
            is_dot ? EINSUM_LETTERS + (w->dots_at + dots - 1 - i) : w->label[letter];
        size_t column = is_dot ? w->begin : w->column[letter];
        letter += !is_dot;
        term->label[i] = label;
        if (note_extent(r->e, label, type->extent[i]))
            continue;
        if (is_dot)
            return einsum_parse_fail_at(
                r, column,
                "axis %d of operand %u, of '...', has extent %" PRId64
                ", which does not broadcast with %" PRId64,
                i, number, type->extent[i], r->e->extent[label]);
        return einsum_parse_fail_at(
            r, column, "'%c' has extent %" PRId64 " in operand %u, expected %" PRId64,
            einsum_parse_letter_of(label), type->extent[i], number, r->e->extent[label]);
    }
    return TN_OK;
}

static void add_label(struct einsum_term *term, int32_t label)
{
    if (term->rank < TN_MAX_RANK)
        term->label[term->rank] = label;
    term->rank++;
}

// Without "->": the axes of "...", and the letters that occur once.
static void imply_output(struct einsum_reader *r)
{
    struct einsum *e = r->e;
    uint32_t count[EINSUM_LABELS] = {0};
    for (uint32_t k = 0; k < e->num_operands; k++)
        for (int32_t i = 0; i < e->operand[k].rank; i++)
            count[e->operand[k].label[i]]++;
    for (int32_t i = r->dots - 1; i >= 0; i--)
        add_label(&e->output, EINSUM_LETTERS + i);
    for (int32_t label = 0; label < EINSUM_LETTERS; label++)
        if (count[label] == 1)
            add_label(&e->output, label);
}

static tn_status read_output(struct einsum_reader *r)
{
    struct einsum_parse_written w;
    struct einsum *e = r->e;
    uint64_t seen = 0;
    tn_status status = read_term(r, &w);
    if (status)
        return status;
    if (w.dots_at < 0 && r->dots > 0)
        return einsum_parse_fail_at(r, w.begin,
                                    "the result lacks the '...' of the operands");
    for (int32_t i = 0; i <= w.count; i++) {
        if (i == w.dots_at)
            for (int32_t k = r->dots - 1; k >= 0; k--)
                add_label(&e->output, EINSUM_LETTERS + k);
        if (i == w.count)
            break;
        if (e->extent[w.label[i]] < 0)
            return einsum_parse_fail_at(r, w.column[i], "no operand has '%c'",
                                        einsum_parse_letter_of(w.label[i]));
        if (seen >> w.label[i] & 1)
            return einsum_parse_fail_at(r, w.column[i], "the result has '%c' twice",
                                        einsum_parse_letter_of(w.label[i]));
        seen |= UINT64_C(1) << w.label[i];
        add_label(&e->output, w.label[i]);
    }
    return TN_OK;
}

static tn_status einsum_parse_read_operands(struct einsum_reader *r, const tn_type *types)
{
    for (uint32_t k = 0;; k++) {
        struct einsum_parse_written w;
        tn_status status = read_term(r, &w);
        if (status)
            return status;
        if (k >= r->e->num_operands)
            return einsum_parse_fail_at(r, w.begin, "got more terms than the %u operands",
                                        r->e->num_operands);
        status = operand_assign(r, &w, k, &types[k]);
        if (status)
            return status;
        if (r->text[r->at] == ',') {
            r->at++;
            continue;
        }
        return k + 1 == r->e->num_operands
                   ? TN_OK
                   : einsum_parse_fail_at(
                         r, r->at, "got %u terms, expected one for each of %u operands",
                         k + 1, r->e->num_operands);
    }
}

tn_status einsum_parse(const tn_host *host, const char *equation, const tn_type *types,
                       uint32_t num_operands, struct einsum *out)
{
    struct einsum_reader r = {.host = host, .text = equation, .e = out};
    *out = (struct einsum){.num_operands = num_operands};
    for (int32_t i = 0; i < EINSUM_LABELS; i++)
        out->extent[i] = -1;
    if (num_operands > EINSUM_OPERANDS)
        return host->fail(host, TN_ERR_ARGUMENT, "got %u operands, expected at most %d",
                          num_operands, EINSUM_OPERANDS);
    tn_status status = einsum_parse_read_operands(&r, types);
    if (status)
        return status;
    if (strncmp(r.text + r.at, "->", 2) == 0) {
        r.at += 2;
        status = read_output(&r);
    } else {
        imply_output(&r);
    }
    if (status)
        return status;
    if (r.text[r.at])
        return einsum_parse_fail_at(
            &r, r.at, "got '%c', expected a letter, '...', ',' or '->'", r.text[r.at]);
    if (out->output.rank > TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "equation '%s': the result has rank %d, expected at most %d",
                          equation, out->output.rank, TN_MAX_RANK);
    return TN_OK;
}
