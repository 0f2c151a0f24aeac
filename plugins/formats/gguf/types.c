// SPDX-License-Identifier: MIT
// Types of tensors by number, and the check of UTF-8.
#include <string.h>
#include <tenon/ops/quant.h>
#include "gguf.h"

static const struct {
    uint32_t number;
    tn_dtype dtype;
} plain[] = {{0, TN_F32},  {1, TN_F16},  {24, TN_I8},  {25, TN_I16},
             {26, TN_I32}, {27, TN_I64}, {28, TN_F64}, {30, TN_BF16}};

// Types that Tenon cannot read, with their names for the message.
static const struct {
    uint32_t number;
    const char *name;
} unread[] = {{9, "q8_1"},     {15, "q8_k"},  {16, "iq2_xxs"}, {17, "iq2_xs"},
              {18, "iq3_xxs"}, {19, "iq1_s"}, {21, "iq3_s"},   {22, "iq2_s"},
              {29, "iq1_m"},   {34, "tq1_0"}, {35, "tq2_0"}};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct gguf_type gguf_types_of_dtype(tn_dtype dtype, uint32_t number)
{
    return (struct gguf_type){.dtype = dtype,
                              .elements = 1,
                              .bytes = (int64_t)tn_dtype_bytes(dtype),
                              .number = number};
}

static struct gguf_type of_format(const tn_quant_format *format)
{
    return (struct gguf_type){.block_format = format->name,
                              .dtype = TN_U8,
                              .elements = format->block,
                              .bytes = format->bytes,
                              .number = (uint32_t)format->gguf_type};
}

bool gguf_type_of_number(uint32_t number, struct gguf_type *out_type, const char **out_name)
{
    const tn_quant_format *format = tn_quant_of_gguf(number);
    *out_name = NULL;
    if (format) {
        *out_type = of_format(format);
        return true;
    }
    for (size_t i = 0; i < COUNT(plain); i++)
        if (plain[i].number == number) {
            *out_type = gguf_types_of_dtype(plain[i].dtype, number);
            return true;
        }
    for (size_t i = 0; i < COUNT(unread); i++)
        if (unread[i].number == number)
            *out_name = unread[i].name;
    return false;
}

bool gguf_type_of_array(const tn_format_array *array, struct gguf_type *out_type)
{
    if (array->block_format) {
        const tn_quant_format *format = tn_quant_find(array->block_format);
        if (!format || format->gguf_type < 0)
            return false;
        *out_type = of_format(format);
        return true;
    }
    for (size_t i = 0; i < COUNT(plain); i++)
        if (plain[i].dtype == array->type.dtype) {
            *out_type = gguf_types_of_dtype(plain[i].dtype, plain[i].number);
            return true;
        }
    return false;
}

// The bytes of the UTF-8 character at `at`; 0: it is none.
static uint64_t character_size(const unsigned char *at, uint64_t rest)
{
    static const uint32_t least[] = {0, 0x01, 0x80, 0x800, 0x10000};
    uint64_t size = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
    if (size == 0 || size > rest || *at > 0xf4)
        return 0;
    uint32_t code = size == 1 ? *at : *at & (0x7fu >> size);
    for (uint64_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    bool is_half = code >= 0xd800 && code < 0xe000; // a surrogate of UTF-16
    return code < least[size] || is_half || code > 0x10ffff ? 0 : size;
}

bool gguf_is_text(const tn_text *text)
{
    const unsigned char *bytes = (const unsigned char *)text->data;
    for (uint64_t at = 0; at < text->size;) {
        uint64_t size = character_size(bytes + at, text->size - at);
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}
