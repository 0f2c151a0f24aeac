// SPDX-License-Identifier: @LICENSE@
// A kernel for @FOR@, a primitive of another pack:
//
@SIGNATURE@
//
// Applications that the kernel does not take run as before. Of several kernels that fit, the one
// with the highest priority runs: 900 and more come before Tenon's own.
#define TN_KERNEL_PRIORITY 900
#include <tenon/pack.h>
%if ATTRS

// The primitive's attribute struct.
@ATTRS@
%end

// Computes the outputs of one application, with the results of the primitive's own definition.
static tn_status launch(const tn_cpu_call *call)
{
    return call->host->fail(call->host, TN_ERR_UNSUPPORTED, "@NAME@_c accepts nothing");
}

// Whether the kernel takes an application, once TN_TAKES_... below holds: dtypes and extents are in
// query->inputs, attributes in query->attrs. As long as this returns 0 the kernel never runs, and
// `tenon why op @FOR@` shows that it was turned down.
static int32_t accepts(const tn_kernel_query *query)
{
    (void)query;
    return 0;
}

static TN_CPU_KERNEL(@NAME@_c, "@FOR@", launch,
                     TN_TAKES_CONTIGUOUS(TN_DTYPE_BIT(TN_F32)), .accepts = accepts);

TN_PACK("@ID@", "0.1.0", "@VENDOR@", TN_KERNELS(&@NAME@_c));
