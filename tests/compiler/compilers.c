// SPDX-License-Identifier: MIT
// The table of compilers, and the differences that "planted" makes.
#include "compilers.h"

#include <string.h>
#include "oracle.h"
#include "tools.h"

const struct compiler_choice compiler_glslang = {
    "glslang", glslang_compile, glslang_result_finish, glslang_compiler_version,
    glslang_compiler_unload};

// --- planted differences ---------------------------------------------------------------

// The first instruction `op` whose operand `at` is `from` (0: any) gets `to` there.
// op_to: another instruction in its place, 0: the same.
static const struct planted {
    const char *what;
    uint16_t op, op_to, at;
    uint32_t from, to;
} plants[] = {
    {"a subtraction of floats in place of an addition", 129, 131, 0, 0, 0},
    {"a multiplication of floats in place of an addition", 129, 133, 0, 0, 0},
    {"a signed comparison in place of an unsigned one", 176, 177, 0, 0, 0},
    {"a subtraction of integers in place of an addition", 128, 130, 0, 0, 0},
    {"an arithmetic shift in place of a logical one", 194, 195, 0, 0, 0},
    {"a multiplication of integers in place of an addition", 128, 132, 0, 0, 0},
    {"binding 7 in place of 1", 71, 0, 2, 33, 7},
    {"a member's offset of 4 bytes in place of 0", 72, 0, 4, 0, 4},
    {"another local size", 16, 0, 3, 0, 3},
    {"another specialisation id", 71, 0, 2, 1, 99},
    {"a capability that is not needed", 17, 0, 1, 1, 10},
};
enum { NUM_PLANTS = sizeof(plants) / sizeof(plants[0]) };
static unsigned planted;

const char *compiler_plant(unsigned number)
{
    if (number >= NUM_PLANTS)
        return NULL;
    planted = number;
    return plants[number].what;
}

// Whether the instruction is the one to change: for decorations, by the decoration.
static bool is_target(const struct planted *plant, const uint32_t *inst)
{
    uint32_t size = inst[0] >> 16;
    if ((inst[0] & 0xffff) != plant->op || plant->at >= size)
        return false;
    if (plant->op == 71) // OpDecorate: `from` is the decoration, and the value is behind it
        return inst[2] == plant->from && size > 3;
    if (plant->op == 72) // OpMemberDecorate: Offset is 35
        return inst[3] == 35 && inst[4] == plant->from;
    return plant->from == 0 || inst[plant->at] == plant->from;
}

static bool planted_compile(const struct glsl_source *source, struct glsl_result *out)
{
    const struct planted *plant = &plants[planted];
    if (!glslang_compile(source, out))
        return false;
    for (size_t at = 5; at < out->num_words; at += out->words[at] >> 16) {
        uint32_t *inst = &out->words[at];
        if (!is_target(plant, inst))
            continue;
        if (plant->op_to)
            inst[0] = (inst[0] & 0xffff0000) | plant->op_to;
        else if (plant->op == 71)
            inst[3] = plant->to;
        else
            inst[plant->at] = plant->to;
        break;
    }
    return true;
}

// --- the table -------------------------------------------------------------------------

#ifdef HAVE_TENON_GLSL
// Ours without its passes: whether a fault is theirs or the front end's.
static bool plain_compile(const struct glsl_source *source, struct glsl_result *out)
{
    struct glsl_source plain = *source;
    plain.flags |= GLSL_NOT_OPTIMISED;
    return glsl_compile(&plain, out);
}
#endif

static const struct compiler_choice choices[] = {
#ifdef HAVE_TENON_GLSL
    {"tenon", glsl_compile, glsl_result_finish, glsl_compiler_version,
     glsl_compiler_unload},
    {"plain", plain_compile, glsl_result_finish, glsl_compiler_version,
     glsl_compiler_unload},
#endif
    {"optimised", optimised_compile, glslang_result_finish, glslang_compiler_version,
     glslang_compiler_unload},
    {"glslang", glslang_compile, glslang_result_finish, glslang_compiler_version,
     glslang_compiler_unload},
    {"planted", planted_compile, glslang_result_finish, glslang_compiler_version,
     glslang_compiler_unload},
};

const struct compiler_choice *compiler_find(const char *name)
{
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
        if (strcmp(choices[i].name, name) == 0)
            return &choices[i];
    return NULL;
}

const char *compiler_names(void)
{
    return "tenon plain optimised glslang planted";
}

const struct compiler_choice *compiler_other(void)
{
    return &choices[0];
}
