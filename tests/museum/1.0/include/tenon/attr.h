// SPDX-License-Identifier: MIT
// Attributes: a plain C struct, and a static table that describes its fields.
//
// From the table the core derives hashing, equality, printing, parsing, serialising and
// the command line's `name=value`. Nobody writes these by hand.
//
//   typedef struct axpby_attrs { double alpha, beta; } axpby_attrs;
//   static const tn_attr_field axpby_fields[] = {
//       TN_F64_FIELD(axpby_attrs, alpha, 1.0, "factor of x"),
//       TN_F64_FIELD(axpby_attrs, beta, 1.0, "factor of y"),
//   };
//   ... .attrs = TN_ATTR_TABLE(axpby_attrs, axpby_fields) ...
//
// Threads. Plain constant data.
#ifndef TENON_ATTR_H
#define TENON_ATTR_H

#include <stddef.h>
#include <tenon/types.h>

// Kinds of a field. The struct's member has the type named here.
enum {
    TN_ATTR_BOOL = 1,   // int64_t, 0 or 1
    TN_ATTR_I64 = 2,    // int64_t
    TN_ATTR_F64 = 3,    // double
    TN_ATTR_DTYPE = 4,  // int64_t holding a tn_dtype; 0: not given
    TN_ATTR_CHOICE = 5, // int64_t, an index into `choices`
    TN_ATTR_INTS = 6,   // tn_ints
    TN_ATTR_BITS = 7,   // uint64_t, raw; printed in hexadecimal
};

enum {
    TN_ATTR_REQUIRED = 1, // has no default: leaving it out is an error
};

// One field of an attribute struct.
typedef struct tn_attr_field {
    const char *name;
    const char *doc; // one sentence, no full stop
    uint32_t kind;
    uint32_t flags;
    uint64_t offset;            // bytes from the start of the struct
    int64_t default_i;          // for BOOL, I64, DTYPE, CHOICE, BITS; INTS: always absent
    double default_f;           // for F64
    const char *const *choices; // CHOICE: names, ended by NULL
} tn_attr_field;

// All fields of an attribute struct.
typedef struct tn_attr_table {
    uint32_t size;       // sizeof the struct, a multiple of 8; 0: no attributes
    uint32_t num_fields; // 0 .. 32
    uint64_t field_size; // sizeof(tn_attr_field) as the plugin was compiled
    const tn_attr_field *fields;
} tn_attr_table;

// The table of a struct, from an array of its fields.
#define TN_ATTR_TABLE(type, table)                                                         \
    {                                                                                      \
        sizeof(type), sizeof(table) / sizeof((table)[0]), sizeof(tn_attr_field), table     \
    }

// clang-format off
// One field each: the struct, its member, the default, and a sentence for people.
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
// The same without a default.
#define TN_REQUIRED_FIELD(type, member, kind, text)                                        \
    {                                                                                      \
        #member, text, kind, TN_ATTR_REQUIRED, offsetof(type, member), 0, 0.0, NULL        \
    }
// clang-format on

// One `name = value` given when a primitive is applied. Which of the values counts is
// `kind`; the core converts where nothing is lost (an I64 for an F64 field, one integer
// for INTS) and reports everything else with the field's name.
typedef struct tn_attr {
    const char *name; // borrowed until the call returns
    uint32_t kind;    // TN_ATTR_BOOL .. TN_ATTR_BITS, or TN_ATTR_TEXT
    uint32_t reserved;
    int64_t i;
    double f;
    const tn_ints *ints; // borrowed; for TN_ATTR_INTS
    const char *text;    // borrowed; for TN_ATTR_TEXT: parsed as on the command line
} tn_attr;
enum { TN_ATTR_TEXT = 100 };

// Attributes as they are given in a call: see tn_attrs() in <tenon/primitive.h>. Borrowed.
typedef struct tn_attr_list {
    const tn_attr *items;
    uint64_t count;
} tn_attr_list;

#endif // TENON_ATTR_H
