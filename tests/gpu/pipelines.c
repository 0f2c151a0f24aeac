// SPDX-License-Identifier: MIT
// What a driver makes of our compiler's SPIR-V beside that of glslang with its optimiser,
// kernel by kernel: the statistics of VK_KHR_pipeline_executable_properties (NVIDIA: size
// of the binary, registers), and how long the driver compiled.
//
//   pipelines [--times] [--programs] [--worst N] [--jobs N] [--seconds N] [WORD]
//
// Shows the sums, and of each figure the N kernels (15) where ours is greatest beside the
// other. --times: without the extension, which is needed otherwise (77 ends the program);
// --programs: generated kernels, too; --jobs: as many processes at once (1); --seconds:
// no kernel begins later; WORD: kernels whose names contain it. Specialisation constants
// have their defaults.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vulkan/vulkan.h>
#include "compiler.h"
#include "peer.h"
#include "texts.h"

enum { MOST_STATISTICS = 32, MOST_BINDINGS = 16, MOST_JOBS = 64, MOST_WORST = 64 };
#define GREATER 1.05 // a ratio that is counted

// One figure of the kernel at hand, from both compilers; negative: not told.
struct figure {
    char name[VK_MAX_DESCRIPTION_SIZE];
    double ours, theirs;
};

// A kernel's place among the worst.
struct row {
    char kernel[64];
    double ours, theirs, ratio;
};

// One figure of all kernels.
struct statistic {
    char name[VK_MAX_DESCRIPTION_SIZE];
    double log_sum, sum_ours, sum_theirs;
    unsigned num_ratios, num_kernels, num_greater, only_ours, only_theirs, num_worst;
    struct row worst[MOST_WORST]; // the worst first
};

static struct options {
    bool times, programs;
    unsigned worst, jobs, seconds;
    const char *word;
} options = {.worst = 15, .jobs = 1, .seconds = 3600};

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

static struct figure figures[MOST_STATISTICS];
static size_t num_figures;

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

// --- figures of a kernel -----------------------------------------------------------------

static void tell(const char *name, bool is_ours, double value)
{
    size_t i = 0;
    while (i < num_figures && strcmp(figures[i].name, name) != 0)
        i++;
    if (i == MOST_STATISTICS)
        return;
    if (i == num_figures) {
        figures[num_figures++] = (struct figure){.ours = -1, .theirs = -1};
        snprintf(figures[i].name, sizeof(figures[i].name), "%s", name);
    }
    *(is_ours ? &figures[i].ours : &figures[i].theirs) = value;
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

// --- kernels, in a process of their own --------------------------------------------------

// The compilers take turns in being first, as the driver may be slower to begin with. What
// became of the kernel goes to `out`: a line each figure, "=" and its kernel at the end.
static void compare(const struct shader_text *text, bool theirs_first, FILE *out)
{
    const struct glsl_source source = texts_source(text);
    struct glsl_result ours = {0}, theirs = {0};
    const char *outcome = "refused";
    num_figures = 0;
    if (peer_compile_alone(&source, &theirs) && glsl_compile(&source, &ours)) {
        const struct glsl_result *pair[] = {theirs_first ? &theirs : &ours,
                                            theirs_first ? &ours : &theirs};
        bool done = measure(pair[0], !theirs_first) && measure(pair[1], theirs_first);
        outcome = done ? "compared" : "failed";
        for (size_t i = 0; done && i < num_figures; i++)
            if (figures[i].ours >= 0 && figures[i].theirs >= 0)
                fprintf(out, "%.17g %.17g %s\n", figures[i].ours, figures[i].theirs,
                        figures[i].name);
    }
    glsl_result_finish(&ours);
    glsl_result_finish(&theirs);
    fprintf(out, "=%s %s\n", outcome, text->name);
    fflush(out);
}

// Every jobs'th kernel, from `job` on. The process's exit code.
static int run_job(unsigned job, FILE *out)
{
    if (!find_device() || !open_device(!options.times) || !make_layout()) {
        close_device();
        return 77;
    }
    if (job == 0)
        printf("%s; ours, theirs, and ours over theirs\n", gpu.properties.deviceName);
    fflush(stdout);
    struct shader_texts texts = texts_collect(options.word);
    const double end = now_us() + options.seconds * 1e6;
    for (size_t i = 0, counted = 0; i < texts.count && now_us() < end; i++) {
        const struct shader_text *text = &texts.items[i];
        bool is_program = strncmp(text->name, "program ", 8) == 0;
        if (text->flags & GLSL_KEEPS_FUNCTIONS || (is_program && !options.programs))
            continue;
        if (counted++ % options.jobs == job)
            compare(text, counted / options.jobs % 2, out);
    }
    texts_free(&texts);
    close_device();
    return 0;
}

// --- sums --------------------------------------------------------------------------------

static struct statistic statistics[MOST_STATISTICS];
static size_t num_statistics;
static unsigned num_compared, num_refused, num_failed;

static struct statistic *statistic_of(const char *name)
{
    size_t i = 0;
    while (i < num_statistics && strcmp(statistics[i].name, name) != 0)
        i++;
    if (i == MOST_STATISTICS)
        return NULL;
    if (i == num_statistics) {
        num_statistics++;
        snprintf(statistics[i].name, sizeof(statistics[i].name), "%.255s", name);
    }
    return &statistics[i];
}

static void add_row(struct statistic *s, const struct row *row)
{
    unsigned at = s->num_worst;
    while (at > 0 && s->worst[at - 1].ratio < row->ratio)
        at--;
    if (at >= options.worst)
        return;
    s->num_worst += s->num_worst < options.worst;
    for (unsigned i = s->num_worst - 1; i > at; i--)
        s->worst[i] = s->worst[i - 1];
    s->worst[at] = *row;
}

static void add_figure(const struct figure *f, const char *kernel)
{
    struct statistic *s = statistic_of(f->name);
    if (!s)
        return;
    s->num_kernels++;
    s->sum_ours += f->ours;
    s->sum_theirs += f->theirs;
    s->only_ours += f->ours > 0 && f->theirs <= 0;
    s->only_theirs += f->theirs > 0 && f->ours <= 0;
    s->num_greater += f->ours > f->theirs * GREATER;
    struct row row = {.ours = f->ours, .theirs = f->theirs};
    row.ratio = f->theirs > 0 ? f->ours / f->theirs : f->ours > 0 ? INFINITY : 1;
    if (f->ours > 0 && f->theirs > 0) {
        s->log_sum += log(row.ratio);
        s->num_ratios++;
    }
    snprintf(row.kernel, sizeof(row.kernel), "%s", kernel);
    add_row(s, &row);
}

// What a process wrote.
static void read_job(FILE *in)
{
    char line[512], outcome[16];
    int at = 0;
    rewind(in);
    num_figures = 0;
    while (fgets(line, sizeof(line), in)) {
        line[strcspn(line, "\n")] = '\0';
        struct figure *f = &figures[num_figures];
        if (sscanf(line, "=%15s %n", outcome, &at) == 1) {
            for (size_t i = 0; i < num_figures; i++)
                add_figure(&figures[i], line + at);
            if (num_figures == 0)
                printf("%-36s %s\n", line + at,
                       *outcome == 'f' ? "the driver fails" : "one compiler refuses it");
            *(num_figures > 0   ? &num_compared
              : *outcome == 'f' ? &num_failed
                                : &num_refused) += 1;
            num_figures = 0;
        } else if (num_figures < MOST_STATISTICS &&
                   sscanf(line, "%lf %lf %n", &f->ours, &f->theirs, &at) == 2) {
            snprintf(f->name, sizeof(f->name), "%s", line + at);
            num_figures++;
        }
    }
    fclose(in);
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
    for (size_t i = 0; i < num_statistics; i++) {
        const struct statistic *s = &statistics[i];
        if (strncmp(s->name, "vkCreate", 8) == 0)
            continue; // of one run
        printf("\n%s, the worst\n", s->name);
        for (unsigned k = 0; k < s->num_worst && s->worst[k].ratio > 1; k++)
            printf("  %-44s %10.0f %10.0f %7.3f\n", s->worst[k].kernel, s->worst[k].ours,
                   s->worst[k].theirs, s->worst[k].ratio);
    }
    printf("%u kernels compared, %u refused by a compiler, %u by the driver\n",
           num_compared, num_refused, num_failed);
}

// --- processes ---------------------------------------------------------------------------

// The worst exit code of all processes: a driver that crashes ends one alone.
static int run_jobs(void)
{
    FILE *files[MOST_JOBS];
    pid_t pids[MOST_JOBS];
    int worst = 0;
    for (unsigned i = 0; i < options.jobs; i++) {
        files[i] = tmpfile();
        if (!files[i])
            return perror("tmpfile"), 1;
        fflush(stdout);
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(run_job(i, files[i]));
    }
    for (unsigned i = 0; i < options.jobs; i++) {
        int status = 0, code = 1;
        if (pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status))
            code = WEXITSTATUS(status);
        if (code != 0 && code != 77)
            fprintf(stderr, "process %u of %u ended with status %d\n", i, options.jobs,
                    status);
        worst = code > worst ? code : worst;
        read_job(files[i]);
    }
    return worst;
}

static int usage(void)
{
    fprintf(stderr, "usage: pipelines [--times] [--programs] [--worst N] [--jobs N] "
                    "[--seconds N] [WORD]; at most 64 worst and jobs\n");
    return 2;
}

static bool read_options(int argc, char **argv)
{
    const struct {
        const char *name;
        unsigned *value;
        long most;
    } numbers[] = {{"--worst", &options.worst, MOST_WORST},
                   {"--jobs", &options.jobs, MOST_JOBS},
                   {"--seconds", &options.seconds, 3600}};
    for (int i = 1; i < argc; i++) {
        size_t at = 0;
        while (at < 3 && strcmp(argv[i], numbers[at].name) != 0)
            at++;
        if (at < 3) {
            long count = i + 1 < argc ? strtol(argv[++i], NULL, 10) : 0;
            if (count < 1 || count > numbers[at].most)
                return false;
            *numbers[at].value = (unsigned)count;
        } else if (strcmp(argv[i], "--times") == 0)
            options.times = true;
        else if (strcmp(argv[i], "--programs") == 0)
            options.programs = true;
        else if (argv[i][0] != '-' && !options.word)
            options.word = argv[i];
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (!read_options(argc, argv))
        return usage();
    setenv("__GL_SHADER_DISK_CACHE", "0", 1); // NVIDIA: each compilation is one
    setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
    int code = run_jobs();
    if (num_compared + num_refused + num_failed > 0)
        print_sums();
    return code != 0 ? code : num_compared == 0;
}
