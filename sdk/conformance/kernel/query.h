// SPDX-License-Identifier: MIT
// A kernel's rules and predicates, asked about samples.
#ifndef CONFORMANCE_KERNEL_QUERY_H
#define CONFORMANCE_KERNEL_QUERY_H

#include "../pack/pack.h"

// Whether the kernel takes the sample with these inputs, contiguous or not.
bool kernel_accepts(const tn_kernel *kernel, const struct sample *s,
                    const struct array *in);
// Up to `max` applications of the primitive that the kernel takes with contiguous inputs.
uint32_t kernel_samples(struct sample_maker *maker, const tn_kernel *kernel,
                        const tn_primitive *primitive, struct sample *out, uint32_t max);
// Whether its operand rules allow the layouts. The core copies inputs that they do not
// allow.
bool kernel_layouts_fit(const tn_kernel *kernel, const struct sample *s,
                        const struct array *in);
// Bytes of scratch memory that it asks for.
uint64_t kernel_scratch(const tn_kernel *kernel, const struct sample *s,
                        const struct array *in);

// Whether a rule of the kernel has TN_OPERAND_FUSES.
bool kernel_says_fuses(const tn_kernel *kernel);
// The operands that may pass through programs at the same time (bits, inputs first): the
// rules allow them, they are contiguous, and the kernel accepts all of them.
uint64_t kernel_fused(const tn_kernel *kernel, const struct sample *s,
                      const struct array *in);

// shader.c: checks the shaders of a kernel of vulkan.glsl/1; does nothing for
// others.
void check_shaders(struct kit *k, struct fake_host *host, const tn_ops *ops,
                   uint32_t number);

// plan.c: checks a kernel that plans its launches; does nothing for others.
void check_plans(struct kit *k, struct pack *pack, const tn_kernel *kernel);

#endif // CONFORMANCE_KERNEL_QUERY_H
