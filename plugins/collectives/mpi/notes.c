// SPDX-License-Identifier: MIT
// Notes between members, beside their calls: why a member ended the group, and for which
// member a member waits in a message. When two wait for each other, one tells the group.
//
// A note about a message holds until the message arrives: its sender waits, and starts
// nothing else in the group. So one note a wait is enough, and the receiver stores it.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "group.h"

enum { NOTES_TAG = 1, FLUSHES = 100 };

// Time from the begin of a wait to its note; longer for sends, whose messages may take
// long.
static const int64_t RECEIVES_NS = 500 * INT64_C(1000000);
static const int64_t SENDS_NS = 10000 * INT64_C(1000000);

struct note {
    struct note_facts facts;
    int64_t status;    // ENDS
    char text[REASON]; // ENDS
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

// A note that cannot be sent is dropped: members then wait as without notes.
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
    struct note note = {.facts = {.kind = NOTE_ENDS}, .status = status};
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

// Sends a note where this member waits in a message, and in no other.
static void note_wait(tn_collective_work *work, int64_t waited_ns)
{
    tn_group *group = work->group;
    const tn_collective_call *call = &work->call;
    bool receives = call->kind == TN_COLLECTIVE_RECEIVE;
    if (work->has_noted || work->stage != MOVING || group->num_messages != 1 ||
        (!receives && call->kind != TN_COLLECTIVE_SEND) ||
        waited_ns < (receives ? RECEIVES_NS : SENDS_NS))
        return;
    const struct group_peer *peer = &group->peers[call->peer];
    const struct note note = {.facts = {.kind = receives ? NOTE_RECEIVES : NOTE_SENDS,
                                        .sequence = group->sequence,
                                        .sent = peer->sent,
                                        .received = peer->received}};
    work->has_noted = true;
    note_send(group, call->peer, &note);
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
    if (note.facts.kind == NOTE_ENDS)
        group_break(group, (tn_status)note.status, "%s", note.text);
    else
        group->peers[rank].note = note.facts;
    return true;
}

void notes_drain(tn_group *group)
{
    for (int32_t i = 0; i < group->facts.size; i++)
        while (!group->broken[0] && note_read(group, i))
            ;
    notes_free_sent(group);
}

// --- members that wait for each other ---------------------------------------------------

// Whether a member's note says that it waits for a message that this member has not
// started.
static bool waits_in_vain(const struct group_peer *peer)
{
    const struct note_facts *note = &peer->note;
    return (note->kind == NOTE_RECEIVES && note->received > peer->sent) ||
           (note->kind == NOTE_SENDS && note->sent > peer->received);
}

// Whether `work`, in which this process waits, cannot end before that member goes on.
static bool waits_for(const tn_collective_work *work, int32_t rank)
{
    const struct group_peer *peer = &work->group->peers[rank];
    if (work->stage == AGREEING)
        return work->record[RECORD_SEQUENCE] > peer->note.sequence;
    return work->call.kind == TN_COLLECTIVE_RECEIVE && work->stage == MOVING &&
           work->call.peer == rank && work->group->num_messages == 1 &&
           peer->note.kind == NOTE_RECEIVES && peer->received > peer->note.sent;
}

static void tell_wait(const tn_collective_work *work, int32_t rank)
{
    tn_group *group = work->group;
    char text[128];
    bool receives = group->peers[rank].note.kind == NOTE_RECEIVES;
    move_print(work->record, text, sizeof(text));
    group_end(group, TN_ERR_ARGUMENT,
              "members disagree: rank %d waits %s rank %d, which waits in %s",
              group->members[rank],
              receives ? "to receive from" : "until what it sends is received by",
              group->world_rank, text);
}

// Looks at one member a call, each in turn.
tn_status notes_read(tn_group *group)
{
    if (group->facts.size > 1 && !group->broken[0])
        note_read(group, (int32_t)(group->note_looks++ % (uint64_t)group->facts.size));
    return group->broken[0] ? group->broken_status : TN_OK;
}

tn_status notes_look(tn_collective_work *work, int64_t waited_ns)
{
    tn_group *group = work->group;
    if (group->facts.size == 1)
        return TN_OK;
    note_wait(work, waited_ns);
    for (int32_t i = 0; i < group->facts.size && !group->broken[0]; i++)
        if (waits_in_vain(&group->peers[i]) && waits_for(work, i))
            tell_wait(work, i);
    return group->broken[0] ? group->broken_status : TN_OK;
}
