// SPDX-License-Identifier: MIT
// Notes between members, beside their calls: why a member ended the group, and who waits in
// a message (waits.c).
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "group.h"

enum { NOTES_TAG = 1, FLUSHES = 100 };

struct note {
    struct wait_note wait; // its kind is the note's
    int64_t status;        // ENDS
    char text[REASON];     // ENDS
};

// A note being sent, whose memory MPI uses until then.
struct sent_note {
    struct sent_note *next;
    handle request;
    struct note note;
};

// --- sending ----------------------------------------------------------------------------

static void notes_free_sent(tn_group *group)
{
    _Alignas(16) unsigned char status[64]; // an MPI_Status of any library
    struct sent_note **at = &group->notes;
    while (*at) {
        struct sent_note *note = *at;
        int has_gone = 0;
        if (group->library->Test(&note->request, &has_gone, status) != 0 || !has_gone) {
            at = &note->next;
            continue;
        }
        *at = note->next;
        free(note);
    }
}

static void note_send(tn_group *group, int32_t rank, const struct note *note)
{
    const struct mpi_library *mpi = group->library;
    struct sent_note *sent = calloc(1, sizeof(*sent));
    notes_free_sent(group);
    if (!sent)
        return;
    sent->note = *note;
    if (mpi->Isend(&sent->note, (int)sizeof(sent->note), mpi->types[TN_U8], rank, NOTES_TAG,
                   group->agreements, &sent->request) != 0) {
        free(sent);
        return;
    }
    sent->next = group->notes;
    group->notes = sent;
}

tn_status group_end(tn_group *group, tn_status status, const char *format, ...)
{
    struct note note = {.wait = {.kind = NOTE_ENDS}, .status = status};
    char reason[REASON];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    if (group->broken[0])
        return group->broken_status;
    snprintf(note.text, sizeof(note.text), "rank %d ended the group: %.400s",
             group->world_rank, reason);
    for (int32_t i = 0; i < group->facts.size; i++)
        if (i != group->facts.rank)
            note_send(group, i, &note);
    // MPI may have to connect to members first, and this process may be about to end.
    for (int turn = 0; group->notes && turn < FLUSHES; turn++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        notes_free_sent(group);
    }
    group->keeps_notes = true;
    return group_break(group, status, "%s", reason);
}

void notes_send(tn_group *group, int32_t rank, const struct wait_note *wait)
{
    note_send(group, rank, &(struct note){.wait = *wait});
}

// --- reading ----------------------------------------------------------------------------

// Takes a note that has come. Returns an error code of MPI.
static int note_take(tn_group *group, int32_t rank, struct note *out)
{
    const struct mpi_library *mpi = group->library;
    _Alignas(16) unsigned char status[64]; // an MPI_Status of any library
    handle request = 0;
    int has_come = 0;
    int code = mpi->Irecv(out, (int)sizeof(*out), mpi->types[TN_U8], rank, NOTES_TAG,
                          group->agreements, &request);
    while (!code && !has_come)
        code = mpi->Test(&request, &has_come, status);
    return code;
}

static void note_handle(tn_group *group, int32_t rank, const struct note *note)
{
    switch (note->wait.kind) {
    case NOTE_ENDS:
        group->keeps_notes = true; // for members that have not read theirs
        group_break(group, (tn_status)note->status, "%s", note->text);
        break;
    case NOTE_ASKS: // who reads this moves its messages on
        notes_send(group, rank,
                   &(struct wait_note){.kind = NOTE_ANSWERS, .wait = note->wait.wait});
        break;
    case NOTE_ANSWERS:
        group->peers[rank].answered = note->wait.wait;
        break;
    default:
        waits_take(group, rank, &note->wait);
    }
}

// Reads a note of a member; false: none has come. A failure of MPI is found by the call
// that moves.
static bool note_read(tn_group *group, int32_t rank)
{
    _Alignas(16) unsigned char status[64]; // an MPI_Status of any library
    struct note note;
    int has_come = 0;
    int code =
        group->library->Iprobe(rank, NOTES_TAG, group->agreements, &has_come, status);
    if (code || !has_come || note_take(group, rank, &note) != 0)
        return false;
    note.text[sizeof(note.text) - 1] = 0;
    note_handle(group, rank, &note);
    return true;
}

void notes_drain(tn_group *group)
{
    for (int32_t i = 0; i < group->facts.size; i++)
        while (!group->broken[0] && note_read(group, i))
            ;
    notes_free_sent(group);
}

// Looks at one member a call, each in turn.
tn_status notes_read(tn_group *group)
{
    if (group->facts.size > 1 && !group->broken[0])
        note_read(group, (int32_t)(group->note_looks++ % (uint64_t)group->facts.size));
    return group->broken[0] ? group->broken_status : TN_OK;
}
