// SPDX-License-Identifier: MIT
// Translates signatures of callbacks ("in f64[m, n] out f64[m] extent m extent n -> void")
// to functions of a manifest, so that callbacks and packs are read by the same code.
#include "signature.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <tenon/types.h>

struct signature_parser {
    const char *text, *at; // the signature, and the next character
    struct problem *problem;
    json_t *inputs, *outputs, *args; // arrays, as in a manifest; owned
    bool has_arrays;
    char token[64]; // of ffi_signature_next()
};

static bool ffi_signature_ok(const struct signature_parser *p)
{
    return p->problem->status == TN_OK;
}

// Records a syntax error at `at`.
static void ffi_signature_wrong(struct signature_parser *p, const char *at,
                                const char *expected)
{
    problem_set(p->problem, TN_ERR_ARGUMENT,
                "signature \"%.120s\", column %zu: got %s%.20s%s, expected %s", p->text,
                (size_t)(at - p->text) + 1, *at ? "'" : "", *at ? at : "the end",
                *at ? "'" : "", expected);
}

// Appends `value` to `list`, and takes `value`. NULL, from an allocation that failed, is
// recorded as TN_ERR_MEMORY.
static void ffi_signature_add(struct signature_parser *p, json_t *list, json_t *value)
{
    if (json_array_append_new(list, value))
        problem_set(p->problem, TN_ERR_MEMORY, "out of memory");
}

static char ffi_signature_skip_spaces(struct signature_parser *p)
{
    while (*p->at == ' ')
        p->at++;
    return *p->at;
}

// Skips spaces and commas. Returns the next character, or 0 at the end.
static char ffi_signature_peek(struct signature_parser *p)
{
    while (*p->at == ' ' || *p->at == ',')
        p->at++;
    return *p->at;
}

// Takes the next word (letters, digits, '_') or "->" to p->token; "" when there is neither.
static const char *ffi_signature_next(struct signature_parser *p)
{
    ffi_signature_peek(p);
    size_t length = strncmp(p->at, "->", 2) == 0 ? 2 : 0;
    while (!length && (isalnum((unsigned char)p->at[length]) || p->at[length] == '_'))
        for (; isalnum((unsigned char)p->at[length]) || p->at[length] == '_';)
            length++;
    if (length >= sizeof(p->token)) {
        ffi_signature_wrong(p, p->at, "a shorter word");
        length = 0;
    }
    memcpy(p->token, p->at, length);
    p->token[length] = 0;
    p->at += length;
    return p->token;
}

static bool is_dtype(const char *word)
{
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++)
        if (strcmp(tn_dtype_name(dtype), word) == 0)
            return tn_dtype_in(dtype, TN_FIRST_DTYPES) != 0;
    return false;
}

// The length of an extent: up to the ',' or ']' that ends it. Commas within parentheses do
// not.
static size_t extent_size(const char *text)
{
    size_t size = 0;
    for (int depth = 0; text[size]; size++) {
        depth += (text[size] == '(') - (text[size] == ')');
        if (text[size] == ']' || (text[size] == ',' && depth <= 0))
            break;
    }
    return size;
}

// "[m, n + 1]" after a dtype, as a manifest's shape: an array of strings.
static json_t *parse_shape(struct signature_parser *p)
{
    json_t *shape = json_array();
    if (ffi_signature_peek(p) != '[') {
        ffi_signature_wrong(p, p->at, "'[' and the extents");
        return shape;
    }
    p->at++;
    bool more = ffi_signature_skip_spaces(p) != ']';
    while (more && ffi_signature_ok(p)) {
        size_t size = extent_size(p->at), length = size;
        while (length && p->at[length - 1] == ' ')
            length--;
        if (!length || !p->at[size])
            ffi_signature_wrong(p, p->at + length, length ? "',' or ']'" : "an extent");
        json_t *extent = json_stringn(p->at, length);
        if (!extent)
            ffi_signature_wrong(p, p->at, "an extent in UTF-8");
        ffi_signature_add(p, shape, extent);
        p->at += size;
        more = *p->at == ',';
        p->at += more;
        ffi_signature_skip_spaces(p);
    }
    if (!ffi_signature_ok(p))
        return shape;
    p->at++;
    p->has_arrays = true;
    return shape;
}

// An array parameter after "in", "out" or "inout": an operand, and the argument that passes
// the operand.
static void ffi_signature_add_array(struct signature_parser *p, const char *way)
{
    char input[16], output[16];
    bool is_in = strcmp(way, "out") != 0, is_out = strcmp(way, "in") != 0;
    const char *start = (ffi_signature_peek(p), p->at), *dtype = ffi_signature_next(p);
    if (!is_dtype(dtype)) {
        ffi_signature_wrong(p, start, "a dtype");
        return;
    }
    json_t *name = json_string(dtype), *shape = parse_shape(p);
    snprintf(input, sizeof(input), "x%zu", json_array_size(p->inputs));
    snprintf(output, sizeof(output), "out%zu", json_array_size(p->outputs));
    if (is_in)
        ffi_signature_add(
            p, p->inputs,
            json_pack("{s:s, s:O, s:O}", "name", input, "dtype", name, "shape", shape));
    if (is_out)
        ffi_signature_add(p, p->outputs,
                          json_pack("{s:s, s:O, s:O, s:s*}", "name", output, "dtype", name,
                                    "shape", shape, "overwrites", is_in ? input : NULL));
    ffi_signature_add(p, p->args,
                      json_pack("{s:s, s:s, s:s*}", "kind", is_out ? "output" : "input",
                                "name", is_out ? output : input, "by",
                                is_out ? NULL : "pointer"));
    json_decref(name);
    json_decref(shape);
}

static void ffi_signature_add_number(struct signature_parser *p, const char *dtype)
{
    char input[16];
    snprintf(input, sizeof(input), "x%zu", json_array_size(p->inputs));
    ffi_signature_add(p, p->inputs, json_pack("{s:s, s:s}", "name", input, "dtype", dtype));
    ffi_signature_add(
        p, p->args,
        json_pack("{s:s, s:s, s:s}", "kind", "input", "name", input, "by", "value"));
}

static void ffi_signature_parse_parameter(struct signature_parser *p)
{
    const char *start = (ffi_signature_peek(p), p->at), *word = ffi_signature_next(p);
    if (strcmp(word, "in") == 0 || strcmp(word, "out") == 0 || strcmp(word, "inout") == 0) {
        char way[8];
        snprintf(way, sizeof(way), "%.7s", word);
        ffi_signature_add_array(p, way);
    } else if (strcmp(word, "extent") == 0) {
        const char *at = (ffi_signature_peek(p), p->at);
        if (!isalpha((unsigned char)*ffi_signature_next(p)) && *p->token != '_')
            ffi_signature_wrong(p, at, "the name of an extent");
        ffi_signature_add(p, p->args,
                          json_pack("{s:s, s:s, s:s}", "kind", "extent", "value", p->token,
                                    "type", "i64"));
    } else if (strcmp(word, "user") == 0) {
        ffi_signature_add(p, p->args, json_pack("{s:s}", "kind", "user"));
    } else if (is_dtype(word)) {
        ffi_signature_add_number(p, word);
    } else {
        ffi_signature_wrong(p, start, "a dtype, in, out, inout, extent, user or ->");
    }
}

// The words behind "->", as a manifest's "returns".
static json_t *parse_result(struct signature_parser *p)
{
    const char *start = (ffi_signature_peek(p), p->at), *word = ffi_signature_next(p);
    if (strcmp(word, "void") == 0)
        return json_pack("{s:s}", "kind", "void");
    if (strcmp(word, "status") == 0)
        return json_pack("{s:s, s:s}", "kind", "status", "type", "i32");
    if (!is_dtype(word) || json_array_size(p->outputs)) {
        ffi_signature_wrong(p, start,
                            json_array_size(p->outputs) ? "void or status"
                                                        : "a dtype, void or status");
        return NULL;
    }
    ffi_signature_add(p, p->outputs,
                      json_pack("{s:s, s:s, s:[]}", "name", "out", "dtype", word, "shape"));
    return json_pack("{s:s, s:s}", "kind", "output", "type", word);
}

// Gives numbers their shape: a batch ("...") when there are no arrays, so that the function
// is elementwise; no axes otherwise.
static void set_shapes(const struct signature_parser *p)
{
    size_t i;
    json_t *operand;
    const char *lead = p->has_arrays ? NULL : "...";
    json_array_foreach(p->inputs, i, operand) if (!json_object_get(operand, "shape"))
        json_object_set_new(operand, "shape", lead ? json_pack("[s]", lead) : json_array());
    if (lead)
        json_array_foreach(p->outputs, i, operand)
            json_object_set_new(operand, "shape", json_pack("[s]", lead));
}

// Renames a single output from "out0" to "out".
static void rename_only(const struct signature_parser *p)
{
    if (json_array_size(p->outputs) != 1)
        return;
    json_object_set_new(json_array_get(p->outputs, 0), "name", json_string("out"));
    size_t i;
    json_t *arg;
    json_array_foreach(
        p->args, i,
        arg) if (strcmp(json_string_value(json_object_get(arg, "kind")), "output") == 0)
        json_object_set_new(arg, "name", json_string("out"));
}

json_t *signature_parse(const char *text, struct problem *problem)
{
    struct signature_parser p = {.text = text,
                                 .at = text,
                                 .problem = problem,
                                 .inputs = json_array(),
                                 .outputs = json_array(),
                                 .args = json_array()};
    json_t *returns = NULL, *function = NULL;
    while (ffi_signature_ok(&p) && ffi_signature_peek(&p) && strncmp(p.at, "->", 2) != 0)
        ffi_signature_parse_parameter(&p);
    if (ffi_signature_ok(&p) && !*ffi_signature_next(&p))
        ffi_signature_wrong(&p, p.at, "->");
    if (ffi_signature_ok(&p))
        returns = parse_result(&p);
    if (ffi_signature_ok(&p) && ffi_signature_peek(&p))
        ffi_signature_wrong(&p, p.at, "the end");
    if (ffi_signature_ok(&p)) {
        set_shapes(&p);
        rename_only(&p);
        function = json_pack("{s:s, s:s, s:O, s:O, s:O, s:O}", "symbol", "the callback",
                             "dtype", "f64", "inputs", p.inputs, "outputs", p.outputs,
                             "args", p.args, "returns", returns);
        if (!function)
            problem_set(problem, TN_ERR_MEMORY, "out of memory");
    }
    json_decref(p.inputs);
    json_decref(p.outputs);
    json_decref(p.args);
    json_decref(returns);
    return function;
}
