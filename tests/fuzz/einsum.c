// SPDX-License-Identifier: MIT
// Equations of base.einsum: a letter is an operand's rank and extents, a line each up to an
// empty one, and the rest is the equation. What is read has labels and extents that fit.
#include "matmul/einsum.h"
#include "fuzz.h"

static int failures;

static tn_status take_failure(const tn_host *host, tn_status status, const char *format,
                              ...)
{
    (void)host, (void)format;
    failures++;
    return status;
}

// Reads "3 4\n" as a type of these extents. Gives what follows; NULL: no more operands.
static const char *read_operand(const char *text, tn_type *out)
{
    *out = (tn_type){.dtype = TN_F32};
    for (; *text && *text != '\n'; text++)
        if (*text >= '0' && *text <= '9' && out->rank < TN_MAX_RANK)
            out->extent[out->rank++] = *text - '0';
    return *text ? text + 1 : NULL;
}

void fuzz_one(const uint8_t *data, size_t size)
{
    const tn_host host = {.struct_size = sizeof(host), .fail = take_failure};
    tn_type types[EINSUM_OPERANDS + 1];
    struct einsum e;
    uint32_t count = 0;
    uint64_t seen = 0;
    char *text = fuzz_text(data, size);
    const char *at = text;
    for (; at && *at != '\n' && count <= EINSUM_OPERANDS; count++)
        at = read_operand(at, &types[count]);
    at = at && *at == '\n' ? at + 1 : "";
    failures = 0;
    tn_status status = einsum_parse(&host, at, types, count, &e);
    FUZZ_CHECK((status != TN_OK) == failures, "a refusal is told once");
    for (int32_t i = 0; status == TN_OK && i < e.output.rank; i++) {
        int32_t label = e.output.label[i];
        FUZZ_CHECK(label >= 0 && label < EINSUM_LABELS, "a label is in range");
        FUZZ_CHECK(e.extent[label] >= 0, "a label of the result is an operand's");
        FUZZ_CHECK(!(seen >> label & 1), "labels of the result differ");
        seen |= UINT64_C(1) << label;
    }
    for (uint32_t k = 0; status == TN_OK && k < count; k++)
        for (int32_t i = 0; i < types[k].rank; i++) {
            int64_t all = e.extent[e.operand[k].label[i]], own = types[k].extent[i];
            FUZZ_CHECK(own == all || own == 1, "extents agree or broadcast");
        }
    free(text);
}
