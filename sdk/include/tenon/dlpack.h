// SPDX-License-Identifier: MIT
// DLPack's structures, by which libraries hand arrays to each other without a copy: what
// tn_array_import and tn_array_export of <tenon/tenon.h> take and give.
//
//   #include <tenon/dlpack.h>
//
//   DLManagedTensor *t = tn_array_export(scope, array); // NumPy: PyCapsule "dltensor"
//   double *first = (double *)((char *)t->dl_tensor.data + t->dl_tensor.byte_offset);
//   ...
//   t->deleter(t);
//
// Written from the specification, https://dmlc.github.io/dlpack/latest/c_api.html, version
// 1.0, with the names and numbers that it fixes. A program that includes the original
// <dlpack/dlpack.h> as well, before or after, gets each structure once, from the header
// that came first.
//
// Ownership. Who receives a managed tensor calls its deleter once, when the tensor is not
// needed any more; a NULL deleter asks for nothing.
//
// Threads. A tensor is constant while it is shared; its deleter may be called from any
// thread.
#ifndef TENON_DLPACK_H
#define TENON_DLPACK_H

// The original's guard: that header declares all of this, too.
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The version of the specification. Structures of one major version are compatible.
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0

// Flags of DLManagedTensorVersioned: the elements must not be written; the producer made a
// copy for this tensor.
#define DLPACK_FLAG_BITMASK_READ_ONLY (UINT64_C(1) << 0)
#define DLPACK_FLAG_BITMASK_IS_COPIED (UINT64_C(1) << 1)

// Where the memory of a tensor is: the kinds that concern the host. The specification has
// more, of other devices; tensors of those are refused by the kind's number.
typedef enum DLDeviceType {
    kDLCPU = 1,      // memory of the host
    kDLCUDA = 2,     // of an NVIDIA device: not for the host
    kDLCUDAHost = 3, // of the host, pinned by CUDA
} DLDeviceType;

// A device: its kind, and its number among those of its kind (0 for the host). The member
// has the width that the specification gives the enumeration.
typedef struct DLDevice {
    int32_t device_type; // DLDeviceType
    int32_t device_id;
} DLDevice;

// Kinds of numbers, for DLDataType.
typedef enum DLDataTypeCode {
    kDLInt = 0,          // with a sign, two's complement
    kDLUInt = 1,         // without a sign
    kDLFloat = 2,        // IEEE 754
    kDLOpaqueHandle = 3, // an address
    kDLBfloat = 4,       // the upper half of a binary32
    kDLComplex = 5,      // two floats: real, imaginary
    kDLBool = 6,         // 0 or 1
    // Floats of 8 bits, since specification 1.1: the kinds that are dtypes here.
    kDLFloat8_e4m3fn = 10,
    kDLFloat8_e5m2 = 12,
} DLDataTypeCode;

// The type of an element: f32 is {kDLFloat, 32, 1}.
typedef struct DLDataType {
    uint8_t code;   // DLDataTypeCode
    uint8_t bits;   // of one lane
    uint16_t lanes; // numbers in an element; 1 for what is no short vector
} DLDataType;

// A strided array. Element (0, 0, ...) lies `byte_offset` bytes behind `data`.
typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim; // axes
    DLDataType dtype;
    int64_t *shape;       // ndim extents
    int64_t *strides;     // ndim, in elements; NULL: row-major without gaps
    uint64_t byte_offset; // bytes
} DLTensor;

// A tensor and its owner, as of specification 0.8, without a version: all that NumPy before
// 2.1 reads. In Python it travels in a PyCapsule named "dltensor".
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;                             // the producer's own
    void (*deleter)(struct DLManagedTensor *self); // may be NULL
} DLManagedTensor;

// The version that a DLManagedTensorVersioned was made for. Of another major version only
// the members up to the deleter can be used.
typedef struct DLPackVersion {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

// A tensor and its owner, as of specification 1.0: "dltensor_versioned" in Python.
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;                                      // the producer's own
    void (*deleter)(struct DLManagedTensorVersioned *self); // may be NULL
    uint64_t flags;                                         // DLPACK_FLAG_...
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif

#endif // DLPACK_DLPACK_H_
#endif // TENON_DLPACK_H
