// SPDX-License-Identifier: MIT
#include "special.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "../pipeline/ahead.h"
#include "../spirv/spirv_bake.h"

#define NONE UINT32_MAX
#define MOST_REST 64 // most kernels that serve launches of several shapes
// Time until a run first looks for kernels that the thread has compiled. Each further look
// waits twice as long.
#define FIRST_LOOK_NS 16000000

// --- of a plan -------------------------------------------------------------------------

struct special_kernel {
    struct vk_pipeline *plain;          // for any shape; the dispatches hold the reference
    _Atomic(struct vk_pipeline *) made; // with a reference; NULL: not compiled, or failed
    bool is_used;                       // launches use `made`
    bool is_rest;                       // serves launches of several shapes
    uint32_t num_push;
    uint32_t binding;            // of the buffer with the open words
    uint64_t open;               // bit i: word i is read at run time, not a constant
    uint32_t push[VK_MOST_PUSH]; // 0 for open words
};

// Whether open words move to a buffer, from which they are read beside operands. Extents
// that stay open in the rest's kernel are pushed: loops read push constants faster.
static bool is_moved(const struct special_kernel *kernel)
{
    return kernel->open != 0 && !kernel->is_rest;
}

static uint32_t pushed_words(const struct special_kernel *kernel)
{
    return kernel->open != 0 && kernel->is_rest ? kernel->num_push : 0;
}

// The key of a kernel's code.
static struct vk_hash special_key_of(const struct special_kernel *kernel)
{
    struct vk_hash key = vk_pipeline_describe(kernel->plain).key;
    return vk_hash_bytes(vk_hash_u64(key, kernel->open), kernel->push,
                         kernel->num_push * sizeof(kernel->push[0]));
}

enum state { STATE_IDLE, STATE_RUNNING, STATE_MADE, STATE_USED };

struct vk_special {
    tn_device *device;
    uint32_t num_kernels, max_kernels, num_runs;
    struct special_kernel *kernels;
    uint32_t *of_dispatch;         // by dispatch: its kernel, or NONE
    uint32_t *words_at;            // by dispatch: where its words begin in the constants
    struct vk_pipeline **replaced; // by dispatch: its earlier pipeline, with a reference
    uint32_t num_dispatches;
    pthread_t thread;
    bool has_thread;
    bool is_known;        // an earlier process has made the kernels
    atomic_bool stop;     // the thread begins no further kernel
    atomic_int state;     // STATE_MADE: the thread has ended its work
    atomic_uint num_made; // kernels
    uint32_t num_used;
    uint64_t begin_ns, next_ns; // when the thread began; when runs look for kernels again
};

static void special_read_shape(const struct vk_plan *plan,
                               const struct vk_dispatch *dispatch,
                               uint32_t words[VK_MOST_PUSH])
{
    for (uint32_t i = 0; i < dispatch->num_push; i++)
        words[i] = dispatch->values >> i & 1 ? 0 : plan->push[dispatch->first_push + i];
}

// A launch that pushes nothing, of whose words nothing is known, or that has no binding
// left, has no shape.
static bool special_has_shape(const struct vk_plan *plan,
                              const struct vk_dispatch *dispatch)
{
    return dispatch->num_push > 0 && dispatch->values != UINT64_MAX &&
           dispatch->num_operands < plan->device->facts.limits.max_operands;
}

static struct vk_special_launch launch_of(const struct vk_plan *plan, uint32_t index)
{
    const struct vk_dispatch *dispatch = &plan->dispatches[index];
    struct vk_special_launch launch = {.kernel = dispatch->pipeline->key,
                                       .words = dispatch->num_push};
    uint32_t words[VK_MOST_PUSH];
    if (!special_has_shape(plan, dispatch))
        return launch;
    special_read_shape(plan, dispatch, words);
    launch.shape = vk_hash_u64((struct vk_hash){21, 3}, dispatch->values);
    launch.shape =
        vk_hash_bytes(launch.shape, words, dispatch->num_push * sizeof(words[0]));
    return launch;
}

// Compares with a launch of the kernel: words in which launches differ become open.
static void special_join(const struct vk_plan *plan, const struct vk_dispatch *dispatch,
                         struct special_kernel *kernel)
{
    const uint32_t *push = plan->push + dispatch->first_push;
    if (!kernel->plain) {
        *kernel = (struct special_kernel){.plain = dispatch->pipeline,
                                          .num_push = dispatch->num_push,
                                          .binding = dispatch->num_operands,
                                          .open = dispatch->values};
        memcpy(kernel->push, push, dispatch->num_push * sizeof(push[0]));
    }
    for (uint32_t i = 0; i < dispatch->num_push; i++) {
        kernel->open |= (uint64_t)(kernel->push[i] != push[i]) << i;
        kernel->push[i] = kernel->open >> i & 1 ? 0 : kernel->push[i];
    }
}

// Puts the words of launches whose kernels have open ones into the constants.
static tn_status words_write(struct vk_plan *plan, struct vk_special *special)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < plan->num_dispatches && status == TN_OK; i++) {
        const struct vk_dispatch *dispatch = &plan->dispatches[i];
        uint32_t number = special->of_dispatch[i];
        if (number != NONE && is_moved(&special->kernels[number]))
            status = plan_constants_at(plan, plan->push + dispatch->first_push,
                                       dispatch->num_push, TN_VULKAN_ALIGNMENT / 4,
                                       &special->words_at[i]);
    }
    return status;
}

// Adds kernels for launches that differ in shape: their code has the words that are equal.
static void add_rest(const struct vk_plan *plan, struct vk_special *special)
{
    uint32_t begin = special->num_kernels;
    for (uint32_t i = 0; i < plan->num_dispatches; i++) {
        const struct vk_dispatch *dispatch = &plan->dispatches[i];
        uint32_t k = begin;
        if (special->of_dispatch[i] != NONE || !special_has_shape(plan, dispatch))
            continue;
        while (k < special->num_kernels && special->kernels[k].plain != dispatch->pipeline)
            k++;
        if (k == special->max_kernels)
            continue;
        special->num_kernels += k == special->num_kernels;
        special->of_dispatch[i] = k;
        special_join(plan, dispatch, &special->kernels[k]);
        special->kernels[k].is_rest = true;
    }
}

static void special_destroy(struct vk_special *special)
{
    if (special) {
        free(special->kernels);
        free(special->of_dispatch);
        free(special->words_at);
        free(special->replaced);
    }
    free(special);
}

static tn_status take_choice(struct vk_plan *plan, struct vk_special *special)
{
    uint32_t count = plan->num_dispatches;
    struct vk_special_launch *launches = calloc(count, sizeof(*launches));
    special->of_dispatch = calloc(count, sizeof(*special->of_dispatch));
    special->words_at = calloc(count, sizeof(*special->words_at));
    special->replaced = calloc(count, sizeof(struct vk_pipeline *));
    bool done = launches && special->of_dispatch && special->words_at && special->replaced;
    for (uint32_t i = 0; done && i < count; i++)
        launches[i] = launch_of(plan, i);
    done = done && vk_special_choose(&vk_special_rule, launches, count,
                                     special->of_dispatch, &special->num_kernels);
    free(launches);
    if (done) {
        special->max_kernels = special->num_kernels + MOST_REST;
        special->kernels = calloc(special->max_kernels, sizeof(*special->kernels));
        done = special->kernels != NULL;
    }
    for (uint32_t i = 0; done && i < count; i++)
        if (special->of_dispatch[i] != NONE)
            special_join(plan, &plan->dispatches[i],
                         &special->kernels[special->of_dispatch[i]]);
    return done ? TN_OK
                : plan->device->host->fail(plan->device->host, TN_ERR_MEMORY,
                                           "out of memory");
}

// --- what earlier processes made -------------------------------------------------------

// The driver's cache has what an earlier process made: the disk cache says of which shapes.
#define KNOWN_KEY 64

static void known_key(const struct vk_special *special, char key[KNOWN_KEY])
{
    const tn_device *device = special->device;
    struct vk_hash h = vk_hash_text((struct vk_hash){36, 1}, device->facts.driver);
    h = vk_hash_bytes(h, device->facts.properties.pipelineCacheUUID, VK_UUID_SIZE);
    for (uint32_t i = 0; i < special->num_kernels; i++) {
        struct vk_hash kernel = special_key_of(&special->kernels[i]);
        h = vk_hash_u64(vk_hash_u64(h, kernel.lo), kernel.hi);
    }
    snprintf(key, KNOWN_KEY, "vulkan shapes/1 %016llx%016llx", (unsigned long long)h.lo,
             (unsigned long long)h.hi);
}

static bool was_made(const struct vk_special *special)
{
    const tn_host *host = special->device->host;
    const tn_host_cache *disk = host->query(host, TN_HOST_CACHE);
    void *data;
    uint64_t size;
    char key[KNOWN_KEY];
    known_key(special, key);
    if (!disk || disk->get(host, key, strlen(key), &data, &size) != TN_OK)
        return false;
    host->free(host, data);
    return true;
}

static void note_made(const struct vk_special *special)
{
    const tn_host *host = special->device->host;
    const tn_host_cache *disk = host->query(host, TN_HOST_CACHE);
    char key[KNOWN_KEY];
    if (!disk || special->is_known ||
        atomic_load(&special->num_made) < special->num_kernels)
        return;
    known_key(special, key);
    disk->put(host, key, strlen(key), "1", 1,
              &(tn_cache_about){.struct_size = sizeof(tn_cache_about),
                                .kind = "shapes",
                                .device = special->device->facts.properties.deviceName});
}

// --- making them -----------------------------------------------------------------------

struct baking {
    const struct special_kernel *kernel;
    struct vk_pipeline_desc plain;
};

static tn_status special_get_code(tn_device *device, void *context, struct vk_code *out)
{
    const struct baking *baking = context;
    const struct special_kernel *kernel = baking->kernel;
    const struct spirv_words list = {.words = kernel->push,
                                     .count = kernel->num_push,
                                     .binding = SPIRV_PUSH,
                                     .open = kernel->open,
                                     .moved =
                                         is_moved(kernel) ? kernel->binding : SPIRV_PUSH};
    char reason[VK_REASON];
    struct vk_code code;
    tn_status status = baking->plain.code(device, baking->plain.context, &code);
    if (status != TN_OK || spirv_bake(&code, &list, 1, out, reason))
        return status;
    return device->host->fail(device->host, TN_ERR_REFUSED, "kernel %s %s",
                              baking->plain.name, reason);
}

// A kernel that cannot be compiled is left out: its launches keep the general one.
static void make_one(struct vk_special *special, uint32_t number, struct vk_ahead *ahead,
                     bool is_helper)
{
    struct special_kernel *kernel = &special->kernels[number];
    tn_device *device = special->device;
    struct baking baking = {kernel, vk_pipeline_describe(kernel->plain)};
    struct vk_pipeline_desc desc = baking.plain;
    struct vk_pipeline *made = NULL, *none = NULL;
    desc.key = special_key_of(kernel);
    desc.num_push = pushed_words(kernel);
    desc.num_bindings += is_moved(kernel);
    desc.code = special_get_code;
    desc.context = &baking;
    if (vk_pipeline_get(device, &desc, ahead, is_helper, &made) != TN_OK)
        device->host->log(device->host, TN_LOG_DEBUG, VK_TOPIC,
                          "kernel %s gets no code of one shape", desc.name);
    else if (made && atomic_compare_exchange_strong(&kernel->made, &none, made))
        atomic_fetch_add(&special->num_made, 1);
    else if (made)
        vk_pipeline_release(device, made); // another thread was first
}

struct making {
    struct vk_special *special;
    struct vk_ahead ahead;
};

static void make_ahead(void *context, uint32_t thread, uint32_t number)
{
    struct making *making = context;
    (void)thread;
    if (!atomic_load(&making->special->stop))
        make_one(making->special, number, &making->ahead, true);
}

static void make_all(struct vk_special *special)
{
    struct making making = {.special = special,
                            .ahead = {.host = special->device->host,
                                      .num_steps = special->num_kernels,
                                      .num_others = 1,
                                      .plan = make_ahead,
                                      .context = &making}};
    for (uint32_t i = 0; i < special->num_kernels && !atomic_load(&special->stop); i++) {
        vk_ahead_reach(&making.ahead, i);
        if (!atomic_load(&special->kernels[i].made))
            make_one(special, i, &making.ahead, false);
    }
    vk_ahead_finish(&making.ahead);
    note_made(special);
    atomic_store_explicit(&special->state, STATE_MADE, memory_order_release);
}

static void *special_run(void *argument)
{
    make_all(argument);
    return NULL;
}

// Signals stay with the application's threads.
static bool special_start(struct vk_special *special)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&special->state, STATE_RUNNING);
    special->begin_ns = vk_now_ns();
    special->next_ns = special->begin_ns + FIRST_LOOK_NS;
    special->has_thread = pthread_create(&special->thread, NULL, special_run, special) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return special->has_thread;
}

tn_status vk_special_plan(struct vk_plan *plan)
{
    if (plan->device->is_software || plan->num_dispatches < vk_special_rule.least_launches)
        return TN_OK;
    struct vk_special *special = calloc(1, sizeof(*special));
    if (!special)
        return plan->device->host->fail(plan->device->host, TN_ERR_MEMORY, "out of memory");
    special->device = plan->device;
    special->num_dispatches = plan->num_dispatches;
    atomic_init(&special->state, STATE_IDLE);
    atomic_init(&special->stop, false);
    tn_status status = take_choice(plan, special);
    if (status == TN_OK) {
        add_rest(plan, special);
        status = words_write(plan, special);
    }
    if (status != TN_OK || special->num_kernels == 0) {
        special_destroy(special);
        return status;
    }
    plan->special = special;
    special->is_known = was_made(special);
    if (special->is_known)
        (void)special_start(special);
    return TN_OK;
}

// --- putting them in place -------------------------------------------------------------

// The kernel that a dispatch has, or gets: NULL: none.
static struct special_kernel *used_for(const struct vk_special *special, uint32_t dispatch)
{
    uint32_t number = special->of_dispatch[dispatch];
    bool any = number != NONE && special->kernels[number].is_used;
    return any ? &special->kernels[number] : NULL;
}

// Chooses the kernels that are made and not yet in use. False: there are none.
static bool use_made(struct vk_special *special)
{
    uint32_t before = special->num_used;
    for (uint32_t i = 0; i < special->num_kernels; i++) {
        struct special_kernel *kernel = &special->kernels[i];
        bool is_new = !kernel->is_used && atomic_load(&kernel->made);
        kernel->is_used |= is_new;
        special->num_used += is_new;
    }
    return special->num_used > before;
}

// The plan's operands, with one more for each launch that gets a kernel and whose words are
// in the constants. NULL: out of memory.
static struct vk_operand *special_list_operands(struct vk_plan *plan)
{
    const struct vk_special *special = plan->special;
    struct vk_operand *all =
        malloc((plan->num_operands + plan->num_dispatches + 1) * sizeof(*all));
    uint32_t count = 0;
    for (uint32_t i = 0; all && i < plan->num_dispatches; i++) {
        struct vk_dispatch *dispatch = &plan->dispatches[i];
        const struct special_kernel *kernel = used_for(special, i);
        memcpy(all + count, plan->operands + dispatch->first_operand,
               dispatch->num_operands * sizeof(*all));
        dispatch->first_operand = count;
        count += dispatch->num_operands;
        if (!kernel || special->replaced[i] || !is_moved(kernel))
            continue;
        all[count++] = (struct vk_operand){.slot = VK_SLOT_CONSTANTS,
                                           .access = VK_READS,
                                           .offset = (uint64_t)special->words_at[i] * 4,
                                           .size = (uint64_t)kernel->num_push * 4};
        dispatch->num_operands++;
    }
    if (all)
        plan->num_operands = count;
    return all;
}

// Gives launches the kernels that are made. Where there is no memory, the plan stays as it
// is. True: it has changed.
static bool special_put_in_place(struct vk_plan *plan)
{
    struct vk_special *special = plan->special;
    const tn_host *host = special->device->host;
    uint32_t num_launches = 0;
    if (!use_made(special))
        return false;
    struct vk_operand *operands = special_list_operands(plan);
    if (!operands)
        return false;
    free(plan->operands);
    plan->operands = operands;
    plan->max_operands = plan->num_operands;
    for (uint32_t i = 0; i < special->num_dispatches; i++) {
        struct special_kernel *kernel = used_for(special, i);
        num_launches += kernel != NULL;
        if (!kernel || special->replaced[i])
            continue;
        special->replaced[i] = plan->dispatches[i].pipeline;
        plan->dispatches[i].pipeline = atomic_load(&kernel->made);
        plan->dispatches[i].num_push = pushed_words(kernel);
    }
    plan_choose_sets(plan);
    host->log(host, TN_LOG_DEBUG, VK_TOPIC,
              "%u of %u launches run %u kernels of their shapes", num_launches,
              plan->num_dispatches, special->num_used);
    return true;
}

tn_status vk_special_make(struct vk_plan *plan)
{
    struct vk_special *special = plan->special;
    if (!special || atomic_load(&special->state) == STATE_USED)
        return TN_OK;
    if (special->has_thread)
        pthread_join(special->thread, NULL);
    else
        make_all(special);
    special->has_thread = false;
    atomic_store(&special->state, STATE_USED);
    (void)special_put_in_place(plan);
    return TN_OK;
}

const struct vk_pipeline *vk_special_plain(const struct vk_plan *plan, uint32_t dispatch)
{
    const struct vk_special *special = plan->special;
    bool is_replaced = special && special->replaced[dispatch];
    return is_replaced ? special->replaced[dispatch] : plan->dispatches[dispatch].pipeline;
}

bool vk_special_is_settled(const struct vk_plan *plan)
{
    return !plan->special || atomic_load(&plan->special->state) == STATE_USED;
}

bool vk_special_count_run(struct vk_plan *plan)
{
    struct vk_special *special = plan->special;
    int state = atomic_load_explicit(&special->state, memory_order_acquire);
    if (state == STATE_IDLE && ++special->num_runs > vk_special_rule.runs)
        (void)special_start(special);
    if (state == STATE_MADE) {
        atomic_store(&special->state, STATE_USED);
        return special_put_in_place(plan);
    }
    if (state != STATE_RUNNING || atomic_load(&special->num_made) == special->num_used)
        return false;
    uint64_t now_ns = vk_now_ns();
    if (now_ns < special->next_ns)
        return false;
    special->next_ns = special->begin_ns + 2 * (now_ns - special->begin_ns);
    return special_put_in_place(plan);
}

void vk_special_finish(struct vk_plan *plan)
{
    struct vk_special *special = plan->special;
    if (!special)
        return;
    atomic_store(&special->stop, true);
    if (special->has_thread)
        pthread_join(special->thread, NULL);
    for (uint32_t i = 0; i < special->num_dispatches; i++)
        if (special->replaced[i])
            plan->dispatches[i].pipeline = special->replaced[i];
    for (uint32_t i = 0; i < special->num_kernels; i++)
        if (special->kernels[i].made)
            vk_pipeline_release(special->device, special->kernels[i].made);
    special_destroy(special);
    plan->special = NULL;
}
