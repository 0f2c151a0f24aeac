// SPDX-License-Identifier: MIT
// Members that wait for each other in messages: two of them, or a ring of any length.
//
// A member that waits in a message sends a note to the other member of this message. A
// member that waits, too, and has not started its part of the message, passes the note on
// to the member for which it waits itself. Where a note comes back to the wait that it
// began with, or to a member in a call that all members have to start, none can go on.
//
// A note holds until its sender's message is started, as the sender starts nothing before:
// a member that finds the message not started knows that all waits behind the note last.
// The member of a ring that waits last sends a note that all others pass on.
//
// A send may end before its message is received, so it counts as waiting only when the
// other member has answered, and the send has not ended soon after.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "group.h"

// Time from the begin of a wait to its note, and from an answer to a send that waits.
static const int64_t NOTE_NS = 500 * INT64_C(1000000);
static const int64_t ANSWERED_NS = 500 * INT64_C(1000000);

// --- counting messages ------------------------------------------------------------------

// The messages with a tag that were started; NULL: none.
static int64_t *message_count(const struct group_peer *peer, int64_t tag, bool receives)
{
    struct tag_counts *block = peer->tags[tag / TAGS_A_BLOCK];
    if (!block)
        return NULL;
    return receives ? &block->received[tag % TAGS_A_BLOCK]
                    : &block->sent[tag % TAGS_A_BLOCK];
}

bool waits_count(tn_collective_work *work)
{
    const tn_collective_call *call = &work->call;
    struct group_peer *peer = &work->group->peers[call->peer];
    struct tag_counts **block = &peer->tags[call->tag / TAGS_A_BLOCK];
    bool receives = call->kind == TN_COLLECTIVE_RECEIVE;
    if (!*block)
        *block = calloc(1, sizeof(**block));
    if (!*block)
        return false;
    work->count = ++*message_count(peer, call->tag, receives);
    if (!receives) {
        peer->has_sent = true;
        peer->last_tag = call->tag;
    }
    return true;
}

void waits_free(tn_group *group)
{
    for (int32_t i = 0; group->peers && i < group->facts.size; i++)
        for (int k = 0; k < TAG_BLOCKS; k++)
            free(group->peers[i].tags[k]);
}

// --- telling ----------------------------------------------------------------------------

// Appends to a text of REASON bytes.
static void text_add(char *text, size_t *used, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void text_add(char *text, size_t *used, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text + *used, REASON - *used, format, arguments);
    va_end(arguments);
    if (size > 0)
        *used += (size_t)size < REASON - *used ? (size_t)size : REASON - 1 - *used;
}

// The tag of this member's last message to the sender of a note, where that one waits for
// another tag; -1: none.
static int32_t other_tag(const tn_group *group, const struct wait_note *note)
{
    const struct group_peer *peer = &group->peers[note->from];
    bool differs = note->kind == NOTE_RECEIVES && peer->has_sent;
    return differs && peer->last_tag != note->tag ? peer->last_tag : -1;
}

static void sent_add(char *text, size_t *used, int32_t tag, const char *behind)
{
    if (tag >= 0)
        text_add(text, used, " sent it a message with tag %d%s", tag, behind);
}

static void wait_tell(const tn_collective_work *work, const struct wait_note *note)
{
    tn_group *group = work->group;
    char text[REASON], call[128];
    size_t used = 0;
    int32_t tag = other_tag(group, note);
    for (int32_t i = 0; i < note->length && i < LINKS_TOLD; i++) {
        const struct wait_link *link = &note->links[i];
        if (i == 0)
            text_add(text, &used, "rank %d", link->rank);
        else
            text_add(text, &used, ", which");
        sent_add(text, &used, i ? link->sent : -1, " and");
        text_add(text, &used, " waits %s rank %d (tag %d)",
                 link->receives ? "to receive from" : "until what it sends is received by",
                 link->peer, link->tag);
    }
    if (note->length > LINKS_TOLD)
        text_add(text, &used, ", and so on, %d members", note->length);
    if (work->stage == AGREEING || tag >= 0)
        text_add(text, &used, ", which");
    sent_add(text, &used, tag, work->stage == AGREEING ? " and" : "");
    move_print(work->record, call, sizeof(call));
    if (work->stage == AGREEING)
        text_add(text, &used, " waits in %s", call);
    group_end(group, TN_ERR_ARGUMENT, "members disagree: %s", text);
}

// --- notes ------------------------------------------------------------------------------

void waits_take(tn_group *group, int32_t from, const struct wait_note *note)
{
    if (note->origin < 0 || note->origin >= group->facts.size || note->tag < 0 ||
        note->tag >= (int64_t)TAGS_A_BLOCK * TAG_BLOCKS)
        return;
    struct wait_note *mine = &group->peers[note->origin].waiting;
    if (mine->kind && mine->wait == note->wait)
        return; // it went round, and was passed on
    *mine = *note;
    mine->from = from;
    mine->passed_in = 0;
    group->has_waiting = true;
}

// Sends a note about the wait in `work`, behind those of `before` (NULL: none).
static void wait_pass(tn_collective_work *work, const struct wait_note *before)
{
    tn_group *group = work->group;
    const tn_collective_call *call = &work->call;
    bool receives = call->kind == TN_COLLECTIVE_RECEIVE;
    struct wait_note note = {.origin = group->facts.rank, .wait = work->number};
    int32_t tag = before ? other_tag(group, before) : -1;
    if (before)
        note = *before;
    note.kind = receives ? NOTE_RECEIVES : NOTE_SENDS;
    note.sequence = group->sequence;
    note.tag = call->tag;
    note.count = work->count;
    if (note.length < LINKS_TOLD)
        note.links[note.length] = (struct wait_link){.rank = group->world_rank,
                                                     .peer = group->members[call->peer],
                                                     .receives = receives,
                                                     .tag = call->tag,
                                                     .sent = tag};
    note.length++;
    notes_send(group, call->peer, &note);
}

// --- looking ----------------------------------------------------------------------------

// Whether this member has not started the message for which a note's sender waits.
static bool waits_in_vain(const tn_group *group, const struct wait_note *note)
{
    const int64_t *count =
        message_count(&group->peers[note->from], note->tag, note->kind != NOTE_RECEIVES);
    return note->count > (count ? *count : 0);
}

// Whether `work`, in which this process waits, is a message that cannot end before the
// other member starts it.
static bool wait_lasts(tn_collective_work *work, int64_t waited_ns)
{
    tn_group *group = work->group;
    const tn_collective_call *call = &work->call;
    if (work->stage != MOVING || call->kind != TN_COLLECTIVE_SEND)
        return work->stage == MOVING && call->kind == TN_COLLECTIVE_RECEIVE;
    if (!work->has_asked && waited_ns >= NOTE_NS) {
        work->has_asked = true;
        notes_send(group, call->peer,
                   &(struct wait_note){.kind = NOTE_ASKS, .wait = work->number});
    }
    if (group->peers[call->peer].answered != work->number)
        return false;
    work->answered_ns = work->answered_ns ? work->answered_ns : waited_ns;
    return waited_ns - work->answered_ns >= ANSWERED_NS;
}

// Looks at the last note that began with a member.
static void waiting_look(tn_collective_work *work, int32_t origin, bool lasts)
{
    tn_group *group = work->group;
    struct wait_note *note = &group->peers[origin].waiting;
    if (!waits_in_vain(group, note))
        note->kind = 0;
    else if (work->stage == AGREEING) {
        if (work->record[RECORD_SEQUENCE] > note->sequence)
            wait_tell(work, note);
    } else if (lasts && origin == group->facts.rank) {
        if (note->wait == work->number)
            wait_tell(work, note);
    } else if (lasts && note->passed_in != work->number) {
        note->passed_in = work->number;
        wait_pass(work, note);
    }
}

tn_status waits_look(tn_collective_work *work, int64_t waited_ns)
{
    tn_group *group = work->group;
    if (group->facts.size == 1)
        return TN_OK;
    bool lasts = wait_lasts(work, waited_ns), is_there = false;
    if (lasts && !work->has_noted && waited_ns >= NOTE_NS) {
        work->has_noted = true;
        wait_pass(work, NULL);
    }
    for (int32_t i = 0; group->has_waiting && i < group->facts.size; i++) {
        if (!group->broken[0] && group->peers[i].waiting.kind)
            waiting_look(work, i, lasts);
        is_there |= group->peers[i].waiting.kind != 0;
    }
    group->has_waiting = is_there;
    return group->broken[0] ? group->broken_status : TN_OK;
}
