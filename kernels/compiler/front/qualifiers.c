// SPDX-License-Identifier: MIT
// Qualifiers.
#include "qualifiers.h"

#include <string.h>

enum layout_word {
    WORD_LOCAL_SIZE_X,
    WORD_LOCAL_SIZE_Y,
    WORD_LOCAL_SIZE_Z,
    WORD_LOCAL_SIZE_X_ID,
    WORD_LOCAL_SIZE_Y_ID,
    WORD_LOCAL_SIZE_Z_ID,
    WORD_BINDING,
    WORD_SET,
    WORD_OFFSET,
    WORD_ALIGN,
    WORD_CONSTANT_ID,
    WORD_REFERENCE_ALIGN, // those above have values
    WORD_STD430,
    WORD_STD140,
    WORD_SCALAR,
    WORD_PUSH_CONSTANT,
    WORD_REFERENCE,
    WORD_ROW_MAJOR,
    WORD_COLUMN_MAJOR,
    NUM_WORDS,
};

static const char *const words[] = {
    "local_size_x",     "local_size_y",    "local_size_z", "local_size_x_id",
    "local_size_y_id",  "local_size_z_id", "binding",      "set",
    "offset",           "align",           "constant_id",  "buffer_reference_align",
    "std430",           "std140",          "scalar",       "push_constant",
    "buffer_reference", "row_major",       "column_major",
};

static void set_layout_value(struct translator *t, struct qualifiers *q,
                             enum layout_word word, const struct position *at)
{
    uint32_t value = parse_constant_uint(t, words[word]);
    bool is_power = value != 0 && (value & (value - 1)) == 0;
    if ((word == WORD_ALIGN || word == WORD_REFERENCE_ALIGN) && !is_power)
        fail_at(t, at, "'%s' is %u, expected a power of 2", words[word], value);
    if (word <= WORD_LOCAL_SIZE_Z && value == 0)
        fail_at(t, at, "'%s' is 0, expected at least 1", words[word]);
    q->has_local_size = q->has_local_size || word <= WORD_LOCAL_SIZE_Z_ID;
    if (word <= WORD_LOCAL_SIZE_Z)
        t->local_size.value[word] = value;
    else if (word <= WORD_LOCAL_SIZE_Z_ID)
        t->local_size.id[word - WORD_LOCAL_SIZE_X_ID] = value;
    else if (word == WORD_BINDING)
        q->binding = value;
    else if (word == WORD_SET)
        q->set = value;
    else if (word == WORD_OFFSET)
        q->offset = value;
    else if (word == WORD_ALIGN)
        q->align = value;
    else if (word == WORD_CONSTANT_ID)
        q->constant_id = value;
    else
        q->reference_align = value;
}

static void set_layout_word(struct translator *t, struct qualifiers *q,
                            enum layout_word word, const struct position *at)
{
    switch (word) {
    case WORD_STD430:
        q->layout = LAYOUT_STD430;
        break;
    case WORD_STD140:
        q->layout = LAYOUT_STD140;
        break;
    case WORD_SCALAR:
        extension_check(t, EXTENSION_BIT(SCALAR_LAYOUT), at, "scalar");
        q->layout = LAYOUT_SCALAR;
        break;
    case WORD_PUSH_CONSTANT:
        q->is_push_constant = true;
        break;
    case WORD_REFERENCE:
        extension_check(t, EXTENSION_BIT(REFERENCE), at, "buffer_reference");
        q->is_reference = true;
        break;
    case WORD_ROW_MAJOR:
        q->is_row_major = true;
        break;
    default:
        q->is_column_major = true;
        break;
    }
}

static void parse_layout(struct translator *t, struct qualifiers *q)
{
    expect(t, '(', "behind 'layout'");
    q->has_layout = true;
    do {
        const struct glsl_token *token = t->token++;
        uint32_t word = 0;
        if (token->kind != TOKEN_NAME)
            fail_at(t, &token->at, "found %s, expected a layout's name",
                    token_text(t, token));
        while (word < NUM_WORDS && strcmp(words[word], token->name->text) != 0)
            word++;
        if (word == NUM_WORDS)
            fail_at(t, &token->at, "layout '%.60s' is not supported", token->name->text);
        if (word > WORD_REFERENCE_ALIGN) {
            set_layout_word(t, q, word, &token->at);
            continue;
        }
        expect(t, '=', "and a value behind the layout's name");
        set_layout_value(t, q, word, &token->at);
    } while (accept(t, ','));
    expect(t, ')', "behind the layout");
}

static uint8_t scope_of(enum keyword keyword)
{
    uint32_t scope = keyword == KEYWORD_devicecoherent      ? MEMORY_SCOPE_DEVICE
                     : keyword == KEYWORD_workgroupcoherent ? MEMORY_SCOPE_WORKGROUP
                     : keyword == KEYWORD_subgroupcoherent  ? MEMORY_SCOPE_SUBGROUP
                                                            : 0;
    return (uint8_t)(scope << MEMORY_SCOPE_AT);
}

static bool set_qualifier(struct translator *t, struct qualifiers *q, uint32_t keyword)
{
    switch (keyword) {
    case KEYWORD_const:
        q->is_const = true;
        return true;
    case KEYWORD_uniform:
        q->is_uniform = true;
        return true;
    case KEYWORD_buffer:
        q->is_buffer = true;
        return true;
    case KEYWORD_shared:
        q->is_shared = true;
        return true;
    case KEYWORD_in:
        q->is_in = true;
        return true;
    case KEYWORD_out:
    case KEYWORD_inout:
        q->is_out = true;
        return true;
    case KEYWORD_precise:
        q->is_precise = true;
        return true;
    case KEYWORD_readonly:
        q->memory |= MEMORY_READONLY;
        return true;
    case KEYWORD_writeonly:
        q->memory |= MEMORY_WRITEONLY;
        return true;
    case KEYWORD_restrict:
        q->memory |= MEMORY_RESTRICT;
        return true;
    case KEYWORD_volatile:
        q->memory = memory_join(q->memory, MEMORY_VOLATILE | MEMORY_COHERENT);
        return true;
    case KEYWORD_coherent:
        q->memory = memory_join(q->memory, MEMORY_COHERENT);
        return true;
    case KEYWORD_nonprivate:
        q->memory |= MEMORY_NONPRIVATE;
        return true;
    case KEYWORD_devicecoherent:
    case KEYWORD_queuefamilycoherent:
    case KEYWORD_workgroupcoherent:
    case KEYWORD_subgroupcoherent:
        extension_check(t, EXTENSION_BIT(MEMORY_SCOPE), &t->token->at,
                        t->token->name->text);
        q->memory = memory_join(q->memory, MEMORY_COHERENT | scope_of(keyword));
        return true;
    case KEYWORD_highp:
    case KEYWORD_mediump:
    case KEYWORD_lowp:
        return true;
    default:
        return false;
    }
}

void parse_qualifiers(struct translator *t, struct qualifiers *out)
{
    *out = (struct qualifiers){.at = t->token->at,
                               .set = UINT32_MAX,
                               .binding = UINT32_MAX,
                               .offset = UINT32_MAX,
                               .constant_id = UINT32_MAX};
    while (t->token->kind == TOKEN_NAME) {
        uint32_t keyword = t->token->name->keyword;
        if (keyword == KEYWORD_layout) {
            t->token++;
            parse_layout(t, out);
        } else if (set_qualifier(t, out, keyword)) {
            t->token++;
        } else {
            break;
        }
        out->is_any = true;
    }
}
