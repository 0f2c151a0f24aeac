// SPDX-License-Identifier: MIT
// Images behind the loss of the device that read them.
//
// TENON_TEST_LOADER says where the shared object of tests/fixtures/vulkan_loader.c is.
#include "../fixtures/vulkan_loader.h"
#include "images.h"
#include <dlfcn.h>

static struct vulkan_faults *faults;

// With the loader that TENON_TEST_LOADER names.
static void setup_lost(void)
{
    void *loader = dlopen(getenv("TENON_TEST_LOADER"), RTLD_NOW | RTLD_GLOBAL);
    faults = loader ? dlsym(loader, "vulkan_faults") : NULL;
    if (!faults)
        cr_fatal("%s", dlerror());
    need_device("vulkan");
    runtime = open_with((const char *const[]){"TENON_BACKEND=vulkan,cpu-blas",
                                              "TENON_FALLBACK=allow", NULL});
    read_cases();
}

TestSuite(images_lost, .init = setup_lost, .fini = teardown);

// The vision encoder is where the model's first layers are, also behind the loss of their
// device.
Test(images_lost, the_encoder_follows_the_model)
{
    struct reader r;
    const struct known *k = &known[0];
    uint8_t *pixels = pixels_of(k->height[0], k->width[0]);
    reader_open(&r, k->is_split);
    lm_must(tn_lm_ensure_shard(r.lm, 0, 1));
    tn_lm_image *image = image_of(r.lm, k->height[0], k->width[0]), *none = NULL;
    tn_lm_image_close(image);
    faults->call = "vkQueueSubmit";
    faults->result = VK_ERROR_DEVICE_LOST;
    atomic_store(&faults->num_calls, 0);
    faults->nth = 1;
    check_status(tn_lm_image_make(r.lm, pixels, k->height[0], k->width[0], &none),
                 TN_ERR_DEVICE);
    check_says(tn_lm_error(), "vulkan:0");
    check_status(tn_lm_image_make(r.lm, pixels, k->height[0], k->width[0], &none),
                 TN_ERR_DEVICE);
    lm_must(tn_lm_ensure_shard(r.lm, 0, 1));
    tn_lm_image *images[MOST_IMAGES] = {NULL};
    for (int i = 0; i < k->num_images; i++)
        images[i] = image_of(r.lm, k->height[i], k->width[i]);
    check_rows(k, images);
    for (int i = 0; i < k->num_images; i++)
        tn_lm_image_close(images[i]);
    free(pixels);
    reader_close(&r);
}
