// SPDX-License-Identifier: MIT
// Which shapes of a plan's launches get kernels of their own. Pure functions, without a
// device.
#include "special_rule.h"

#include <stdlib.h>

const struct vk_special_rule vk_special_rule = {
    .least_launches = 4, .least_equal = 3, .most_kernels = 20, .runs = 4};

#define NONE UINT32_MAX
#define MOST_SEEN                                                                          \
    256 // kernels, and shapes of them: of more, the later ones are not looked at

struct special_rule_shape {
    struct vk_hash kernel, shape;
    uint32_t launches, words; // of all launches
    uint32_t number;
};

struct kernel {
    struct vk_hash kernel;
    uint32_t left; // launches whose shape is not chosen
};

struct special_rule_choice {
    struct special_rule_shape *shapes;
    struct kernel *kernels;
    uint32_t num_shapes, num_kernels;
};

static void add_shape(struct special_rule_choice *c, const struct vk_special_launch *launch)
{
    uint32_t i = 0;
    while (i < c->num_shapes && !(vk_hash_equal(c->shapes[i].shape, launch->shape) &&
                                  vk_hash_equal(c->shapes[i].kernel, launch->kernel)))
        i++;
    if (i == MOST_SEEN)
        return;
    if (i == c->num_shapes)
        c->shapes[c->num_shapes++] =
            (struct special_rule_shape){.kernel = launch->kernel, .shape = launch->shape};
    c->shapes[i].launches++;
    c->shapes[i].words += launch->words;
}

// The entry of a kernel; NULL: there are too many.
static struct kernel *find_kernel(struct special_rule_choice *c, struct vk_hash kernel)
{
    uint32_t i = 0;
    while (i < c->num_kernels && !vk_hash_equal(c->kernels[i].kernel, kernel))
        i++;
    if (i == MOST_SEEN)
        return NULL;
    if (i == c->num_kernels)
        c->kernels[c->num_kernels++] = (struct kernel){.kernel = kernel};
    return &c->kernels[i];
}

// Orders shapes: launches that read the most words first, of those alike the most frequent
// ones, and then the first launched. On an H200 a convolution, of 30 words, takes 0.7 to
// 2.5 us less with its shape in the code, a sum of 24 words 0.6 us, a maximum of 3 words
// 0.4 us.
static int by_words(const void *a, const void *b)
{
    const struct special_rule_shape *x = a, *y = b;
    if (x->words != y->words)
        return x->words < y->words ? 1 : -1;
    if (x->launches != y->launches)
        return x->launches < y->launches ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

// Chooses shapes: a kernel whose launches all have one is replaced, and others are added
// while there are few kernels.
static uint32_t special_rule_choose(const struct vk_special_rule *rule,
                                    struct special_rule_choice *c)
{
    uint32_t num = 0, kernels = c->num_kernels;
    for (uint32_t i = 0; i < c->num_shapes; i++)
        c->shapes[i].number = i;
    qsort(c->shapes, c->num_shapes, sizeof(c->shapes[0]), by_words);
    for (uint32_t i = 0; i < c->num_shapes; i++) {
        struct special_rule_shape *shape = &c->shapes[i];
        struct kernel *kernel = find_kernel(c, shape->kernel);
        bool replaces = kernel->left == shape->launches;
        shape->number = NONE;
        if (!replaces &&
            (shape->launches < rule->least_equal || kernels >= rule->most_kernels))
            continue;
        kernel->left -= shape->launches;
        kernels += !replaces;
        shape->number = num++;
    }
    return num;
}

bool vk_special_choose(const struct vk_special_rule *rule,
                       const struct vk_special_launch *launches, uint32_t count,
                       uint32_t *out, uint32_t *out_num)
{
    struct special_rule_choice c = {.shapes = calloc(MOST_SEEN, sizeof(*c.shapes)),
                                    .kernels = calloc(MOST_SEEN, sizeof(*c.kernels))};
    bool done = c.shapes && c.kernels;
    *out_num = 0;
    for (uint32_t i = 0; done && i < count; i++) {
        struct kernel *kernel = find_kernel(&c, launches[i].kernel);
        if (!kernel)
            continue;
        kernel->left++;
        if (launches[i].shape.lo | launches[i].shape.hi)
            add_shape(&c, &launches[i]);
    }
    if (done)
        *out_num = special_rule_choose(rule, &c);
    for (uint32_t i = 0; done && i < count; i++) {
        out[i] = NONE;
        for (uint32_t k = 0; k < c.num_shapes; k++)
            if (vk_hash_equal(c.shapes[k].shape, launches[i].shape) &&
                vk_hash_equal(c.shapes[k].kernel, launches[i].kernel))
                out[i] = c.shapes[k].number;
    }
    free(c.shapes);
    free(c.kernels);
    return done;
}
