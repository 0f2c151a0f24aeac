// SPDX-License-Identifier: MIT
// What a driver makes of our compiler's SPIR-V beside that of glslang with its optimiser,
// kernel by kernel: the statistics of VK_KHR_pipeline_executable_properties (NVIDIA: size
// of the binary, registers), and how long the driver compiled.
//
//   pipelines [--times] [--all] [--programs] [WORD]
//
// --times: without the extension, which is needed otherwise (77 ends the program); --all: a
// line for each kernel, not only where ours is over 5 % greater; --programs: generated
// kernels, too; WORD: kernels whose names contain it. Specialisation constants have their
// defaults.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vulkan/vulkan.h>
#include "compiler.h"
#include "peer.h"
#include "texts.h"

enum { MOST_STATISTICS = 32, MOST_BINDINGS = 16 };
#define GREATER 1.05 // a ratio that gets a line

// One figure of a kernel, from both compilers; sums are of kernels that were counted.
struct statistic {
    char name[VK_MAX_DESCRIPTION_SIZE];
    double ours, theirs; // of the kernel at hand; negative: not told
    double log_sum, sum_ours, sum_theirs;
    unsigned num_ratios, num_kernels, num_greater, only_ours, only_theirs;
};

static struct driver {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkDevice device;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    bool has_statistics;
    PFN_vkGetPipelineExecutableStatisticsKHR get_statistics;
} gpu;

static struct statistic statistics[MOST_STATISTICS];
static size_t num_statistics;
static bool shows_all;

// --- the device --------------------------------------------------------------------------

static bool failed(const char *call, VkResult result)
{
    if (result != VK_SUCCESS)
        fprintf(stderr, "%s: VkResult %d\n", call, (int)result);
    return result != VK_SUCCESS;
}

static bool has_extension(const char *name)
{
    uint32_t count = 0;
    vkEnumerateDeviceExtensionProperties(gpu.physical, NULL, &count, NULL);
    VkExtensionProperties *list = calloc(count + 1, sizeof(*list));
    bool found = false;
    if (list)
        vkEnumerateDeviceExtensionProperties(gpu.physical, NULL, &count, list);
    for (uint32_t i = 0; list && i < count; i++)
        found |= strcmp(list[i].extensionName, name) == 0;
    free(list);
    return found;
}

// False: there is no device.
static bool find_device(void)
{
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &app};
    uint32_t count = 1;
    if (failed("vkCreateInstance", vkCreateInstance(&info, NULL, &gpu.instance)))
        return false;
    VkResult result = vkEnumeratePhysicalDevices(gpu.instance, &count, &gpu.physical);
    if ((result != VK_SUCCESS && result != VK_INCOMPLETE) || count == 0) {
        fprintf(stderr, "no device of Vulkan\n");
        return false;
    }
    vkGetPhysicalDeviceProperties(gpu.physical, &gpu.properties);
    gpu.has_statistics =
        has_extension(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    return true;
}

// All features that the device has, but for robust access, as the backends have it.
// False, and why, where it has no statistics and these are needed.
static bool open_device(bool needs_statistics)
{
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables = {
        .sType =
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
    VkPhysicalDeviceVulkan12Features features12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .pNext = gpu.has_statistics ? &executables : NULL};
    VkPhysicalDeviceVulkan11Features features11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .pNext = &features12};
    VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &features11};
    vkGetPhysicalDeviceFeatures2(gpu.physical, &features);
    features.features.robustBufferAccess = VK_FALSE;
    gpu.has_statistics = gpu.has_statistics && executables.pipelineExecutableInfo;
    if (needs_statistics && !gpu.has_statistics) {
        fprintf(stderr, "%s has no %s\n", gpu.properties.deviceName,
                VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
        return false;
    }
    const char *name = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType =
                                               VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &features,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = gpu.has_statistics,
                                     .ppEnabledExtensionNames = &name};
    if (failed("vkCreateDevice", vkCreateDevice(gpu.physical, &info, NULL, &gpu.device)))
        return false;
    gpu.get_statistics = (PFN_vkGetPipelineExecutableStatisticsKHR)vkGetDeviceProcAddr(
        gpu.device, "vkGetPipelineExecutableStatisticsKHR");
    return true;
}

// One layout for all kernels: a shader need not use all that its layout has.
static bool make_layout(void)
{
    VkDescriptorSetLayoutBinding bindings[MOST_BINDINGS];
    for (uint32_t i = 0; i < MOST_BINDINGS; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = MOST_BINDINGS,
        .pBindings = bindings};
    const VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                       .size = gpu.properties.limits.maxPushConstantsSize /
                                               4 * 4};
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &gpu.set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &range};
    return !failed("vkCreateDescriptorSetLayout",
                   vkCreateDescriptorSetLayout(gpu.device, &set, NULL, &gpu.set_layout)) &&
           !failed("vkCreatePipelineLayout",
                   vkCreatePipelineLayout(gpu.device, &layout, NULL, &gpu.layout));
}

static void close_device(void)
{
    if (gpu.device) {
        vkDestroyPipelineLayout(gpu.device, gpu.layout, NULL);
        vkDestroyDescriptorSetLayout(gpu.device, gpu.set_layout, NULL);
        vkDestroyDevice(gpu.device, NULL);
    }
    if (gpu.instance)
        vkDestroyInstance(gpu.instance, NULL);
}

// --- figures -----------------------------------------------------------------------------

static void tell(const char *name, bool is_ours, double value)
{
    size_t i = 0;
    while (i < num_statistics && strcmp(statistics[i].name, name) != 0)
        i++;
    if (i == MOST_STATISTICS)
        return;
    if (i == num_statistics) {
        statistics[num_statistics++] = (struct statistic){.ours = -1, .theirs = -1};
        snprintf(statistics[i].name, sizeof(statistics[i].name), "%s", name);
    }
    *(is_ours ? &statistics[i].ours : &statistics[i].theirs) = value;
}

static double number_of(const VkPipelineExecutableStatisticKHR *statistic)
{
    switch (statistic->format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
        return statistic->value.b32;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
        return (double)statistic->value.i64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
        return (double)statistic->value.u64;
    default:
        return statistic->value.f64;
    }
}

// Those of the pipeline's first executable: compute pipelines have one.
static void tell_statistics(VkPipeline pipeline, bool is_ours)
{
    const VkPipelineExecutableInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline};
    VkPipelineExecutableStatisticKHR list[MOST_STATISTICS];
    uint32_t count = MOST_STATISTICS;
    for (size_t i = 0; i < MOST_STATISTICS; i++)
        list[i] = (VkPipelineExecutableStatisticKHR){
            .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR};
    VkResult result = gpu.get_statistics(gpu.device, &info, &count, list);
    if (result != VK_INCOMPLETE && failed("vkGetPipelineExecutableStatisticsKHR", result))
        return;
    for (uint32_t i = 0; i < count; i++)
        tell(list[i].name, is_ours, number_of(&list[i]));
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

// Makes a pipeline of a module, and tells its figures.
static bool measure(const struct glsl_result *module, bool is_ours)
{
    const VkShaderModuleCreateInfo words = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = module->num_words * sizeof(uint32_t),
        .pCode = module->words};
    VkShaderModule shader;
    VkPipeline pipeline;
    if (failed("vkCreateShaderModule",
               vkCreateShaderModule(gpu.device, &words, NULL, &shader)))
        return false;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = gpu.has_statistics ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = shader,
                  .pName = "main"},
        .layout = gpu.layout};
    double begin = now_us();
    VkResult result =
        vkCreateComputePipelines(gpu.device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline);
    double time = now_us() - begin;
    vkDestroyShaderModule(gpu.device, shader, NULL);
    if (failed("vkCreateComputePipelines", result))
        return false;
    tell("bytes of SPIR-V", is_ours, (double)words.codeSize);
    tell("vkCreateComputePipelines, us", is_ours, time);
    if (gpu.has_statistics)
        tell_statistics(pipeline, is_ours);
    vkDestroyPipeline(gpu.device, pipeline, NULL);
    return true;
}

// Adds the kernel at hand to the sums, and prints what is to be shown of it.
static void count_kernel(const char *name)
{
    for (size_t i = 0; i < num_statistics; i++) {
        struct statistic *s = &statistics[i];
        if (s->ours < 0 || s->theirs < 0)
            continue;
        s->num_kernels++;
        s->sum_ours += s->ours;
        s->sum_theirs += s->theirs;
        s->only_ours += s->ours > 0 && s->theirs == 0;
        s->only_theirs += s->theirs > 0 && s->ours == 0;
        bool is_greater = s->ours > s->theirs * GREATER;
        s->num_greater += is_greater;
        if (s->ours > 0 && s->theirs > 0) {
            s->log_sum += log(s->ours / s->theirs);
            s->num_ratios++;
        }
        bool is_time = strncmp(s->name, "vkCreate", 8) == 0; // of one run: not shown
        if (shows_all || (is_greater && !is_time))
            printf("%-36s %-32s %10.0f %10.0f %7.3f\n", name, s->name, s->ours, s->theirs,
                   s->theirs > 0 ? s->ours / s->theirs
                   : s->ours > 0 ? INFINITY
                                 : 1);
    }
    fflush(stdout);
}

static void print_sums(void)
{
    printf("\n%-32s %8s %14s %14s %11s %9s %10s %12s\n", "in all", "kernels", "ours",
           "theirs", "geom. mean", "over 1.05", "only ours", "only theirs");
    for (size_t i = 0; i < num_statistics; i++) {
        const struct statistic *s = &statistics[i];
        printf("%-32s %8u %14.0f %14.0f %11.3f %9u %10u %12u\n", s->name, s->num_kernels,
               s->sum_ours, s->sum_theirs,
               s->num_ratios ? exp(s->log_sum / s->num_ratios) : 1.0, s->num_greater,
               s->only_ours, s->only_theirs);
    }
}

// --- kernels -----------------------------------------------------------------------------

enum outcome { COMPARED, REFUSED, FAILED };

// The compilers take turns in being first, as the driver may be slower to begin with.
static enum outcome compare(const struct shader_text *text, bool theirs_first)
{
    const struct glsl_source source = texts_source(text);
    struct glsl_result ours = {0}, theirs = {0};
    enum outcome outcome = REFUSED;
    if (peer_compile_alone(&source, &theirs) && glsl_compile(&source, &ours)) {
        const struct glsl_result *pair[] = {theirs_first ? &theirs : &ours,
                                            theirs_first ? &ours : &theirs};
        for (size_t i = 0; i < num_statistics; i++)
            statistics[i].ours = statistics[i].theirs = -1;
        bool done = measure(pair[0], !theirs_first) && measure(pair[1], theirs_first);
        outcome = done ? COMPARED : FAILED;
    }
    glsl_result_finish(&ours);
    glsl_result_finish(&theirs);
    if (outcome == COMPARED)
        count_kernel(text->name);
    else
        printf("%-36s %s\n", text->name,
               outcome == FAILED ? "the driver fails" : "one compiler refuses it");
    return outcome;
}

static int compare_all(const struct shader_texts *texts, bool programs)
{
    unsigned counts[3] = {0};
    for (size_t i = 0; i < texts->count; i++) {
        const struct shader_text *text = &texts->items[i];
        bool is_program = strncmp(text->name, "program ", 8) == 0;
        if (!(text->flags & GLSL_KEEPS_FUNCTIONS) && (programs || !is_program))
            counts[compare(text, i % 2)]++;
    }
    print_sums();
    printf("%u kernels compared, %u refused by a compiler, %u by the driver\n",
           counts[COMPARED], counts[REFUSED], counts[FAILED]);
    return counts[COMPARED] == 0;
}

int main(int argc, char **argv)
{
    bool times = false, programs = false;
    const struct {
        const char *name;
        bool *value;
    } options[] = {{"--times", &times}, {"--programs", &programs}, {"--all", &shows_all}};
    const char *word = NULL;
    for (int i = 1; i < argc; i++) {
        size_t at = 0;
        while (at < 3 && strcmp(argv[i], options[at].name) != 0)
            at++;
        if (at < 3)
            *options[at].value = true;
        else if (argv[i][0] != '-' && !word)
            word = argv[i];
        else
            return fprintf(stderr,
                           "usage: pipelines [--times] [--all] [--programs] [WORD]\n"),
                   2;
    }
    setenv("__GL_SHADER_DISK_CACHE", "0", 1); // NVIDIA: each compilation is one
    setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
    int code = 77;
    if (find_device() && open_device(!times) && make_layout()) {
        struct shader_texts texts = texts_collect(word);
        printf("%s; ours, theirs, and ours over theirs\n", gpu.properties.deviceName);
        code = compare_all(&texts, programs);
        texts_free(&texts);
    }
    close_device();
    return code;
}
