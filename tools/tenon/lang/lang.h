// SPDX-License-Identifier: MIT
// The language of `tenon eval`: expressions over arrays, with every installed operator.
//
//   program  = statement { ";" statement } [";"]
//   statement = [name {"," name} "="] list
//   list     = expr {"," expr}
//   expr     = comparisons | ^ & << >> + - * / // % @ unary(- + ~) **   as in Python
//   postfix  = atom { "[" index {"," index} "]" | ".T" | ".mT" }
//   index    = expr | [expr] ":" [expr] [":" [expr]] | "..."
//   atom     = number ["j"] | name | string | operator "(" arguments ")"
//            | "(" list ")" | "[" list "]"
//   argument = expr | name "=" expr
//
// Nodes are in the order of evaluation, operands before users: evaluation is one loop over
// the nodes, however long the expression is.
#ifndef TOOLS_TENON_LANG_LANG_H
#define TOOLS_TENON_LANG_LANG_H

#include "base/tool.h"

enum lang_kind {
    LANG_INT,
    LANG_UINT, // an integer above INT64_MAX: the bits of value.i
    LANG_FLOAT,
    LANG_IMAGINARY, // 2j
    LANG_BOOL,
    LANG_TEXT, // a string: only as an attribute
    LANG_NAME,
    LANG_APPLY,    // operator `text` to the children; infix ones too
    LANG_NEGATE,   // minus: folded into numbers
    LANG_KEYWORD,  // name = child, inside APPLY
    LANG_INDEX,    // child 0 indexed by the others; of several outputs: one of them
    LANG_PROPERTY, // child 0's property `text`: T, mT
    LANG_SLICE,    // start, stop, step: children, LANG_NONE when left out
    LANG_ELLIPSIS,
    LANG_NONE,
    LANG_LIST,   // [a, b]
    LANG_TUPLE,  // a, b
    LANG_ASSIGN, // names (LANG_NAME children) = last child
};

struct lang_node {
    uint8_t kind;
    uint32_t at;           // byte offset in the source, for messages
    uint32_t text, length; // name, operator or string: bytes of lang_tree.texts
    uint32_t first, count; // children: lang_tree.children[first ..]
    union {
        int64_t i;
        double f;
    } value;
};

// A parsed program.
struct lang_tree {
    const char *source; // borrowed
    struct lang_node *nodes;
    uint32_t *children;
    char *texts; // each ended by NUL
    uint32_t num_nodes, num_children, num_texts;
    uint32_t max_nodes, max_children, max_texts;
};

// Parses `source`; on failure the message points into the text with a caret.
int lang_parse(const char *source, struct lang_tree *out);
void lang_tree_finish(struct lang_tree *tree);

// Records `text` with the source line and a caret at `at`. Returns EXIT_OOPS.
int lang_oops(const char *source, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Names and their arrays.
struct lang_names {
    struct lang_name {
        char *name; // owned
        tn_array *array;
    } * items;
    size_t count;
};
tn_array *lang_names_find(const struct lang_names *names, const char *name);
int lang_names_set(struct lang_names *names, const char *name, tn_array *array);
void lang_names_finish(struct lang_names *names);

// Results of the last statement.
struct lang_results {
    tn_array **items; // owned; the arrays are the scope's
    size_t count;
};

// Builds the program's graph in `scope`. Names that it assigns are added to `names`.
int lang_eval(const struct lang_tree *tree, tn_scope *scope, struct lang_names *names,
              struct lang_results *out);

// The gradients of `result`, or of the sum of its elements. Where the result is of a dtype
// that has none, *needs says what is expected instead; else it is NULL, and the scope has
// the failure.
int lang_gradients(tn_scope *scope, tn_array *result, tn_array *const *wrt, size_t count,
                   tn_array **out, const char **needs);

// Adds names from arguments "name=file.npy", "name=file.safetensors:tensor" and
// "name=literal".
int lang_bind(tn_scope *scope, char *const *items, int count, struct lang_names *names);

#endif // TOOLS_TENON_LANG_LANG_H
