// SPDX-License-Identifier: MIT
// DLPack: arrays that go out as tensors and come back, without a copy where the host
// computes.
#include <stdatomic.h>
#include <tenon/dlpack.h>
#include "../support/common.h"

TestSuite(tensors, .init = setup, .fini = teardown);

DTYPE_TEST(dlpack, every_dtype_goes_out_and_comes_back_in_place, dtype, TN_BOOL)
{
    enum { COUNT_OF = 6 };
    unsigned char data[COUNT_OF * 16];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(dtype == TN_BOOL ? i % 2 : i);
    runtime = open_with(NULL);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_from_data(s, dtype, TN_SHAPE(2, 3), data);
    DLManagedTensor *out = tn_array_export(s, x);
    if (!out)
        cr_fatal("%s", tn_scope_error(s));
    const void *at = tn_data(s, x);
    cr_assert(eq(ptr, out->dl_tensor.data, (void *)(uintptr_t)at));
    cr_assert(eq(int, out->dl_tensor.dtype.bits, 8 * tn_dtype_bytes(dtype)));
    tn_scope_close(s);
    s = tn_scope_open(runtime);
    tn_array *y = tn_array_import(s, out); // takes it
    cr_assert(eq(ptr, (void *)(uintptr_t)tn_data(s, y), (void *)(uintptr_t)at));
    cr_assert(eq(int, tn_array_type(y)->dtype, dtype));
    cr_assert(eq(int, tn_array_type(y)->rank, 2));
    cr_assert(memcmp(at, data, COUNT_OF * (size_t)tn_dtype_bytes(dtype)) == 0);
    tn_scope_close(s);
    check_status(tn_runtime_close(runtime), TN_OK);
}

Test(tensors, an_exported_array_outlives_its_scope_and_keeps_the_runtime)
{
    tn_runtime *rt = open_with((const char *const[]){"TENON_LOG=off", NULL});
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = bin(s, "base.add", ramp(s, 2, 3, 1, 1), ramp(s, 2, 3, 1, 1));
    DLManagedTensorVersioned *out =
        tn_array_export_versioned(s, un(s, "base.transpose", x));
    if (!out)
        cr_fatal("%s", tn_scope_error(s));
    tn_scope_close(s);
    const DLTensor *t = &out->dl_tensor;
    cr_assert(eq(int, out->version.major, 1));
    cr_assert(eq(u64, out->flags, DLPACK_FLAG_BITMASK_READ_ONLY));
    cr_assert(eq(int, t->device.device_type, kDLCPU));
    cr_assert(eq(int, t->ndim, 2));
    cr_assert(eq(i64, t->shape[0], 3));
    cr_assert(eq(i64, t->shape[1], 2));
    const float *data = (const float *)((const char *)t->data + t->byte_offset);
    for (int64_t i = 0; i < 3; i++)
        for (int64_t j = 0; j < 2; j++)
            cr_assert(data[i * t->strides[0] + j * t->strides[1]] ==
                      2 * (float)(j * 3 + i + 1));
    check_status(tn_runtime_close(rt), TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "in use by 1 exported array:");
    out->deleter(out);
    check_status(tn_runtime_close(rt), TN_OK);
}

Test(tensors, arrays_of_other_devices_are_exported_by_a_copy)
{
    need_device("vulkan");
    tn_runtime *rt = open_on("vulkan");
    tn_scope *s = tn_scope_open(rt);
    DLManagedTensor *out = tn_array_export(s, un(s, "base.transpose", ramp(s, 2, 3, 1, 1)));
    if (!out)
        cr_fatal("%s", tn_scope_error(s));
    tn_scope_close(s);
    const DLTensor *t = &out->dl_tensor;
    const float *data = t->data;
    for (int64_t i = 0; i < 3; i++)
        for (int64_t j = 0; j < 2; j++)
            cr_assert(data[i * t->strides[0] + j * t->strides[1]] ==
                      (float)(j * 3 + i + 1));
    out->deleter(out);
    check_status(tn_runtime_close(rt), TN_OK);
}

static atomic_int deleted;

static void count_delete(DLManagedTensor *self)
{
    (void)self;
    atomic_fetch_add(&deleted, 1);
}

static void refused_tensor(DLTensor tensor, const char *says)
{
    DLManagedTensor managed = {.dl_tensor = tensor, .deleter = count_delete};
    tn_scope *s = tn_scope_open(runtime);
    deleted = 0;
    cr_assert(eq(ptr, tn_array_import(s, &managed), NULL));
    check_says(tn_scope_error(s), says);
    check_says(tn_scope_error(s), "array_import: ");
    cr_assert(eq(int, deleted, 1));
    tn_scope_close(s);
}

Test(tensors, bad_tensors_are_refused_and_deleted)
{
    static double data[4];
    int64_t shape[9] = {2, 2, 1, 1, 1, 1, 1, 1, 1};
    const DLTensor good = {.data = data,
                           .device = {kDLCPU, 0},
                           .ndim = 2,
                           .dtype = {kDLFloat, 64, 1},
                           .shape = shape};
    DLTensor t = good;
    t.device = (DLDevice){kDLCUDA, 1};
    refused_tensor(t, "device type 2 (number 1), expected one of the host");
    t = good;
    t.dtype.lanes = 4;
    refused_tensor(t, "code 2 of 64 bits and 4 lanes");
    t = good;
    t.dtype = (DLDataType){kDLComplex, 32, 1};
    refused_tensor(t, "code 5 of 32 bits");
    t = good; // a part of complex128 is 8 bytes
    t.dtype = (DLDataType){kDLComplex, 128, 1};
    t.byte_offset = 4;
    refused_tensor(t, "expected a multiple of 8 bytes, the size of f64");
    t = good;
    t.ndim = 9;
    refused_tensor(t, "9");
    t = good;
    t.ndim = -1;
    refused_tensor(t, "-1");
    t = good;
    t.shape = NULL;
    refused_tensor(t, "without a shape");
    t = good;
    t.byte_offset = 4;
    refused_tensor(t, "expected a multiple of 8 bytes");
    t = good;
    t.byte_offset = UINT64_MAX;
    refused_tensor(t, "leaves the address space");
    t = good;
    t.data = NULL;
    refused_tensor(t, "data is NULL");
    DLManagedTensorVersioned later = {.version = {2, 0}};
    tn_scope *s = tn_scope_open(runtime);
    cr_assert(eq(ptr, tn_array_import_versioned(s, &later), NULL));
    check_says(tn_scope_error(s), "a tensor of DLPack 2.0, expected 1.x");
    tn_scope_clear_error(s);
    cr_assert(eq(ptr, tn_array_import(s, NULL), NULL));
    check_says(tn_scope_error(s), "array_import: the tensor is NULL");
    tn_scope_clear_error(s);
    cr_assert(eq(ptr, tn_array_export(s, NULL), NULL));
    check_says(tn_scope_error(s), "array_export: the array is NULL");
    tn_scope_close(s);
}

Test(tensors, a_tensor_without_strides_and_with_an_offset)
{
    double data[4] = {1, 2, 3, 4};
    int64_t shape[1] = {3};
    DLManagedTensor managed = {.dl_tensor = {.data = data,
                                             .device = {kDLCPU, 0},
                                             .ndim = 1,
                                             .dtype = {kDLFloat, 64, 1},
                                             .shape = shape,
                                             .byte_offset = 8}};
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_array_import(s, &managed);
    cr_assert(eq(ptr, (void *)(uintptr_t)tn_data(s, x), data + 1));
    cr_assert(tn_item(s, un(s, "base.sum", x)) == 9);
    tn_scope_close(s);
}
