// SPDX-License-Identifier: MIT
// Attributes: a plain C struct, and a static table that describes its fields.
//
// From the table the core derives hashing, equality, printing, parsing, serialising and
// the command line's `name=value`; a primitive's author writes the struct and the table
// only.
//
//   typedef struct axpby_attrs { double alpha, beta; } axpby_attrs;
//   static const tn_attr_field axpby_fields[] = {
//       TN_F64_FIELD(axpby_attrs, alpha, 1.0, "factor of x"),
//       TN_F64_FIELD(axpby_attrs, beta, 1.0, "factor of y"),
//   };
//   ... .attrs = TN_ATTR_TABLE(axpby_attrs, axpby_fields) ...       // of the tn_primitive
//
//   const axpby_attrs *attrs = rule->attrs;                         // in a rule or kernel
//
// A primitive applied with tn_attrs("alpha", 4.0) gets a struct in which the core has
// written alpha = 4 and beta = 1. It lives as long as the node, and rules and kernels only
// read it.
//
// Attributes are part of a plan's signature: two applications whose structs hash alike
// share one plan. A NaN equals every other NaN; otherwise -0.0 and 0.0 differ.
//
// Ownership. Texts, lists and graphs in a struct that the core filled are the core's, and
// interned: two structs of one runtime have equal values in a field exactly when they have
// the same pointer, while both structs live. A struct may be copied as bytes; the copy is
// valid as long as the original. What is given to an application (tn_attr) is borrowed for
// the call.
//
// Threads. Plain constant data: any thread.
#ifndef TENON_ATTR_H
#define TENON_ATTR_H

#include <stddef.h>
#include <tenon/graph.h>
#include <tenon/types.h>

// Kinds of a field. The member of the struct has the type named here: each is 8 bytes wide
// but for tn_ints, so no struct of attributes has padding.
enum {
    TN_ATTR_BOOL = 1,   // int64_t, 0 or 1
    TN_ATTR_I64 = 2,    // int64_t
    TN_ATTR_F64 = 3,    // double
    TN_ATTR_DTYPE = 4,  // int64_t holding a tn_dtype; 0: not given
    TN_ATTR_CHOICE = 5, // int64_t, an index into `choices`
    TN_ATTR_INTS = 6,   // tn_ints: axes, extents; at most TN_MAX_RANK
    TN_ATTR_BITS = 7,   // uint64_t, raw; printed in hexadecimal
    // Texts and lists of any length; NULL: not given.
    TN_ATTR_STRING = 8,      // const char *, UTF-8, ended by a NUL
    TN_ATTR_INT_LIST = 9,    // const tn_int_list *
    TN_ATTR_FLOAT_LIST = 10, // const tn_float_list *
    TN_ATTR_GRAPH = 11,      // const tn_graph *, of <tenon/graph.h>; NULL: not given
};

// Flags of a field.
enum {
    TN_ATTR_REQUIRED = 1, // no default: leaving it out fails with TN_ERR_ARGUMENT
    // F64 and I64 only: the value is data and part of no plan. See below.
    TN_ATTR_RUNTIME = 2,
    // DTYPE only, at most one, with an input at least: the result's dtype. See below.
    TN_ATTR_RESULT = 4,
};

// Runtime attributes: a learning rate, a scale, a position, a seed, whatever a schedule
// changes from step to step. Applications that differ in nothing else share one plan, and
// recorded commands stay as they are.
//
// Such an attribute is one more input, a scalar of rank 0 behind the record's inputs
// (optional inputs that are not given count too, unless the last input is variadic), in the
// order of the fields. References, kernels, decompositions, vjp, jvp and vmap find it
// there; in an expression its name stands for it. `infer` and `view` do not see it, as
// types and layouts are part of a plan, and the struct's member is always the default.
// Rules for operands of a kernel (tn_operand_rule, TN_KERNEL_SAME_DTYPE) do not count it;
// its dtype is that of tn_runtime_dtype(). It has no derivative.
//
// An application gives it as a number, or as an array of one element (TN_ATTR_ARRAY), so
// that a traced function (tn_function) takes it as an input; given as a number there it is
// a constant of the trace.

// The dtype of the result, NumPy's `dtype=` of a sum: where it is given, the core converts
// the first input to it, applies the primitive without it, and converts the outputs; real
// outputs of complex inputs become the real dtype of its parts. Nodes do not have the
// attribute, so no rule, reference or kernel sees it.

// One field of an attribute struct. Written by the primitive's author, through the macros
// below as a rule; static until the plugin's deinit. The core checks it when the plugin is
// loaded: fields lie within the struct, at multiples of 8, and do not overlap; defaults are
// values of their kind; no two fields, and no field and input, have one name. A record that
// breaks this is TN_ERR_REFUSED.
typedef struct tn_attr_field {
    const char *name;           // a C identifier of at most 63 bytes
    const char *doc;            // one sentence, no full stop
    uint32_t kind;              // TN_ATTR_BOOL .. TN_ATTR_GRAPH
    uint32_t flags;             // TN_ATTR_REQUIRED, TN_ATTR_RUNTIME, TN_ATTR_RESULT or 0
    uint64_t offset;            // bytes from the start of the struct
    int64_t default_i;          // for BOOL, I64, DTYPE, CHOICE, BITS; else 0: texts,
                                // lists and graphs are absent until given
    double default_f;           // for F64
    const char *const *choices; // CHOICE: names, ended by NULL
} tn_attr_field;

// All fields of an attribute struct. An attribute's position in `fields` is its number in
// TN_PUSH_ATTR_F32 of <tenon/kernel.h>, so a primitive of the same revision appends fields
// only. A primitive without attributes has a table of zeros.
typedef struct tn_attr_table {
    uint32_t size;               // sizeof the struct, a multiple of 8, at most 4096
    uint32_t num_fields;         // 0 .. 32
    uint64_t field_size;         // sizeof(tn_attr_field) as the plugin was compiled
    const tn_attr_field *fields; // num_fields of them, field_size bytes apart
} tn_attr_table;

// An initialiser of tn_attr_table, from the struct's type and an array of its fields.
#define TN_ATTR_TABLE(type, table)                                                         \
    {                                                                                      \
        sizeof(type), sizeof(table) / sizeof((table)[0]), sizeof(tn_attr_field), table     \
    }

// Initialisers of tn_attr_field, one for each kind. `type` is the struct, `member` its
// member, whose name becomes the attribute's; `value` the default; `text` one sentence for
// people, without a full stop. The type of the member is the one that the kind above names:
// no macro can check that.
//
//   TN_CHOICE_FIELD(pad_attrs, mode, 0, mode_names, "what the border is filled with"),
//
// For a CHOICE field, `names` is an array of texts, ended by NULL, and `value` an index
// into it. Texts, lists and graphs take no default: they are absent until given.
// clang-format off
#define TN_BOOL_FIELD(type, member, value, text)                                           \
    {                                                                                      \
        #member, text, TN_ATTR_BOOL, 0, offsetof(type, member), value, 0.0, NULL           \
    }
#define TN_I64_FIELD(type, member, value, text)                                            \
    {                                                                                      \
        #member, text, TN_ATTR_I64, 0, offsetof(type, member), value, 0.0, NULL            \
    }
#define TN_F64_FIELD(type, member, value, text)                                            \
    {                                                                                      \
        #member, text, TN_ATTR_F64, 0, offsetof(type, member), 0, value, NULL              \
    }
#define TN_DTYPE_FIELD(type, member, value, text)                                          \
    {                                                                                      \
        #member, text, TN_ATTR_DTYPE, 0, offsetof(type, member), value, 0.0, NULL          \
    }
#define TN_CHOICE_FIELD(type, member, value, names, text)                                  \
    {                                                                                      \
        #member, text, TN_ATTR_CHOICE, 0, offsetof(type, member), value, 0.0, names        \
    }
#define TN_INTS_FIELD(type, member, text)                                                  \
    {                                                                                      \
        #member, text, TN_ATTR_INTS, 0, offsetof(type, member), 0, 0.0, NULL               \
    }
#define TN_BITS_FIELD(type, member, value, text)                                           \
    {                                                                                      \
        #member, text, TN_ATTR_BITS, 0, offsetof(type, member), value, 0.0, NULL           \
    }
// The dtype of the result.
#define TN_RESULT_DTYPE_FIELD(type, member, text)                                          \
    {                                                                                      \
        #member, text, TN_ATTR_DTYPE, TN_ATTR_RESULT, offsetof(type, member), 0, 0.0, NULL \
    }
// A runtime attribute, a double or an int64_t.
#define TN_RUNTIME_F64_FIELD(type, member, value, text)                                    \
    {                                                                                      \
        #member, text, TN_ATTR_F64, TN_ATTR_RUNTIME, offsetof(type, member), 0, value,     \
            NULL                                                                           \
    }
#define TN_RUNTIME_I64_FIELD(type, member, value, text)                                    \
    {                                                                                      \
        #member, text, TN_ATTR_I64, TN_ATTR_RUNTIME, offsetof(type, member), value, 0.0,   \
            NULL                                                                           \
    }
#define TN_STRING_FIELD(type, member, text)                                                \
    {                                                                                      \
        #member, text, TN_ATTR_STRING, 0, offsetof(type, member), 0, 0.0, NULL             \
    }
#define TN_INT_LIST_FIELD(type, member, text)                                              \
    {                                                                                      \
        #member, text, TN_ATTR_INT_LIST, 0, offsetof(type, member), 0, 0.0, NULL           \
    }
#define TN_FLOAT_LIST_FIELD(type, member, text)                                            \
    {                                                                                      \
        #member, text, TN_ATTR_FLOAT_LIST, 0, offsetof(type, member), 0, 0.0, NULL         \
    }
#define TN_GRAPH_FIELD(type, member, text)                                                 \
    {                                                                                      \
        #member, text, TN_ATTR_GRAPH, 0, offsetof(type, member), 0, 0.0, NULL              \
    }
// A field of kind `kind` (not CHOICE, which has names) that every application has to give.
#define TN_REQUIRED_FIELD(type, member, kind, text)                                        \
    {                                                                                      \
        #member, text, kind, TN_ATTR_REQUIRED, offsetof(type, member), 0, 0.0, NULL        \
    }
// clang-format on

// One `name = value`, given when a primitive is applied; tn_attrs() of <tenon/primitive.h>
// writes it. `kind` says which member holds the value.
//
// The core converts a value to the field's kind where nothing is lost: an integer up to
// 2^53 for an F64 field, a whole double for I64 and BOOL, one number or another kind of
// list for a list. Any other mismatch is TN_ERR_ARGUMENT, with the field's name and what it
// takes; so are a name that the primitive does not have, a name given twice, a text
// that is not UTF-8, texts and lists longer than TN_ATTR_MOST, and an array for an
// attribute that is no runtime attribute.
typedef struct tn_attr {
    const char *name;  // borrowed until the call returns
    uint32_t kind;     // TN_ATTR_BOOL .. TN_ATTR_GRAPH, TN_ATTR_TEXT, TN_ATTR_ARRAY
    uint32_t reserved; // 0
    int64_t i;         // for BOOL, I64, DTYPE, CHOICE and BITS
    double f;          // for F64
    // Borrowed, and so is what they point to; NULL: as if the attribute were left out.
    const tn_ints *ints;             // for INTS
    const char *text;                // for STRING, TEXT; NULL for a STRING field only
    const tn_int_list *int_list;     // for INT_LIST
    const tn_float_list *float_list; // for FLOAT_LIST
    const tn_array *array;           // for ARRAY; not NULL
    const tn_graph *graph;           // for GRAPH; of the same runtime
} tn_attr;

// Kind of a tn_attr, not of a field: the value is text, in the syntax of the field's kind
// ("true", "f32", "[0, 1]", "0xff", a choice's name). For a STRING field it is the value
// itself, without quotes. ARRAY: a runtime attribute that is computed, an array of rank 0
// of a number's dtype, in the scope of the application.
enum { TN_ATTR_TEXT = 100, TN_ATTR_ARRAY = 101 };

// The dtype of the scalar that holds a runtime attribute of kind `kind`: i64 for I64. For
// F64: f32 when the inputs of the application include floats or complex numbers, but no
// float or part of a complex number of 64 bits, and no integer of 32 bits or more (floats
// are computed with these in f64); otherwise f64. `dtypes` is the set of the dtypes of the
// inputs that are given.
static inline tn_dtype tn_runtime_dtype(uint32_t kind, uint32_t dtypes)
{
    const uint32_t wide = TN_DTYPE_BIT(TN_F64) | TN_DTYPE_BIT(TN_I32) |
                          TN_DTYPE_BIT(TN_I64) | TN_DTYPE_BIT(TN_U32) |
                          TN_DTYPE_BIT(TN_U64) | TN_DTYPE_BIT(TN_COMPLEX128);
    const uint32_t floats = TN_FLOAT_DTYPES | TN_COMPLEX_DTYPES;
    int32_t is_single = (dtypes & floats) && !(dtypes & wide);
    return kind == TN_ATTR_I64 ? TN_I64 : is_single ? TN_F32 : TN_F64;
}

// The attributes of one application, in any order. Borrowed until the call returns. A list
// of zeros (TN_NO_ATTRS) leaves every attribute at its default.
typedef struct tn_attr_list {
    const tn_attr *items; // `count` of them; may be NULL when count is 0
    uint64_t count;
    uint32_t item_size; // sizeof(tn_attr) as the caller was compiled; 0 when count is 0
    uint32_t reserved;  // 0
} tn_attr_list;

// A tn_attr_list of the first `n` of the tn_attr at `array`.
#define TN_ATTR_LIST(array, n) ((tn_attr_list){(array), (n), sizeof(tn_attr), 0})

#endif // TENON_ATTR_H
