// SPDX-License-Identifier: MIT
// Somebody's SPIR-V before a driver sees it: what is accepted is whole, also when a program
// was linked into it.
#include "fuzz.h"
#include "spirv/spirv_check.h"
#include "spirv/spirv_fuse.h"

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

// Functions of a program: (uint number, float element), and (uint number) -> float.
#define OP(number, words) ((number) | (words) << 16)
#define HEAD                                                                               \
    0x07230203, 0x00010300, 0, 20, 0, OP(17, 2), 1, OP(14, 3), 0, 1, OP(15, 5), 5, 1,      \
        0x6e69616d, 0, OP(19, 2), 2, OP(21, 4), 3, 32, 0, OP(22, 3), 4, 32
static const uint32_t store[] = {HEAD, OP(33, 5),  5, 2,          3,        4, OP(54, 5), 2,
                                 1,    0,          5, OP(55, 3),  3,        6, OP(55, 3), 4,
                                 7,    OP(248, 2), 8, OP(253, 1), OP(56, 1)};
static const uint32_t load[] = {HEAD, OP(33, 4),  5, 4,          3, OP(43, 4), 4,         9,
                                0,    OP(54, 5),  4, 1,          0, 5,         OP(55, 3), 3,
                                6,    OP(248, 2), 8, OP(254, 2), 9, OP(56, 1)};

// What is linked is whole as well, and fits what the kernel fits.
static void fuse(const struct vk_code *kernel, const struct spirv_wants *wants,
                 uint32_t binding)
{
    bool is_output = binding % 2;
    const struct vk_code program = {.words = is_output ? store : load,
                                    .size = is_output ? sizeof(store) : sizeof(load)};
    const struct spirv_fused fused = {
        .binding = binding, .dtype = TN_F32, .is_output = is_output, .program = &program};
    char reason[VK_REASON] = "";
    struct vk_code linked;
    if (!spirv_fuse(kernel, &fused, &linked, reason)) {
        FUZZ_CHECK(reason[0], "a refusal has a reason");
        return;
    }
    walk(linked.words, linked.size / 4);
    FUZZ_CHECK(vk_spirv_check(&facts, &linked, wants, reason), "what is linked is whole");
    linked.release(&linked);
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
    if (fine) {
        walk(exact, size / 4);
        for (uint32_t binding = 0; binding < 3; binding++)
            fuse(&code, &wants, binding);
    }
    free(exact);
}
