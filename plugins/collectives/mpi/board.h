// SPDX-License-Identifier: MIT
// Memory that all members of a group share where they are on one machine: calls with few
// elements, and the agreement on others, are done there without a message.
//
// Each member has two slots, used in turns. A call's turn is written behind what it says,
// and read before it. A slot is free again two turns later: a member that is in a turn has
// read all slots of the turn before the last one.
#ifndef MPI_BOARD_H
#define MPI_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/collective.h>

struct board;

// Members exchange offers to make a board: rank 0's says where it is.
struct board_offer {
    char machine[64]; // of the process
    int64_t process;  // of rank 0; 0: it has none
    int64_t file;     // its descriptor there
    uint64_t token;   // which the memory begins with
};

enum {
    BOARD_RECORD = 6,  // numbers that tell a call
    BOARD_ROOM = 65536 // bytes of a slot's elements
};

// Makes a member's offer, and rank 0's board with it. What fails is no board; a rank below
// 0 offers none.
void board_make_offer(int32_t rank, int32_t size, struct board_offer *offer,
                      struct board **out_board);

// Opens the board that rank 0 offers, where all offers are from one machine; NULL: it
// cannot be.
struct board *board_open(const struct board_offer *offers, int32_t size);
void board_close(struct board *board); // NULL is fine

// All members have opened it, or none will.
void board_end_offer(struct board *board);

// This member's next turn: its record, and room for elements, which are written before
// board_say().
void *board_begin(struct board *board, int32_t rank, const int64_t *record);
void board_say(struct board *board, int32_t rank);

// Whether all members have said theirs of the turn.
bool board_is_full(const struct board *board);

// Give a member's record of this turn, and its elements.
const int64_t *board_record(const struct board *board, int32_t rank);
const void *board_data(const struct board *board, int32_t rank);

#endif // MPI_BOARD_H
