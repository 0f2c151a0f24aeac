// SPDX-License-Identifier: MIT
// Stage `fuse`: chains of expressions become one program.
#ifndef CORE_PLAN_FUSE_FUSE_H
#define CORE_PLAN_FUSE_FUSE_H

#include "../work/work.h"

tn_status plan_fuse(struct plan_work *work);
// Whether each reader of the program's elements may compute them anew: few instructions, no
// functions, no numbers of elements, no gathers, no reductions.
bool fuse_is_cheap(const tn_expr_program *program);

#endif // CORE_PLAN_FUSE_FUSE_H
