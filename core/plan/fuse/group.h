// SPDX-License-Identifier: MIT
// Shared by the files of stage `fuse`: fuse.c, fuse_rows.c, fuse_siblings.c, fuse_take.c,
// fuse_write.c; and by recompute.c above them.
#ifndef CORE_PLAN_FUSE_GROUP_H
#define CORE_PLAN_FUSE_GROUP_H

#include "fuse.h"

struct group_result { // a value that the group computes
    uint32_t value, insn;
    bool is_row; // one element for each of the group's rows
};

// A set of operations that will run as one program. A group with rows reduces along the
// last axes of its extents.
struct group {
    uint32_t merged_into; // the group that this group was merged into; NONE: none
    uint32_t device, first_op, last_op, num_ops;
    uint32_t num_reductions; // REDUCE instructions; above 0: the group has rows
    int32_t row_axes;        // the last axes that are a row; 0: no rows, or none that fuse
    bool has_siblings;       // groups that read one array became this one
    bool rewritten;          // the program differs from that of its only operation
    tn_layout shape;         // contiguous; extents of all its outputs but those of rows
    tn_expr_insn *insns;
    uint64_t *constants, *params;
    struct operand *inputs;
    struct group_result *results; // values that may be read outside the group
    uint8_t *is_number;           // by instruction: a PARAM that holds a number
    uint32_t num_insns, max_insns, max_flags;
    uint32_t weight; // of all instructions, dead ones included
    uint32_t num_constants, max_constants, num_params, max_params;
    uint32_t num_inputs, max_inputs, num_results, max_results;
};

// How an operation takes part in a group.
enum role {
    ROLE_ELEMENTS, // computes elements of the group's extents
    ROLE_REDUCES,  // reduces them to one value a row
    ROLE_ROWS,     // computes one element a row, from values of ROLE_REDUCES or ROLE_ROWS
};

struct member {
    enum role role;
    uint32_t num_reductions;
    int32_t row_axes; // as group.row_axes
    const tn_expr_program *program;
    struct operand *inputs; // of the program; a take's as read over its result
    const uint64_t *params;
};

struct fuser {
    struct plan_work *work;
    uint32_t *next_member;  // by operation: the next operation of its group, or NONE
    struct member *members; // by operation
    struct group *groups;
    uint32_t num_groups, max_groups;
    tn_layout extents; // of the operation that reduces, for fuse_extents
    struct group own;  // inputs and rows of the operation that is to fit a group
};

// --- writing groups (fuse.c, fuse_write.c) ---------------------------------------------

// Appends a program to that of group `g`: map[i] is the instruction that its instruction i
// became.
tn_status fuse_append(struct fuser *f, struct group *group, const tn_expr_program *program,
                      const struct operand *inputs, const uint64_t *params, uint32_t *map);
tn_status fuse_add_result(struct group *group, uint32_t value, uint32_t insn, bool is_row);
// The group's program, without dead instructions, and its name.
tn_status fuse_make_program(struct fuser *f, uint32_t g, char name[LABEL_SIZE],
                            const tn_expr_program **out_program);
// Writes the group's program to the operation, and names both after the operations of the
// group.
tn_status fuse_write_op(struct fuser *f, uint32_t g, struct plan_op *op);
void fuse_free_group(struct group *group); // frees its lists, not `group`

// --- gathers (fuse_take.c) -------------------------------------------------------------

// Whether the operation is a gather that the device computes as TAKE in a program.
bool fuse_is_take(const struct plan_work *work, const struct plan_op *op);
// Fills the member: a program of one TAKE, its inputs over the elements of the result, and
// its params.
tn_status fuse_take(struct fuser *f, const struct plan_op *op, struct member *out);
// Merges programs whose results are only indices of one program into that program.
tn_status fuse_indices(struct plan_work *work);

bool fuse_same_elements(const tn_layout *a, const tn_layout *b);
bool fuse_same_operand(const struct operand *a, const struct operand *b);
// The group that the operation is part of, or NONE.
uint32_t fuse_find_group(const struct fuser *f, uint32_t op);
// The group that computes this value's memory, or NONE.
uint32_t fuse_group_of_value(const struct fuser *f, uint32_t value);
const struct group_result *fuse_find_result(const struct group *group, uint32_t value);

// Whether an operation outside the group reads one of its values before operation `op`.
// Drops values that no operation outside the group reads any more from group->results.
bool fuse_needed_before(struct fuser *f, uint32_t g, uint32_t op);

// fuse_have_room: whether a program has room for both groups, and for operation `op` that
// joins them (NONE: none). fuse_may_merge: whether they have the same rows as well.
bool fuse_have_room(const struct fuser *f, uint32_t op, uint32_t a, uint32_t b);
bool fuse_may_merge(const struct fuser *f, uint32_t op, uint32_t a, uint32_t b);

// Appends the program of group `from` to that of group `to`.
tn_status fuse_merge(struct fuser *f, uint32_t to, uint32_t from);

// --- siblings (fuse_siblings.c) --------------------------------------------------------

// Merges other groups with rows that read an array which the group reads into the group.
tn_status fuse_siblings(struct fuser *f, uint32_t group);

// --- rows (fuse_rows.c) ----------------------------------------------------------------

// Finds out how the operation could be part of a group: members[op]. Its program is NULL
// when it cannot.
tn_status fuse_classify(struct fuser *f, uint32_t op);

uint32_t fuse_count_reductions(const tn_expr_program *program);

// A contiguous layout of the extents over which the operation runs, valid until the next
// call: those of its group unless it is of ROLE_ROWS.
const tn_layout *fuse_extents(struct fuser *f, uint32_t op);

// Whether the operation may join a group of these extents: as it is, or with one element
// for each row. Sets members[op].role.
bool fuse_fits(struct fuser *f, uint32_t op, const struct group *group);

// Whether both groups have the same row axes, or one has none, and the inputs of both can
// have these axes as one.
bool fuse_same_rows(const struct group *a, const struct group *b);

// Whether an operation that fits the group reads the group's values element by element, or
// row by row.
bool fuse_reads_in_order(const struct fuser *f, uint32_t op, uint32_t group);

// Whether group `single` computes one element for each row of group `rows`, and does not
// use `index`, which counts elements of a row in a row program.
bool fuse_are_row_values(const struct group *rows, const struct group *single);
// Makes the inputs and results of `single` values of rows, for fuse_merge().
void fuse_spread_row_values(struct group *rows, struct group *single);

// The layout of a member's operand, as read over the group's extents: the operand's own, or
// another one, written to `room`.
const tn_layout *fuse_layout(const struct group *group, const struct member *member,
                             const struct operand *in, tn_layout *room);

// Whether the device runs the group's row program.
bool fuse_device_runs(const struct plan_work *work, const struct group *group,
                      const tn_expr_program *program);
// The same, but if the device refuses, marks the group's operations so that they reduce in
// no group; then the stage begins anew.
bool fuse_ask_device(struct fuser *f, const struct group *group,
                     const tn_expr_program *program);

#endif // CORE_PLAN_FUSE_GROUP_H
