// SPDX-License-Identifier: MIT
// Memory that all members of a group share when they are on one machine. Calls with few
// elements, and the agreement on other calls, run on it without a message.
//
// Each member has two slots, used in turns. It writes its record and elements, and then the
// number of the turn, which readers check first. A slot is free again two turns later: a
// member that is in a turn has read all slots of the turn before the last one.
#ifndef MPI_BOARD_H
#define MPI_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/collective.h>

struct board;

// Members exchange offers to make a board: rank 0's says where the board is.
struct board_offer {
    char machine[64]; // of the process; "": unknown
    int64_t process;  // rank 0's process id; 0: it has no board
    int64_t file;     // the descriptor of the board's file in that process
    uint64_t token;   // the first bytes of the board's memory
};

enum {
    BOARD_RECORD = 6,  // numbers of a call's record
    BOARD_ROOM = 65536 // bytes of elements that a slot holds
};

// Makes a member's offer and, for rank 0, its board. On failure there is no board; a rank
// below 0 offers none.
void board_make_offer(int32_t rank, int32_t size, struct board_offer *offer,
                      struct board **out_board);

// Opens the board that rank 0 offers when all offers are from one machine; NULL: it cannot
// be opened.
struct board *board_open(const struct board_offer *offers, int32_t size);
void board_close(struct board *board); // NULL is fine

// Closes rank 0's file, once all members have opened it, or none will.
void board_end_offer(struct board *board);

// Begins this member's next turn: stores its record, and returns room for its elements, to
// be written before board_say().
void *board_begin(struct board *board, int32_t rank, const int64_t *record);
void board_say(struct board *board, int32_t rank);

// Whether all members have published their slots of this turn.
bool board_is_full(const struct board *board);

// Return a member's record of this turn, and its elements.
const int64_t *board_record(const struct board *board, int32_t rank);
const void *board_data(const struct board *board, int32_t rank);

#endif // MPI_BOARD_H
