// SPDX-License-Identifier: MIT
// A callback: a C function of the application becomes an operator while it runs. Needs the
// plugin org.tenon.ffi.
//
// Prints:
//   0.0 0.5 1.0
//   clipped 3 numbers
#include <stdio.h>
#include <tenon/ffi.h>

static int times_called;

// Called for each element: the signature has numbers only.
static float clip(float x, float low, float high)
{
    times_called++; // by one thread at a time: three elements are not worth two
    return x < low ? low : x > high ? high : x;
}

static tn_status use(tn_scope *s)
{
    static const float data[] = {-2, 0.5f, 7};
    float clipped[3];
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(3), data);
    tn_array *y = tn_op(s, "app.clip", TN_IN(x, tn_f32(s, 0), tn_f32(s, 1)), TN_NO_ATTRS);
    if (tn_read(s, y, clipped, sizeof(clipped)))
        return tn_scope_status(s);
    printf("%.1f %.1f %.1f\n", (double)clipped[0], (double)clipped[1], (double)clipped[2]);
    printf("clipped %d numbers\n", times_called);
    return TN_OK;
}

int main(void)
{
    tn_runtime *runtime;
    if (tn_runtime_open(NULL, &runtime)) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_status status = tn_callback_add(runtime, "app.clip/1", "f32 f32 f32 -> f32",
                                       (void (*)(void))clip, NULL);
    if (status) {
        fprintf(stderr, "%s\n", tn_last_error());
    } else {
        tn_scope *s = tn_scope_open(runtime);
        status = use(s);
        if (status)
            fprintf(stderr, "%s\n", tn_scope_error(s));
        tn_scope_close(s);
        tn_callback_remove(runtime, "app.clip/1");
    }
    tn_runtime_close(runtime);
    return status != TN_OK;
}
