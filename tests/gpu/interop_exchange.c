// SPDX-License-Identifier: MIT
// Two queues exchange elements through memory of the host inside their recorded commands.
#include <string.h>
#include <sys/mman.h>
#include "compiler.h"
#include "interop.h"

// Each line of 16 bytes has two elements and the number of the exchange behind each, so
// whoever reads a line knows whether it is there: no order of writes is assumed. Two slots
// in turn: who has received exchange n knows that the other has read n - 1. Each invocation
// counts its exchanges by itself: a number that another invocation writes could be read
// again behind a barrier of the workgroup, which orders no memory of buffers. Elements that
// do not come are NaN, and nothing is taken for one that has come late.
static const char exchange_text[] =
    "#version 460\n"
    "layout(local_size_x = 512) in;\n"
    "layout(std430, binding = 0) buffer A { vec2 d[]; } x;\n"
    "layout(std430, binding = 1) coherent volatile buffer B { uvec4 d[]; } mine;\n"
    "layout(std430, binding = 2) coherent volatile buffer C { uvec4 d[]; } theirs;\n"
    "layout(std430, binding = 3) buffer D { uint d[]; } numbers;\n"
    "void main()\n"
    "{\n"
    "    uint i = gl_GlobalInvocationID.x;\n"
    "    uint number = numbers.d[i] + 1u;\n"
    "    uint at = (number & 1u) * 2048u + i;\n"
    "    numbers.d[i] = number;\n"
    "    vec2 v = x.d[i];\n"
    "    uvec2 bits = floatBitsToUint(v);\n"
    "    mine.d[at] = uvec4(bits.x, number, bits.y, number);\n"
    "    uvec4 got = theirs.d[at];\n"
    "    for (uint k = 0u; k < 400000u && (got.y != number || got.w != number); k++)\n"
    "        got = theirs.d[at];\n"
    "    bool came = got.y == number && got.w == number;\n"
    "    vec2 other = came ? uintBitsToFloat(got.xz) : "
    "uintBitsToFloat(uvec2(0x7fc00000u));\n"
    "    x.d[i] = (v + other) * 0.5;\n"
    "}\n";

static struct {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool pool;
} shader;

static void shader_make(void)
{
    struct glsl_result code = {0};
    VkDescriptorSetLayoutBinding bindings[4];
    VkShaderModule module;
    interop_expect(glsl_compile(&(struct glsl_source){.text = exchange_text,
                                                      .size = sizeof(exchange_text) - 1},
                                &code),
                   code.message, code.line);
    for (uint32_t i = 0; i < 4; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    VK(vkCreateDescriptorSetLayout(
        interop_vulkan.device,
        &(VkDescriptorSetLayoutCreateInfo){
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .bindingCount = 4,
            .pBindings = bindings},
        NULL, &shader.set_layout));
    VK(vkCreatePipelineLayout(interop_vulkan.device,
                              &(VkPipelineLayoutCreateInfo){
                                  .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                  .setLayoutCount = 1,
                                  .pSetLayouts = &shader.set_layout},
                              NULL, &shader.layout));
    VK(vkCreateShaderModule(
        interop_vulkan.device,
        &(VkShaderModuleCreateInfo){.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                    .codeSize = code.num_words * 4,
                                    .pCode = code.words},
        NULL, &module));
    VK(vkCreateComputePipelines(
        interop_vulkan.device, VK_NULL_HANDLE, 1,
        &(VkComputePipelineCreateInfo){
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .module = module,
                      .pName = "main"},
            .layout = shader.layout},
        NULL, &shader.pipeline));
    VK(vkCreateDescriptorPool(
        interop_vulkan.device,
        &(VkDescriptorPoolCreateInfo){
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .maxSets = 32,
            .poolSizeCount = 1,
            .pPoolSizes = &(VkDescriptorPoolSize){VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 128}},
        NULL, &shader.pool));
    glsl_result_finish(&code);
}

static VkDescriptorSet set_make(const struct interop_buffer *const buffers[4])
{
    VkDescriptorSet set;
    VkDescriptorBufferInfo infos[4];
    VK(vkAllocateDescriptorSets(interop_vulkan.device,
                                &(VkDescriptorSetAllocateInfo){
                                    .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                    .descriptorPool = shader.pool,
                                    .descriptorSetCount = 1,
                                    .pSetLayouts = &shader.set_layout},
                                &set));
    for (int i = 0; i < 4; i++)
        infos[i] = (VkDescriptorBufferInfo){buffers[i]->handle, 0, VK_WHOLE_SIZE};
    vkUpdateDescriptorSets(
        interop_vulkan.device, 1,
        &(VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                .dstSet = set,
                                .descriptorCount = 4,
                                .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                .pBufferInfo = infos},
        0, NULL);
    return set;
}

static VkCommandBuffer record_exchanges(uint32_t queue, VkDescriptorSet set, unsigned count)
{
    VkCommandBuffer commands = interop_commands_begin(queue);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, shader.pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, shader.layout, 0, 1,
                            &set, 0, NULL);
    for (unsigned i = 0; i < count; i++) {
        interop_record_barrier(commands);
        vkCmdDispatch(commands, WORDS / 2 / 512, 1, 1);
    }
    interop_record_barrier(commands);
    VK(vkEndCommandBuffer(commands));
    return commands;
}

// What both ranks have of an exchange. The buffers are those of one rank and the other.
struct exchange {
    struct interop_buffer x[2], slots[2], numbers[2];
    uint32_t queues[2];
};

enum { NUMBERS = WORDS / 2 * 4 }; // bytes

// Whether both have the mean of their elements, which round `n` set. Shows what is wrong.
static bool exchange_check(const struct exchange *e, unsigned n, double took)
{
    for (int i = 0; i < 2; i++)
        for (unsigned k = 0; k < WORDS; k += 61) {
            float got = ((float *)e->x[i].map)[k];
            if (got == (float)(n + 6 * k))
                continue;
            printf("round %u, %.0f us: element %u of rank %d is %g, expected %g%s; "
                   "exchanges %u and %u\n",
                   n, took, k, i, (double)got, (double)(n + 6 * k),
                   got != got ? ": the other's did not come, as if the queues took turns"
                              : "",
                   ((unsigned *)e->numbers[0].map)[k / 2],
                   ((unsigned *)e->numbers[1].map)[k / 2]);
            return false;
        }
    return true;
}

// Both queues at once: the median until both have ended, 0: it does not work. Without
// `is_checked` each exchanges with itself.
static double exchange_time(struct exchange *e, unsigned count, bool is_checked)
{
    static double times[MOST_ROUNDS];
    VkSemaphore timelines[2];
    VkCommandBuffer commands[2];
    for (int i = 0; i < 2; i++) {
        const struct interop_buffer *const buffers[] = {
            &e->x[i], &e->slots[i], &e->slots[is_checked ? 1 - i : i], &e->numbers[i]};
        commands[i] = record_exchanges(e->queues[i], set_make(buffers), count);
        timelines[i] = interop_timeline_make(false, NULL);
    }
    for (unsigned n = 0; n < interop_rounds; n++) {
        for (int i = 0; i < 2; i++)
            for (unsigned k = 0; k < WORDS; k++)
                ((float *)e->x[i].map)[k] = (float)(n + 4 * k * (unsigned)(i + 1));
        double began = interop_now_us();
        for (int i = 0; i < 2; i++)
            interop_submit(e->queues[i], commands[i], VK_NULL_HANDLE, 0, timelines[i],
                           n + 1);
        for (int i = 0; i < 2; i++)
            interop_timeline_wait(timelines[i], n + 1);
        times[n] = interop_now_us() - began;
        if (is_checked && !exchange_check(e, n, times[n]))
            return 0;
    }
    return interop_median(times, interop_rounds);
}

static void exchange_between(uint32_t other, const char *what)
{
    struct exchange e = {.queues = {0, other}};
    const uint64_t size = 65536;
    double alone[2], both[2];
    for (int i = 0; i < 2; i++) {
        void *host =
            mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        interop_expect(host != MAP_FAILED, "mmap", 0);
        e.x[i] = interop_buffer_make(BYTES, NULL, false);
        e.slots[i] = interop_buffer_make(size, host, false);
        e.numbers[i] = interop_buffer_make(NUMBERS, NULL, false);
        memset(e.numbers[i].map, 0, NUMBERS);
    }
    for (int i = 0; i < 2; i++) {
        unsigned count = i ? CHAIN : 1;
        alone[i] = exchange_time(&e, count, false);
        both[i] = exchange_time(&e, count, true);
        if (both[i] == 0) {
            printf("no exchange between queues of %s\n", what);
            return;
        }
    }
    printf(
        "through the host's memory, 16 KiB, queues of %s: one exchange and its wait %.1f "
        "us, each of %d in one submission %.1f us (beside %.1f and %.1f with itself)\n",
        what, both[0], CHAIN, (both[1] - both[0]) / (CHAIN - 1), alone[0],
        (alone[1] - alone[0]) / (CHAIN - 1));
}

void interop_exchange(void)
{
    if (!interop_vulkan.imports_host) {
        printf("no exchange: the device imports no memory of the host\n");
        return;
    }
    shader_make();
    if (interop_vulkan.num_families == 2)
        exchange_between(2, "two families");
    if (interop_vulkan.num_queues == 2)
        exchange_between(1, "one family");
}
