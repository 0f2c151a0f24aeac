// SPDX-License-Identifier: MIT
// Pipelines: compiled once for each code and set of constants, and reference counted.
// Pipelines without users are kept up to a limit, and evicted in LRU order.
//
// The driver's own cache of compiled pipelines goes to the host's disk cache when the
// device is closed, so that the next process starts warm.
#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include "spirv_alias.h"
#include "spirv_preserve.h"
#include "ahead.h"

// --- the driver's cache on disk --------------------------------------------------------

#define CACHE_KEY_SIZE 256

// The key in the disk cache: all that the driver's cache depends on.
static size_t cache_key(const tn_device *device, char key[CACHE_KEY_SIZE])
{
    const VkPhysicalDeviceProperties *properties = &device->facts.properties;
    memset(key, 0, CACHE_KEY_SIZE);
    int used =
        snprintf(key, CACHE_KEY_SIZE - VK_UUID_SIZE, "vulkan pipelines/1 %s %s %s %x",
                 device->flavour->name, properties->deviceName, device->facts.driver,
                 properties->driverVersion);
    size_t at = (size_t)used < CACHE_KEY_SIZE - VK_UUID_SIZE
                    ? (size_t)used
                    : CACHE_KEY_SIZE - VK_UUID_SIZE;
    memcpy(key + at, properties->pipelineCacheUUID, VK_UUID_SIZE);
    return at + VK_UUID_SIZE;
}

static VkResult create_cache(tn_device *device, const void *data, uint64_t size,
                             VkPipelineCache *out)
{
    const VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
        .initialDataSize = size,
        .pInitialData = size ? data : NULL};
    return device->vk->CreatePipelineCache(device->handle, &info, NULL, out);
}

tn_status vk_shaders_init(tn_device *device)
{
    const tn_host *host = device->host;
    const tn_host_cache *disk = host->query(host, TN_HOST_CACHE);
    void *data = NULL;
    uint64_t size = 0;
    char key[CACHE_KEY_SIZE];
    size_t key_size = cache_key(device, key);
    if (!disk || disk->get(host, key, key_size, &data, &size) != TN_OK)
        size = 0;
    uint64_t used = size <= VK_MAX_CACHE_BYTES ? size : 0;
    VkResult result = create_cache(device, data, used, &device->shaders.cache);
    // The stored data may be the reason.
    if (result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST && used > 0)
        result = create_cache(device, NULL, 0, &device->shaders.cache);
    if (size)
        host->free(host, data);
    if (result != VK_SUCCESS)
        device->shaders.cache = VK_NULL_HANDLE;
    return vk_check(device, result, "vkCreatePipelineCache");
}

static void store_cache(tn_device *device)
{
    const tn_host *host = device->host;
    const tn_host_cache *disk = host->query(host, TN_HOST_CACHE);
    size_t size = 0;
    if (!disk || device->shaders.num_made == 0 ||
        device->vk->GetPipelineCacheData(device->handle, device->shaders.cache, &size,
                                         NULL) != VK_SUCCESS)
        return;
    void *data = malloc(size);
    char key[CACHE_KEY_SIZE];
    size_t key_size = cache_key(device, key);
    if (data && device->vk->GetPipelineCacheData(device->handle, device->shaders.cache,
                                                 &size, data) == VK_SUCCESS) {
        char used_by[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE + sizeof(device->facts.driver) + 2];
        snprintf(used_by, sizeof(used_by), "%s, %s", device->facts.properties.deviceName,
                 device->facts.driver);
        disk->put(host, key, key_size, data, size,
                  &(tn_cache_about){.struct_size = sizeof(tn_cache_about),
                                    .kind = "pipelines",
                                    .device = used_by});
    }
    free(data);
}

// --- what a pipeline was made of -------------------------------------------------------

struct vk_source {
    struct vk_pipeline_desc desc; // `code` gives the words
    uint64_t size;                // bytes of the words
    char name[160];
    tn_vulkan_constant spec[VK_MAX_SPEC];
    uint32_t words[];
};

static tn_status source_code(tn_device *device, void *context, struct vk_code *out)
{
    (void)device;
    const struct vk_source *source = context;
    *out = (struct vk_code){.words = source->words, .size = source->size};
    return TN_OK;
}

static struct vk_source *make_source(const struct vk_pipeline_desc *desc,
                                     const struct vk_code *code)
{
    size_t entry = desc->entry ? strlen(desc->entry) + 1 : 0;
    struct vk_source *source = malloc(sizeof(*source) + code->size + entry);
    if (!source)
        return NULL;
    char *entry_at = (char *)source->words + code->size;
    source->desc = *desc;
    source->desc.name = source->name;
    source->desc.spec = source->spec;
    source->desc.entry = entry > 0 ? memcpy(entry_at, desc->entry, entry) : NULL;
    source->desc.code = source_code;
    source->desc.context = source;
    source->size = code->size;
    snprintf(source->name, sizeof(source->name), "%s", desc->name);
    if (desc->num_spec > 0)
        memcpy(source->spec, desc->spec, desc->num_spec * sizeof(desc->spec[0]));
    memcpy(source->words, code->words, code->size);
    return source;
}

struct vk_pipeline_desc vk_pipeline_describe(const struct vk_pipeline *pipeline)
{
    return pipeline->source->desc;
}

void vk_pipeline_destroy(tn_device *device, struct vk_pipeline *pipeline)
{
    const struct vk_device_api *vk = device->vk;
    if (pipeline->handle)
        vk->DestroyPipeline(device->handle, pipeline->handle, NULL);
    if (pipeline->layout)
        vk->DestroyPipelineLayout(device->handle, pipeline->layout, NULL);
    if (pipeline->set_layout)
        vk->DestroyDescriptorSetLayout(device->handle, pipeline->set_layout, NULL);
    free(pipeline->source);
    free(pipeline);
}

static void destroy_all(tn_device *device, struct vk_pipeline *list)
{
    while (list) {
        struct vk_pipeline *pipeline = list;
        list = pipeline->next;
        vk_pipeline_destroy(device, pipeline);
    }
}

void vk_shaders_finish(tn_device *device)
{
    if (!device->shaders.cache)
        return;
    store_cache(device);
    for (uint32_t i = 0; i < VK_PIPELINE_BUCKETS; i++)
        destroy_all(device, device->shaders.buckets[i]);
    device->vk->DestroyPipelineCache(device->handle, device->shaders.cache, NULL);
}

// --- making a pipeline -----------------------------------------------------------------

// Storage buffers at bindings 0, 1, ...
static VkResult create_set_layout(tn_device *device, const struct vk_pipeline_desc *desc,
                                  VkDescriptorSetLayout *out)
{
    VkDescriptorSetLayoutBinding bindings[VK_MAX_OPERANDS];
    VkDescriptorBindingFlags flags[VK_MAX_OPERANDS];
    for (uint32_t i = 0; i < desc->num_bindings; i++) {
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
        flags[i] = VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT;
    }
    const VkDescriptorSetLayoutBindingFlagsCreateInfo binding_flags = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO,
        .bindingCount = desc->num_bindings,
        .pBindingFlags = flags};
    bool late = device->facts.update_after_bind;
    const VkDescriptorSetLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .pNext = late ? &binding_flags : NULL,
        .flags = late ? VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT : 0,
        .bindingCount = desc->num_bindings,
        .pBindings = bindings};
    return device->vk->CreateDescriptorSetLayout(device->handle, &info, NULL, out);
}

// *out_call names the call that failed.
static VkResult create_layouts(tn_device *device, const struct vk_pipeline_desc *desc,
                               struct vk_pipeline *pipeline, const char **out_call)
{
    *out_call = "vkCreateDescriptorSetLayout";
    VkResult result = create_set_layout(device, desc, &pipeline->set_layout);
    if (result != VK_SUCCESS) {
        pipeline->set_layout = VK_NULL_HANDLE;
        return result;
    }
    *out_call = "vkCreatePipelineLayout";
    result = device->vk->CreatePipelineLayout(
        device->handle,
        &(VkPipelineLayoutCreateInfo){
            .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
            .setLayoutCount = 1,
            .pSetLayouts = &pipeline->set_layout,
            .pushConstantRangeCount = desc->num_push > 0,
            .pPushConstantRanges =
                &(VkPushConstantRange){.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                       .size = desc->num_push * 4},
        },
        NULL, &pipeline->layout);
    if (result != VK_SUCCESS)
        pipeline->layout = VK_NULL_HANDLE;
    return result;
}

// The driver's cache to compile with, valid until leave_cache is called.
static VkPipelineCache enter_cache(tn_device *device)
{
    struct vk_shaders *shaders = &device->shaders;
    pthread_mutex_lock(&shaders->lock);
    shaders->num_compiling++;
    VkPipelineCache cache = shaders->cache;
    pthread_mutex_unlock(&shaders->lock);
    return cache;
}

// Entries cannot be removed from a driver's cache: when it has too many, and no thread
// compiles with it, an empty one replaces it. `made`: a pipeline was compiled.
static void leave_cache(tn_device *device, bool made)
{
    struct vk_shaders *shaders = &device->shaders;
    VkPipelineCache old = VK_NULL_HANDLE, empty;
    pthread_mutex_lock(&shaders->lock);
    shaders->num_compiling--;
    shaders->num_made += made;
    if (shaders->num_compiling == 0 && shaders->num_made >= VK_MAX_CACHED &&
        create_cache(device, NULL, 0, &empty) == VK_SUCCESS) {
        old = shaders->cache;
        shaders->cache = empty;
        shaders->num_made = 0;
    }
    pthread_mutex_unlock(&shaders->lock);
    if (old)
        device->vk->DestroyPipelineCache(device->handle, old, NULL);
}

static void release_code(struct vk_code *code)
{
    if (code->release)
        code->release(code);
}

// A module that computes what its words say, on drivers that assume more than they say.
static VkResult create_module(tn_device *device, const struct vk_code *code,
                              VkShaderModule *out_module)
{
    struct vk_code aliased, exact;
    VkResult result = VK_ERROR_OUT_OF_HOST_MEMORY;
    if (!spirv_alias_buffers(code, &aliased))
        return result;
    if (spirv_preserve_nan(&device->facts, &aliased, &exact)) {
        result = device->vk->CreateShaderModule(
            device->handle,
            &(VkShaderModuleCreateInfo){.sType =
                                            VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                        .codeSize = exact.size,
                                        .pCode = exact.words},
            NULL, out_module);
        release_code(&exact);
    }
    release_code(&aliased);
    return result;
}

static VkResult shader_create_handle(tn_device *device, const struct vk_pipeline_desc *desc,
                                     const struct vk_code *code,
                                     struct vk_pipeline *pipeline, const char **out_call)
{
    VkSpecializationMapEntry entries[VK_MAX_SPEC];
    for (uint32_t i = 0; i < desc->num_spec; i++)
        entries[i] = (VkSpecializationMapEntry){
            desc->spec[i].id,
            (uint32_t)(i * sizeof(desc->spec[i]) + offsetof(tn_vulkan_constant, value)), 4};
    const VkSpecializationInfo spec = {.mapEntryCount = desc->num_spec,
                                       .pMapEntries = entries,
                                       .dataSize = desc->num_spec * sizeof(desc->spec[0]),
                                       .pData = desc->spec};
    VkShaderModule module;
    *out_call = "vkCreateShaderModule";
    VkResult result = create_module(device, code, &module);
    if (result != VK_SUCCESS)
        return result;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = desc->entry ? desc->entry : "main",
                  .pSpecializationInfo = &spec},
        .layout = pipeline->layout};
    *out_call = "vkCreateComputePipelines";
    VkPipelineCache cache = desc->is_alone ? VK_NULL_HANDLE : enter_cache(device);
    uint64_t begin_ns = vk_now_ns();
    result = device->vk->CreateComputePipelines(device->handle, cache, 1, &info, NULL,
                                                &pipeline->handle);
    pipeline->driver_ns = vk_now_ns() - begin_ns;
    if (!desc->is_alone)
        leave_cache(device, result == VK_SUCCESS);
    if (result != VK_SUCCESS)
        pipeline->handle = VK_NULL_HANDLE;
    device->vk->DestroyShaderModule(device->handle, module, NULL);
    return result;
}

static tn_status pipeline_create(tn_device *device, const struct vk_pipeline_desc *desc,
                                 struct vk_hash key, const struct vk_code *code,
                                 struct vk_pipeline **out_pipeline)
{
    struct vk_pipeline *pipeline = calloc(1, sizeof(*pipeline));
    if (pipeline && !(pipeline->source = make_source(desc, code))) {
        free(pipeline);
        pipeline = NULL;
    }
    if (!pipeline)
        return device->host->fail(device->host, TN_ERR_MEMORY, "out of memory");
    pipeline->key = key;
    pipeline->size = code->size;
    pipeline->num_bindings = desc->num_bindings;
    const char *call;
    VkResult result = create_layouts(device, desc, pipeline, &call);
    if (result == VK_SUCCESS)
        result = shader_create_handle(device, desc, code, pipeline, &call);
    if (result == VK_SUCCESS) {
        *out_pipeline = pipeline;
        return TN_OK;
    }
    char what[160];
    snprintf(what, sizeof(what), "kernel %.100s: %s", desc->name, call);
    vk_pipeline_destroy(device, pipeline);
    return vk_fail(device, result, what);
}

tn_status vk_pipeline_make(tn_device *device, const struct vk_pipeline_desc *desc,
                           const struct vk_code *code, struct vk_pipeline **out_pipeline)
{
    struct vk_pipeline_desc alone = *desc;
    alone.is_alone = true;
    return pipeline_create(device, &alone, (struct vk_hash){0, 0}, code, out_pipeline);
}

struct vk_hash vk_pipeline_key(const struct vk_pipeline_desc *desc)
{
    struct vk_hash h = desc->key;
    if (desc->num_spec > 0)
        h = vk_hash_bytes(h, desc->spec, desc->num_spec * sizeof(desc->spec[0]));
    if (desc->entry)
        h = vk_hash_text(h, desc->entry);
    return vk_hash_u64(h, desc->num_bindings << 8 | desc->num_push);
}

// --- the cache of pipelines ------------------------------------------------------------

static struct vk_pipeline **shader_bucket_of(struct vk_shaders *shaders, struct vk_hash key)
{
    return &shaders->buckets[key.lo % VK_PIPELINE_BUCKETS];
}

static void remove_unused(struct vk_shaders *shaders, struct vk_pipeline *pipeline)
{
    *(pipeline->older ? &pipeline->older->newer : &shaders->oldest) = pipeline->newer;
    *(pipeline->newer ? &pipeline->newer->older : &shaders->newest) = pipeline->older;
    pipeline->older = pipeline->newer = NULL;
}

static void add_unused(struct vk_shaders *shaders, struct vk_pipeline *pipeline)
{
    pipeline->older = shaders->newest;
    *(shaders->newest ? &shaders->newest->newer : &shaders->oldest) = pipeline;
    shaders->newest = pipeline;
}

// Finds a pipeline and adds a user to it. NULL: there is none. The lock is held.
static struct vk_pipeline *shader_use(struct vk_shaders *shaders, struct vk_hash key)
{
    struct vk_pipeline *pipeline = *shader_bucket_of(shaders, key);
    while (pipeline && !vk_hash_equal(pipeline->key, key))
        pipeline = pipeline->next;
    if (pipeline && pipeline->num_users++ == 0)
        remove_unused(shaders, pipeline);
    return pipeline;
}

static void shader_insert(struct vk_shaders *shaders, struct vk_pipeline *pipeline)
{
    struct vk_pipeline **bucket = shader_bucket_of(shaders, pipeline->key);
    pipeline->next = *bucket;
    pipeline->num_users = 1;
    *bucket = pipeline;
    shaders->num_pipelines++;
    shaders->size += pipeline->size;
}

// Unlinks pipelines without users while a limit is exceeded: gives a list by `next`. The
// lock is held.
static struct vk_pipeline *take_surplus(struct vk_shaders *shaders)
{
    struct vk_pipeline *surplus = NULL;
    while (shaders->oldest && (shaders->num_pipelines > VK_MAX_PIPELINES ||
                               shaders->size > VK_MAX_PIPELINE_BYTES)) {
        struct vk_pipeline *pipeline = shaders->oldest;
        struct vk_pipeline **at = shader_bucket_of(shaders, pipeline->key);
        while (*at != pipeline)
            at = &(*at)->next;
        *at = pipeline->next;
        remove_unused(shaders, pipeline);
        shaders->num_pipelines--;
        shaders->size -= pipeline->size;
        pipeline->next = surplus;
        surplus = pipeline;
    }
    return surplus;
}

static void drop_surplus(tn_device *device)
{
    struct vk_shaders *shaders = &device->shaders;
    pthread_mutex_lock(&shaders->lock);
    struct vk_pipeline *surplus = take_surplus(shaders);
    uint32_t left = shaders->num_pipelines;
    pthread_mutex_unlock(&shaders->lock);
    if (surplus)
        device->host->log(device->host, TN_LOG_DEBUG, VK_TOPIC,
                          "dropped pipelines that nobody uses: %u are left", left);
    destroy_all(device, surplus);
}

void vk_pipeline_release(tn_device *device, struct vk_pipeline *pipeline)
{
    struct vk_shaders *shaders = &device->shaders;
    pthread_mutex_lock(&shaders->lock);
    if (--pipeline->num_users == 0)
        add_unused(shaders, pipeline);
    pthread_mutex_unlock(&shaders->lock);
    drop_surplus(device);
}

// --- making one at a time --------------------------------------------------------------

static struct vk_making *find_making(const struct vk_shaders *shaders, struct vk_hash key)
{
    struct vk_making *making = shaders->making;
    while (making && !vk_hash_equal(making->key, key))
        making = making->next;
    return making;
}

// Whether another thread compiles the same code, for a pipeline with other constants. The
// lock is held.
static bool is_compiling(const struct vk_shaders *shaders, struct vk_hash code)
{
    const struct vk_making *making = shaders->making;
    while (making && !(making->in_code && vk_hash_equal(making->code, code)))
        making = making->next;
    return making != NULL;
}

// Finds the pipeline, or NULL: the calling thread makes it, and calls end_making(). While
// another thread makes it, the caller helps with other pipelines, then waits. The lock is
// held.
static struct vk_pipeline *find_or_begin(struct vk_shaders *shaders,
                                         struct vk_making *making, struct vk_ahead *ahead)
{
    struct vk_pipeline *pipeline;
    while (!(pipeline = shader_use(shaders, making->key)) &&
           find_making(shaders, making->key)) {
        pthread_mutex_unlock(&shaders->lock);
        bool helped = vk_ahead_help(ahead);
        pthread_mutex_lock(&shaders->lock);
        if (!helped && find_making(shaders, making->key))
            pthread_cond_wait(&shaders->made, &shaders->lock);
    }
    if (!pipeline) {
        making->next = shaders->making;
        shaders->making = making;
    }
    return pipeline;
}

// The lock is held.
static void end_making(struct vk_shaders *shaders, const struct vk_making *making)
{
    struct vk_making **at = &shaders->making;
    while (*at != making)
        at = &(*at)->next;
    *at = making->next;
    pthread_cond_broadcast(&shaders->made);
}

// Compiles one code on one thread at a time: the next one finds it in the disk cache.
static tn_status shader_get_code(tn_device *device, const struct vk_pipeline_desc *desc,
                                 struct vk_making *making, struct vk_code *out)
{
    struct vk_shaders *shaders = &device->shaders;
    pthread_mutex_lock(&shaders->lock);
    while (is_compiling(shaders, making->code))
        pthread_cond_wait(&shaders->made, &shaders->lock);
    making->in_code = true;
    pthread_mutex_unlock(&shaders->lock);
    tn_status status = desc->code(device, desc->context, out);
    pthread_mutex_lock(&shaders->lock);
    making->in_code = false;
    pthread_cond_broadcast(&shaders->made);
    pthread_mutex_unlock(&shaders->lock);
    return status;
}

static tn_status make_once(tn_device *device, const struct vk_pipeline_desc *desc,
                           struct vk_making *making, struct vk_pipeline **out_pipeline)
{
    struct vk_code code = {0};
    uint64_t begin_ns = vk_now_ns();
    tn_status status = shader_get_code(device, desc, making, &code);
    if (status != TN_OK)
        return status;
    uint64_t code_ns = vk_now_ns() - begin_ns;
    status = pipeline_create(device, desc, making->key, &code, out_pipeline);
    if (code.release)
        code.release(&code);
    if (status == TN_OK)
        device->host->log(device->host, TN_LOG_DEBUG, VK_TOPIC,
                          "made the pipeline %s in %.3f ms: code %.3f, driver %.3f",
                          desc->name, (double)(vk_now_ns() - begin_ns) * 1e-6,
                          (double)code_ns * 1e-6,
                          (double)(*out_pipeline)->driver_ns * 1e-6);
    return status;
}

// A checksum does not say that code of the disk cache is what was compiled. What is refused
// is compiled anew, which replaces the entries.
static tn_status shader_make(tn_device *device, const struct vk_pipeline_desc *desc,
                             struct vk_making *making, struct vk_pipeline **out_pipeline)
{
    struct vk_shaders *shaders = &device->shaders;
    unsigned loaded = atomic_load(&shaders->num_loaded);
    tn_status status = make_once(device, desc, making, out_pipeline);
    if (status == TN_OK || status == TN_ERR_MEMORY || status == TN_ERR_DEVICE ||
        loaded == atomic_load(&shaders->num_loaded))
        return status;
    atomic_fetch_add(&shaders->num_fresh, 1);
    status = make_once(device, desc, making, out_pipeline);
    atomic_fetch_sub(&shaders->num_fresh, 1);
    if (status == TN_OK)
        device->host->log(device->host, TN_LOG_WARN, VK_TOPIC,
                          "kernel %s: its code in the cache was refused, and is compiled "
                          "anew",
                          desc->name);
    return status;
}

// Compiles without the lock.
tn_status vk_pipeline_get(tn_device *device, const struct vk_pipeline_desc *desc,
                          struct vk_ahead *ahead, bool is_helper,
                          struct vk_pipeline **out_pipeline)
{
    struct vk_shaders *shaders = &device->shaders;
    struct vk_making making = {.key = vk_pipeline_key(desc), .code = desc->key};
    *out_pipeline = NULL;
    pthread_mutex_lock(&shaders->lock);
    bool is_others = is_helper && find_making(shaders, making.key);
    struct vk_pipeline *pipeline =
        is_others ? NULL : find_or_begin(shaders, &making, ahead);
    pthread_mutex_unlock(&shaders->lock);
    *out_pipeline = pipeline;
    if (pipeline || is_others)
        return TN_OK;
    vk_ahead_more(ahead, is_helper);
    tn_status status = shader_make(device, desc, &making, &pipeline);
    pthread_mutex_lock(&shaders->lock);
    end_making(shaders, &making);
    if (status == TN_OK)
        shader_insert(shaders, pipeline);
    pthread_mutex_unlock(&shaders->lock);
    if (status != TN_OK)
        return status;
    drop_surplus(device);
    *out_pipeline = pipeline;
    return TN_OK;
}
