// SPDX-License-Identifier: MIT
// The table of all checks, and the groups that run them.
#ifndef CONFORMANCE_CHECKS_H
#define CONFORMANCE_CHECKS_H

#include "kit.h"

struct check_info {
    const char *name;        // "group.name"
    const char *requirement; // its number in docs/abi.md: "P7"
    const char *expects;     // one sentence: what a sane plugin does
};

extern const struct check_info all_checks[]; // ended by a NULL name
const struct check_info *check_find(const char *name);

// A group runs in a child process of its own.
struct group {
    const char *name;
    void (*run)(struct kit *k);
};

extern const struct group all_groups[]; // ended by a NULL name
const struct group *group_find(const char *name);

void group_file(struct kit *k);      // the file, without loading it
void group_entry(struct kit *k);     // the symbol, and the tables from query
void group_process(struct kit *k);   // process state that loading must not change
void group_reload(struct kit *k);    // repeated loading, also on other threads
void group_host(struct kit *k);      // hosts that are older, larger, poorer, out of memory
void group_infer(struct kit *k);     // shape rules
void group_attrs(struct kit *k);     // attributes
void group_reference(struct kit *k); // definitions in C
void group_kernel(struct kit *k);    // kernels of cpu.c/1, called directly
void group_rules(struct kit *k);     // derivatives and batching
void group_device(struct kit *k);    // packs on each device, through a runtime
void group_backend(struct kit *k);   // the table and its devices
void group_buffer(struct kit *k);    // memory of a device
void group_import(struct kit *k);    // memory of the host, used in place
void group_share(struct kit *k);     // memory that others use, too
void group_segment(struct kit *k);   // compiling and running segments
void group_queue(struct kit *k);     // submissions, points and waiting
void group_family(struct kit *k);    // kernels of other plugins, by family
void family_stages(struct kit *k);   // its part in family_stages.c
void group_primitive(struct kit *k); // every installed primitive on the backend's devices
void group_suite(struct kit *k);     // the operator suite over base and nn
void group_format(struct kit *k);    // files of arrays, in memory
void group_tokenizer(struct kit *k); // text to ids and back
void group_model(struct kit *k);     // architectures of language models

#endif // CONFORMANCE_CHECKS_H
