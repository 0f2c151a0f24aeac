// SPDX-License-Identifier: MIT
// Somebody's SPIR-V before a driver sees it: what is accepted is whole.
#include "fuzz.h"
#include "spirv_check.h"

static struct vk_facts facts = {
    .f16 = true,
    .i64 = true,
    .limits = {.max_invocations = 1024,
               .max_group_size = {1024, 1024, 64},
               .max_shared = 32768},
};

// Instructions, one after the other, end where the module does.
static void walk(const uint32_t *words, uint64_t count)
{
    uint64_t at = 5;
    while (at < count) {
        FUZZ_CHECK(words[at] >> 16, "an instruction has a size");
        at += words[at] >> 16;
    }
    FUZZ_CHECK(at == count, "the last instruction is whole");
}

void fuzz_one(const uint8_t *data, size_t size)
{
    uint32_t *words = malloc(size + 4); // aligned as a payload is
    FUZZ_CHECK(words, "out of memory");
    memcpy(words, data, size);
    uint32_t *exact = realloc(words, size + !size);
    char reason[VK_REASON] = "";
    struct vk_code code = {.words = exact, .size = size};
    const tn_vulkan_constant constant = {0, 64};
    struct spirv_wants wants = {.num_bindings = 3,
                                .num_push = size / 4 % 8,
                                .num_spec = (size / 4 + 1) % 2,
                                .spec = &constant};
    bool fine = vk_spirv_check(&facts, &code, &wants, reason);
    FUZZ_CHECK(fine || reason[0], "a refusal has a reason");
    if (fine)
        walk(exact, size / 4);
    free(exact);
}
