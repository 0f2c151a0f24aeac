// SPDX-License-Identifier: MIT
// Tokens: what the preprocessor makes of a source, and the parser reads.
#ifndef KERNELS_COMPILER_TOKEN_H
#define KERNELS_COMPILER_TOKEN_H

#include "../base/context.h"

enum token_kind {
    TOKEN_END,        // behind the last one
    TOKEN_NAME,       // identifier or keyword: `name`
    TOKEN_PUNCTUATOR, // `punctuator`
    // Literals, by the type that GLSL gives them.
    TOKEN_INT,
    TOKEN_UINT,
    TOKEN_INT16,
    TOKEN_UINT16,
    TOKEN_INT64,
    TOKEN_UINT64,
    TOKEN_FLOAT,
    TOKEN_FLOAT16,
    TOKEN_DOUBLE,
};

// A punctuator is the number that its characters make: '+' is '+', "+=" is PUNCTUATOR('+',
// '=').
#define PUNCTUATOR(a, b) ((uint32_t)(a) | (uint32_t)(b) << 8)
#define PUNCTUATOR_3(a, b, c) (PUNCTUATOR(a, b) | (uint32_t)(c) << 16) // "<<=" and ">>="

struct glsl_token {
    uint8_t kind; // enum token_kind
    struct position at;
    union {
        struct name *name;
        uint32_t punctuator;
        uint64_t integer; // bits of an integer literal, not sign-extended
        double number;    // value of a float literal
    };
};

struct tokens {
    struct glsl_token *items; // the last one is TOKEN_END
    uint32_t count;           // without it
};

// Directives #version, #extension and #pragma. Extensions have GLSL's names and the order
// of their lines: a later one of a name holds from its position on.
struct extension {
    const struct name *name;
    struct position at;
    bool is_required; // `require`, `enable` or `warn`; false: `disable`
};
struct preprocessed {
    struct tokens tokens;
    struct extension *extensions;
    uint32_t num_extensions;
    uint32_t version;              // 450 or 460
    bool uses_vulkan_memory_model; // #pragma use_vulkan_memory_model
};

// Reads the source of a compilation: #version, macros, conditions, includes. Keywords are
// names whose `keyword` is set: compiler_keywords() has filled it before.
void preprocess(struct compiler *c, struct preprocessed *out);

// Gives the keywords of the language their numbers. Words that GLSL reserves and this
// compiler does not take are keywords too, so that using one is an error which names it.
void compiler_keywords(struct compiler *c);

#endif // KERNELS_COMPILER_TOKEN_H
