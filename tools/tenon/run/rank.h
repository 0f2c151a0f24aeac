// SPDX-License-Identifier: MIT
// One rank: starts its process, waits for it, and tells the launching process what becomes
// of it.
#ifndef TOOLS_TENON_RUN_RANK_H
#define TOOLS_TENON_RUN_RANK_H

#include "base/tool.h"

// Runs `command` as the rank that the launcher's variables name. The launching process is
// found by TENON_RUN: "launcher=ADDRESS:PORT token=TEXT [survivors] [devices=LIST]".
int rank_run(char **command);

#endif // TOOLS_TENON_RUN_RANK_H
