// SPDX-License-Identifier: MIT
// The memory of a board: a file without a name, which all members map.
#include "board.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_MEMBERS = 64, // each member reads all slots
    ALIGNED = 128,     // two lines of a cache, which processors fetch together
    LOOKS = 64         // polls of a slot before board_is_full() is false
};

struct board_slot {
    _Alignas(ALIGNED) _Atomic uint64_t turn;
    int64_t record[BOARD_RECORD]; // shares a line with the first bytes of `data`
    unsigned char data[BOARD_ROOM];
};

struct board {
    unsigned char *memory; // the token, then two slots of each member
    size_t bytes;
    int32_t size;  // members
    uint64_t turn; // the current turn, from 1
    int file;      // rank 0's descriptor until all have opened the file; else -1
};

static size_t board_bytes(int32_t size)
{
    return ALIGNED + 2 * (size_t)size * sizeof(struct board_slot);
}

static struct board_slot *board_slot(const struct board *board, int32_t rank)
{
    size_t at = 2 * (size_t)rank + (size_t)(board->turn & 1);
    return (struct board_slot *)(void *)(board->memory + ALIGNED) + at;
}

// --- making ------------------------------------------------------------------------------

// Maps the board's file, which stays the caller's.
static struct board *board_map(int file, int32_t size)
{
    struct board *board = calloc(1, sizeof(*board));
    if (!board)
        return NULL;
    *board = (struct board){.size = size, .bytes = board_bytes(size), .file = -1};
    board->memory = mmap(NULL, board->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (board->memory != MAP_FAILED)
        return board;
    free(board);
    return NULL;
}

// Names the machine by the boot of its kernel; "": unknown.
static void read_machine(char machine[64])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    machine[0] = 0;
    if (file && !fgets(machine, 64, file))
        machine[0] = 0;
    if (file)
        fclose(file);
}

void board_make_offer(int32_t rank, int32_t size, struct board_offer *offer,
                      struct board **out_board)
{
    memset(offer, 0, sizeof(*offer));
    *out_board = NULL;
    read_machine(offer->machine);
    if (rank != 0 || size < 2 || size > MOST_MEMBERS ||
        getrandom(&offer->token, sizeof(offer->token), 0) != sizeof(offer->token))
        return;
    int file = memfd_create("tenon-board", MFD_CLOEXEC);
    if (file < 0)
        return;
    struct board *board =
        ftruncate(file, (off_t)board_bytes(size)) == 0 ? board_map(file, size) : NULL;
    if (!board) {
        close(file);
        return;
    }
    memcpy(board->memory, &offer->token, sizeof(offer->token));
    board->file = file;
    offer->process = getpid();
    offer->file = file;
    *out_board = board;
}

struct board *board_open(const struct board_offer *offers, int32_t size)
{
    char path[64];
    struct stat about;
    if (!offers[0].process || !offers[0].machine[0])
        return NULL;
    for (int32_t i = 1; i < size; i++)
        if (strncmp(offers[i].machine, offers[0].machine, sizeof(offers[0].machine)) != 0)
            return NULL;
    snprintf(path, sizeof(path), "/proc/%lld/fd/%lld", (long long)offers[0].process,
             (long long)offers[0].file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return NULL;
    // In another container the process number may be another process's.
    bool is_whole = fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
                    about.st_size == (off_t)board_bytes(size);
    struct board *board = is_whole ? board_map(file, size) : NULL;
    close(file);
    if (board && memcmp(board->memory, &offers[0].token, sizeof(offers[0].token)) != 0) {
        board_close(board);
        board = NULL;
    }
    return board;
}

void board_end_offer(struct board *board)
{
    if (board->file >= 0)
        close(board->file);
    board->file = -1;
}

void board_close(struct board *board)
{
    if (!board)
        return;
    board_end_offer(board);
    munmap(board->memory, board->bytes);
    free(board);
}

// --- turns -------------------------------------------------------------------------------

void *board_begin(struct board *board, int32_t rank, const int64_t *record)
{
    board->turn++;
    struct board_slot *slot = board_slot(board, rank);
    memcpy(slot->record, record, sizeof(slot->record));
    return slot->data;
}

void board_say(struct board *board, int32_t rank)
{
    atomic_store_explicit(&board_slot(board, rank)->turn, board->turn,
                          memory_order_release);
}

static bool has_said(const struct board *board, int32_t rank)
{
    return atomic_load_explicit(&board_slot(board, rank)->turn, memory_order_acquire) ==
           board->turn;
}

bool board_is_full(const struct board *board)
{
    for (int32_t i = 0; i < board->size; i++)
        for (int look = 0; !has_said(board, i); look++)
            if (look == LOOKS)
                return false;
    return true;
}

const int64_t *board_record(const struct board *board, int32_t rank)
{
    return board_slot(board, rank)->record;
}

const void *board_data(const struct board *board, int32_t rank)
{
    return board_slot(board, rank)->data;
}
