// SPDX-License-Identifier: MIT
// The instance: Vulkan's loader, validation layers, and the list of usable devices.
#include "device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/launches.h>

static pthread_mutex_t instances_lock = PTHREAD_MUTEX_INITIALIZER;
// One for each runtime that asked; under instances_lock.
static struct vk_instance *instances;

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(
    VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
    const VkDebugUtilsMessengerCallbackDataEXT *data, void *context)
{
    struct vk_instance *instance = context;
    (void)types;
    bool is_error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
    atomic_fetch_add(&instance->num_messages, 1);
    instance->host->log(instance->host, is_error ? TN_LOG_ERROR : TN_LOG_WARN, VK_TOPIC,
                        "validation: %s", data->pMessage);
    return VK_FALSE;
}

static bool validation_wanted(const tn_host *host)
{
    const char *value = host->config(host, "TENON_VULKAN_VALIDATION");
    return value && strcmp(value, "") != 0 && strcmp(value, "0") != 0;
}

static bool has_layer(const struct vk_loader *loader, const char *name)
{
    uint32_t count = 0;
    if (loader->EnumerateInstanceLayerProperties(&count, NULL) != VK_SUCCESS || count == 0)
        return false;
    VkLayerProperties *layers = calloc(count, sizeof(*layers));
    bool found = false;
    if (layers && loader->EnumerateInstanceLayerProperties(&count, layers) >= 0)
        for (uint32_t i = 0; i < count && !found; i++)
            found = strcmp(layers[i].layerName, name) == 0;
    free(layers);
    return found;
}

static bool vk_instance_has_extension(const struct vk_loader *loader, const char *layer,
                                      const char *name)
{
    VkExtensionProperties all[32];
    uint32_t count = sizeof(all) / sizeof(all[0]);
    bool found = false;
    if (loader->EnumerateInstanceExtensionProperties(layer, &count, all) >= 0)
        for (uint32_t i = 0; i < count && !found; i++)
            found = strcmp(all[i].extensionName, name) == 0;
    return found;
}

static const VkDebugUtilsMessengerCreateInfoEXT messenger_info = {
    .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
    .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
    .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                   VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
    .pfnUserCallback = on_message,
};

// Appends to instance->reason.
static void add_reason(struct vk_instance *instance, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_reason(struct vk_instance *instance, const char *format, ...)
{
    va_list list;
    size_t used = strlen(instance->reason);
    va_start(list, format);
    vsnprintf(instance->reason + used, sizeof(instance->reason) - used, format, list);
    va_end(list);
}

// Names the variable, if set, that tells the loader which drivers to use.
static void add_driver_variable(struct vk_instance *instance)
{
    static const char *const names[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value && *value) {
            add_reason(instance, ", or correct %s=%.100s", names[i], value);
            return;
        }
    }
}

#define INSTALL_DRIVER                                                                     \
    "install the GPU's driver (mesa-vulkan-drivers has some, and one in software)"

static void say_no_instance(struct vk_instance *instance, VkResult result)
{
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
        add_reason(instance, "Vulkan's loader found no driver: " INSTALL_DRIVER);
        add_driver_variable(instance);
    } else {
        add_reason(instance, "vkCreateInstance: %s: VK_LOADER_DEBUG=all shows more",
                   vk_result_name(result));
    }
}

#define LAYER "VK_LAYER_KHRONOS_validation"

// The layer and extensions for validation, with the check of synchronisation if the layer
// has it. num_layers is 0 without validation.
struct validation {
    const char *layer;
    const char *extensions[2];
    uint32_t num_layers, num_extensions;
    VkValidationFeaturesEXT features;
};

static const VkValidationFeatureEnableEXT enabled_features[] = {
    VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};

static struct validation prepare_validation(const struct vk_instance *instance)
{
    const tn_host *host = instance->host;
    struct validation v = {.layer = LAYER,
                           .features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                        .enabledValidationFeatureCount = 1,
                                        .pEnabledValidationFeatures = enabled_features}};
    if (!validation_wanted(host))
        return v;
    if (!has_layer(&instance->loader, LAYER)) {
        host->log(host, TN_LOG_WARN, VK_TOPIC,
                  "TENON_VULKAN_VALIDATION is set, but " LAYER " is not installed");
        return v;
    }
    v.num_layers = 1;
    v.extensions[v.num_extensions++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    if (vk_instance_has_extension(&instance->loader, LAYER,
                                  VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME))
        v.extensions[v.num_extensions++] = VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME;
    else
        host->log(host, TN_LOG_WARN, VK_TOPIC,
                  "TENON_VULKAN_VALIDATION is set, but " LAYER
                  " checks no synchronisation: install a newer one");
    return v;
}

static bool create_instance(struct vk_instance *instance)
{
    const struct validation v = prepare_validation(instance);
    VkResult result = instance->loader.CreateInstance(
        &(VkInstanceCreateInfo){
            .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
            .pNext = v.num_extensions == 2 ? &v.features : NULL,
            .pApplicationInfo =
                &(VkApplicationInfo){.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                     .pApplicationName = "tenon",
                                     .pEngineName = "tenon",
                                     .apiVersion = VK_API_VERSION_1_2},
            .enabledLayerCount = v.num_layers,
            .ppEnabledLayerNames = &v.layer,
            .enabledExtensionCount = v.num_extensions,
            .ppEnabledExtensionNames = v.extensions,
        },
        NULL, &instance->handle);
    if (result != VK_SUCCESS) {
        instance->handle = NULL;
        say_no_instance(instance, result);
        return false;
    }
    vk_instance_api_load(&instance->loader, instance->handle, &instance->vk);
    if (v.num_layers && instance->vk.CreateDebugUtilsMessengerEXT) {
        VkDebugUtilsMessengerCreateInfoEXT info = messenger_info;
        info.pUserData = instance;
        if (instance->vk.CreateDebugUtilsMessengerEXT(instance->handle, &info, NULL,
                                                      &instance->messenger) != VK_SUCCESS)
            instance->messenger = VK_NULL_HANDLE;
    }
    return true;
}

// All devices of the drivers, in the loader's order, for free(). NULL: there is none, and
// instance->reason says why, or out of memory.
static VkPhysicalDevice *vk_instance_enumerate(struct vk_instance *instance,
                                               uint32_t *out_count)
{
    uint32_t count = 0;
    VkResult result = instance->vk.EnumeratePhysicalDevices(instance->handle, &count, NULL);
    VkPhysicalDevice *all = calloc(count + 1, sizeof(*all));
    if (result >= 0 && all)
        result = instance->vk.EnumeratePhysicalDevices(instance->handle, &count, all);
    if (result >= 0 && all && count > 0) {
        *out_count = count;
        return all;
    }
    if (result < 0)
        add_reason(instance,
                   "vkEnumeratePhysicalDevices: %s: VK_LOADER_DEBUG=all shows more",
                   vk_result_name(result));
    else if (all)
        add_reason(instance, "Vulkan's drivers found no device: check that this user may "
                             "open /dev/dri or /dev/nvidia*, or " INSTALL_DRIVER);
    free(all);
    return NULL;
}

// Lists the usable devices: hardware first, then software, each in the loader's order.
static void vk_instance_list_devices(struct vk_instance *instance)
{
    uint32_t count = 0;
    VkPhysicalDevice *all = vk_instance_enumerate(instance, &count);
    instance->devices = calloc(count + 1, sizeof(*all));
    for (int software = 0; software < 2 && all && instance->devices; software++) {
        for (uint32_t i = 0; i < count; i++) {
            struct vk_facts facts;
            bool usable = vk_facts_read(instance, all[i], &facts);
            if (!usable && !software)
                add_reason(instance, "%s%s %s", *instance->reason ? "; " : "",
                           facts.properties.deviceName, facts.reason);
            bool is_software = facts.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
            if (usable && is_software == (software == 1))
                instance->devices[instance->num_devices++] = all[i];
        }
    }
    free(all);
    if (instance->num_devices == 0) {
        if (count > 0 && *instance->reason)
            add_reason(instance, ": another driver may do more");
        else if (!*instance->reason)
            add_reason(instance, "out of memory");
    } else if (*instance->reason) { // other devices are usable
        instance->host->log(instance->host, TN_LOG_INFO, VK_TOPIC, "%s", instance->reason);
        instance->reason[0] = '\0';
    }
}

static void instance_destroy(struct vk_instance *instance)
{
    if (instance->messenger)
        instance->vk.DestroyDebugUtilsMessengerEXT(instance->handle, instance->messenger,
                                                   NULL);
    if (instance->handle)
        instance->vk.DestroyInstance(instance->handle, NULL);
    vk_loader_close(&instance->loader);
    free(instance->devices);
    free(instance);
}

static struct vk_instance *instance_create(const tn_host *host)
{
    struct vk_instance *instance = calloc(1, sizeof(*instance));
    if (!instance)
        return NULL;
    instance->host = host;
    if (vk_loader_open(&instance->loader, instance->reason) && create_instance(instance))
        vk_instance_list_devices(instance);
    return instance;
}

tn_status vk_instance_get(const tn_host *host, struct vk_instance **out_instance)
{
    pthread_mutex_lock(&instances_lock);
    struct vk_instance *instance = instances;
    while (instance && instance->host != host)
        instance = instance->next;
    if (!instance && (instance = instance_create(host))) {
        instance->next = instances;
        instances = instance;
    }
    pthread_mutex_unlock(&instances_lock);
    if (!instance)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    *out_instance = instance;
    return TN_OK;
}

void vk_deinit(const tn_host *host)
{
    pthread_mutex_lock(&instances_lock);
    struct vk_instance **at = &instances;
    while (*at && (*at)->host != host)
        at = &(*at)->next;
    struct vk_instance *instance = *at;
    if (instance)
        *at = instance->next;
    pthread_mutex_unlock(&instances_lock);
    if (instance)
        instance_destroy(instance);
}

tn_status vk_device_count(const tn_host *host, uint32_t *out_count)
{
    struct vk_instance *instance;
    tn_status status = vk_instance_get(host, &instance);
    if (status != TN_OK)
        return status;
    if (instance->num_devices == 0)
        return host->fail(host, TN_ERR_NOT_FOUND, "%s", instance->reason);
    *out_count = instance->num_devices;
    return TN_OK;
}

static void list_features(const struct vk_facts *facts, char *out, size_t size)
{
    const struct {
        bool has;
        const char *name;
    } features[] = {{facts->f16, "f16"},
                    {facts->f64, "f64"},
                    {facts->i64, "i64"},
                    {facts->i16, "i16"},
                    {facts->i8, "i8"},
                    {facts->subgroup, "subgroup"},
                    {facts->shuffle, "shuffle"},
                    {facts->f16_matrices, "f16-matrices"},
                    {facts->bf16_matrices, "bf16-matrices"},
                    {facts->f16_group_matrices, "f16-group-matrices"},
                    {facts->bf16_group_matrices, "bf16-group-matrices"}};
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
        if (features[i].has)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "," : "",
                                   features[i].name);
}

static uint64_t local_memory(const struct vk_facts *facts)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < facts->memory.memoryHeapCount; i++)
        if (facts->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            size += facts->memory.memoryHeaps[i].size;
    return size;
}

tn_status vk_device_info(const tn_host *host, uint32_t index, tn_device_info *out)
{
    struct vk_instance *instance;
    tn_status status = vk_instance_get(host, &instance);
    if (status != TN_OK)
        return status;
    if (index >= instance->num_devices)
        return host->fail(host, TN_ERR_ARGUMENT, "Vulkan device %u: there are %u%s%s",
                          index, instance->num_devices, *instance->reason ? ": " : "",
                          instance->reason);
    struct vk_facts facts;
    if (!vk_facts_read(instance, instance->devices[index], &facts))
        return host->fail(host, TN_ERR_DEVICE, "%s %s", facts.properties.deviceName,
                          facts.reason);
    bool software = facts.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    tn_device_info info = {
        .struct_size = out->struct_size,
        .flags = TN_DEVICE_ROWS | TN_DEVICE_FUSES | TN_DEVICE_DEFERS | TN_DEVICE_COMPILES |
                 (software ? TN_DEVICE_SOFTWARE : 0u) |
                 (vk_has_host_points(&facts) ? TN_DEVICE_HOST_POINTS : 0u),
        .memory_size = local_memory(&facts),
        .max_buffer_size = facts.max_buffer,
        .buffer_alignment = VK_ALIGNMENT,
        .dtypes = TN_FIRST_DTYPES | TN_FLOAT8_DTYPES | TN_COMPLEX_DTYPES,
        .num_queues = facts.num_queues,
    };
    if (!facts.i64)
        info.dtypes &= ~(TN_DTYPE_BIT(TN_I64) | TN_DTYPE_BIT(TN_U64));
    if (!facts.f64)
        info.dtypes &= ~(TN_DTYPE_BIT(TN_F64) | TN_DTYPE_BIT(TN_COMPLEX128));
    if (facts.share_fd)
        memcpy(info.share_id, facts.share_id, sizeof(info.share_id));
    snprintf(info.name, sizeof(info.name), "%.127s", facts.properties.deviceName);
    snprintf(info.driver, sizeof(info.driver), "%s", facts.driver);
    list_features(&facts, info.features, sizeof(info.features));
    memcpy(out, &info, out->struct_size < sizeof(info) ? out->struct_size : sizeof(info));
    return TN_OK;
}

// --- interfaces ------------------------------------------------------------------------

static tn_status vk_instance_watch(const tn_host *host,
                                   void (*planned)(void *context,
                                                   const tn_planned_launch *launch),
                                   void *context)
{
    struct vk_instance *instance;
    tn_status status = vk_instance_get(host, &instance);
    if (status == TN_OK) {
        instance->planned = planned;
        instance->planned_context = context;
        instance->hears_launches = planned || instance->wanted;
    }
    return status;
}

static tn_status vk_instance_measure(
    const tn_host *host, uint64_t (*wanted)(void *context, const tn_planned_launch *launch),
    void (*measured)(void *context, uint64_t number, const tn_launch_cost *cost),
    void *context)
{
    struct vk_instance *instance;
    tn_status status = vk_instance_get(host, &instance);
    if (status == TN_OK) {
        instance->wanted = measured ? wanted : NULL;
        instance->measured = wanted ? measured : NULL;
        instance->measure_context = context;
        instance->hears_launches = instance->planned || instance->wanted;
    }
    return status;
}

static const tn_launches launches = {
    .struct_size = sizeof(launches),
    .watch = vk_instance_watch,
    .measure = vk_instance_measure,
};

static const tn_device_loss device_loss = {
    .struct_size = sizeof(device_loss),
    .lose = vk_lose,
};

const void *vk_query(const char *id)
{
    static const char *const own[] = {TN_IFACE_LAUNCHES, NULL};
    if (strcmp(id, TN_IFACE_DEVICE_LOSS) == 0)
        return &device_loss;
    if (strcmp(id, TN_IFACE_LAUNCHES) == 0)
        return &launches;
    return strcmp(id, TN_IFACE_LIST) == 0 ? own : NULL;
}
