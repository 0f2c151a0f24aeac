// SPDX-License-Identifier: MIT
// The state of the front end, which its files share, and functions that all of them use.
// Expressions are parsed into a tree, which knows its types and constants; statements and
// declarations are emitted at once.
#ifndef KERNELS_COMPILER_TRANSLATOR_H
#define KERNELS_COMPILER_TRANSLATOR_H

#include "../../spirv/numbers.h"
#include "../preprocess/keyword.h"
#include "../preprocess/token.h"
#include "needs.h"
#include "types.h"

enum { MOST_LEVELS = 256 }; // of nesting in the source

struct function;
struct initial;
struct precise;
struct symbol;
struct target;

struct translator {
    struct compiler *c;
    struct ir *ir;
    const struct glsl_token *first, *token; // of all; the next one
    uint64_t extensions;                    // enum extension_bit
    struct type *numbers[NUM_SCALARS][5][5];
    struct type *tensors;                  // types of tensors' layouts and views
    uint32_t level;                        // of nesting
    uint32_t depth;                        // of scopes
    struct symbol *scope[MOST_LEVELS + 4]; // innermost declarations by depth
    struct function *functions, *last_function;
    struct function *function; // being emitted; NULL: none
    struct function *main;
    struct initial *initials, **last_initial;
    struct target *target;
    struct precise *precise;  // precise variables of the function
    uint64_t needs;           // of what is outside of functions
    uint64_t *function_needs; // of the one being emitted; NULL: none
    uint64_t seen_needs;      // anywhere; the first positions, for errors
    struct position need_positions[NUM_NEEDS];
    struct {
        uint32_t value[3], id[3]; // local size; specialisation numbers, UINT32_MAX: none
        uint32_t made;            // id of gl_WorkGroupSize; 0: not made yet
        bool is_spec;
    } local_size;
    // Ids of specialisation constants by number, unsorted: there are few.
    struct {
        uint32_t number, id;
    } * specs;
    uint32_t num_specs, capacity_specs;
    uint8_t default_layout[2]; // of uniform blocks, of buffers
    bool default_row_major[2];
    bool has_vulkan_model, has_push_constant;
    const struct name *name_length, *name_main;
};

_Noreturn void fail_at(struct translator *t, const struct position *at, const char *format,
                       ...) __attribute__((format(printf, 3, 4)));
// For errors.
const char *token_text(struct translator *t, const struct glsl_token *token);
const char *punctuator_text(struct translator *t, uint32_t punctuator);

// Notes the needs of the code that is being made.
void use_type(struct translator *t, const struct type *type); // in registers
void use_needs(struct translator *t, uint64_t needs);

#endif // KERNELS_COMPILER_TRANSLATOR_H
