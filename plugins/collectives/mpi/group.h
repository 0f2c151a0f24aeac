// SPDX-License-Identifier: MIT
// Groups of processes, their works, and how both fail.
//
// Members agree on each call of a group first: all give a record of the call that they
// start, and where records differ all of them fail with a message instead of waiting for
// each other. Records and calls have communicators of their own. Few elements travel with
// the record, in one message, or on a board where all members are on one machine.
//
// One thread at a time calls MPI and uses these structs (progress_enter). A failure is
// recorded in the group then, and told to the host after progress_leave.
#ifndef MPI_GROUP_H
#define MPI_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "board.h"
#include "library.h"
#include "watch.h"

#define MPI_PLUGIN_VERSION "0.1.0"

enum { REASON = 512 };

// Kinds of calls beside TN_COLLECTIVE_...: members agree on them, and no elements move.
enum { CALL_SPLIT = 100, CALL_LEAVE = 101 };

// Words of the record that the members of a group have to agree on.
enum {
    RECORD_SEQUENCE,
    RECORD_KIND,
    RECORD_DTYPE,
    RECORD_REDUCTION, // a message's tag
    RECORD_PEER,
    RECORD_COUNT,
    RECORD_SIZE
};

// Message by which members agree: equal records, or `differs`. `data` has the elements of a
// call with few: the reduced ones, or, of a broadcast and a gather, the bytes of all
// members, with 0 for those that the sender does not have. The rest of `data` is not sent.
struct message {
    int64_t record[RECORD_SIZE];
    int64_t differs;
    unsigned char data[4096 - 8 * (RECORD_SIZE + 1)];
};

// Kinds of notes: the first two are of waits.
enum { NOTE_RECEIVES = 1, NOTE_SENDS, NOTE_ENDS, NOTE_ASKS, NOTE_ANSWERS };

enum {
    LINKS_TOLD = 6,
    TAGS_A_BLOCK = 512,
    TAG_BLOCKS = 64 // of the tags 0 .. 32767
};

// A member that waits in a message for another one: ranks in the world.
struct wait_link {
    int32_t rank, peer, tag;
    int32_t receives; // 0: it sends
    int32_t sent;     // tag of its last message to the member that waits for it; -1: none
};

// A note of a member that waits in a message with this one, `count` messages of its kind
// and tag after the first call of the group. Members before it wait for each other.
struct wait_note {
    int64_t kind;     // NOTE_...; 0: no note
    int64_t sequence; // calls of all members that it has started
    int64_t tag, count;
    int64_t wait;           // number of the work in which the first member waits
    int32_t origin, length; // the first member, by rank here, and the number of members
    struct wait_link links[LINKS_TOLD]; // the first of them
    int32_t from;                       // who sent the note, by rank here
    int64_t passed_in;                  // number of the work in which it was passed on
};

// Messages with another member that this one started, by tag.
struct tag_counts {
    int64_t sent[TAGS_A_BLOCK], received[TAGS_A_BLOCK];
};

// Another member, by rank.
struct group_peer {
    struct tag_counts *tags[TAG_BLOCKS]; // NULL: no messages
    bool has_sent;                       // `last_tag` is that of the last message to it
    int32_t last_tag;
    int64_t answered;         // the last work that the member answered
    struct wait_note waiting; // the last note that began with it
};

struct tn_group {
    tn_group *next;         // in the list of all groups of the process
    const tn_group *parent; // while it is split off: failures of the parent count, too
    tn_group_facts facts;
    struct mpi_library *library;
    handle calls, agreements;      // communicators
    struct watch *watch;           // the process's
    struct board *board;           // NULL: members agree by messages
    int32_t *members;              // ranks in the world, by rank here
    int32_t world_rank;            // of this process
    int64_t sequence;              // calls of all members that were started
    uint64_t deadline_ms;          // 0: none
    struct message *mine, *theirs; // of the work in stage AGREEING
    struct group_peer *peers;      // by rank here
    struct sent_note *notes;       // being sent
    uint64_t note_looks;           // notes_read() calls, which choose the member to look at
    int64_t num_works;             // works that were started
    bool has_waiting;              // a peer has a note of a wait
    int64_t looked_ns;             // when a call looked for failures before it began
    tn_collective_work *queue;     // works in call order whose last part does not move yet
    tn_collective_work *spare;     // memory of an ended work, for the next one
    bool keeps_notes;              // `agreements` is not revoked: it carries notes
    char broken[REASON];           // why every call fails; "": not broken
    tn_status broken_status;
};

enum work_stage { QUEUED, AGREEING, COMPARING, MOVING, ENDED };

struct tn_collective_work {
    tn_group *group;
    tn_collective_work *next;       // in the queue
    tn_collective_work *background; // the next work that the thread of progress.c drives
    tn_collective_call call;
    enum work_stage stage;
    handle request;      // MPI's, of the current stage
    bool has_more;       // MOVING: more parts follow this one
    int part;            // elements of each member in this part
    uint64_t moved;      // elements of each member up to the end of this part
    int64_t began_ns;    // 0: the wait has not begun
    int64_t number;      // among the works of the group, from 1
    int64_t count;       // a message: its number among those of its kind, member and tag
    bool has_noted;      // the other member of a message knows that this one waits
    bool has_asked;      // the other member of a send was asked for an answer
    int64_t answered_ns; // from the begin of the wait to the answer; 0: none
    int64_t record[RECORD_SIZE];
    int round;          // AGREEING by messages: the number of the round
    uint64_t turns;     // AGREEING on the board: polls so far
    handle requests[2]; // of the round: send, receive; valid where is_under_way
    bool is_under_way[2];
    int64_t *all; // records of all members, once they are known to differ
};

// --- group.c ----------------------------------------------------------------------------

tn_status mpi_open(const tn_host *host, tn_group **out_group);
void mpi_close(const tn_host *host, tn_group *group);
const tn_group_facts *mpi_facts(const tn_group *group);
void mpi_set_deadline(tn_group *group, uint64_t milliseconds);
void mpi_abort(const tn_host *host, tn_group *group, const char *reason);

// Breaks the group, unless it is broken already. Gives the status of what broke it.
tn_status group_break(tn_group *group, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Writes why `what` failed, by an error code of MPI (0: another member ended the group), to
// `out`, which has REASON bytes.
void group_print_failure(const struct mpi_library *library, int code, const char *what,
                         char *out);

// group_break() with the text of an error code of MPI.
tn_status group_mpi_failed(tn_group *group, int code, const char *what);

// group_break() for all groups of the process, after a thread was left behind in MPI: MPI
// is not called any more.
void groups_break(tn_status status, const char *why);
bool groups_are_lost(void);

// MPI has a call of a broken group that does not end: MPI is not finalised.
void groups_have_pending(void);

// Reads the watch. Gives the failure of a rank without which the group cannot go on, or
// NULL: of a member, or of any rank where the library has no fault tolerance.
const struct watch_failure *group_failure(const tn_group *group);

// Tells the host the failure behind a status that is not TN_OK: why the group is broken, or
// that memory is out. Not between progress_enter and progress_leave.
tn_status group_tell(const tn_host *host, const tn_group *group, tn_status status);

// Makes a group over communicator `comm`, which it takes. Calls MPI without progress_enter.
// `why`: JOIN_REASON bytes.
tn_status group_create(struct mpi_library *library, handle comm, char *why,
                       tn_group **out_group);
// Adds a complete group to the list of the process's groups.
void group_enlist(tn_group *group);
// Takes a group from the list, and frees it but for memory that MPI may use.
void group_free(tn_group *group);

// Gathers `count` elements of each member.
tn_status group_gather(const tn_host *host, tn_group *group, tn_dtype dtype, uint64_t count,
                       const void *mine, void *all);
// Gives the group a board, where all members can open one.
tn_status group_find_board(const tn_host *host, tn_group *group);

// --- introduce.c ------------------------------------------------------------------------

// Compares facts of the world's members: TN_ERR_REFUSED names members of different
// versions; different devices, and plugins that one member lacks, are warnings.
tn_status world_introduce(const tn_host *host, tn_group *world);

// --- notes.c ----------------------------------------------------------------------------

// Breaks the group, and tells the other members why.
tn_status group_end(tn_group *group, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Reads a note of one member, of the next one at each call. A member's end breaks the
// group.
tn_status notes_read(tn_group *group);

// Sends a member a note of a wait. One that cannot be sent is dropped: members then wait as
// without notes.
void notes_send(tn_group *group, int32_t rank, const struct wait_note *wait);

// Reads the notes that have come from all members.
void notes_drain(tn_group *group);

// --- waits.c ----------------------------------------------------------------------------

// Counts a message that is started; false: memory is out.
bool waits_count(tn_collective_work *work);
void waits_free(tn_group *group);

// Keeps a note of a wait that has come from a member.
void waits_take(tn_group *group, int32_t from, const struct wait_note *note);

// Notes to the other member of a message that this process waits in `work`, and breaks the
// group where members wait for each other.
tn_status waits_look(tn_collective_work *work, int64_t waited_ns);

// --- part.c -----------------------------------------------------------------------------

tn_status mpi_split(const tn_host *host, tn_group *group, int32_t color, int32_t key,
                    tn_group **out_group);
tn_status mpi_shrink(const tn_host *host, tn_group *group, tn_group **out_group);

// --- call.c -----------------------------------------------------------------------------

tn_status mpi_start(const tn_host *host, tn_group *group, const tn_collective_call *call,
                    tn_collective_work **out_work);
tn_status mpi_test(const tn_host *host, tn_collective_work *work, int32_t *out_done);
tn_status mpi_wait(const tn_host *host, tn_collective_work *work);
tn_status mpi_check(const tn_host *host, tn_group *group, const tn_collective_call *call,
                    int64_t began_ns);

// Has all members agree on a call that moves nothing: CALL_SPLIT, CALL_LEAVE.
tn_status call_agree(tn_group *group, int32_t kind);
// Breaks the group after a failure of MPI in such a call, once the failed rank is known.
tn_status call_break(tn_group *group, int32_t kind, const char *why);

// Advances a work, and the works before it, as far as possible without waiting.
tn_status work_advance(tn_collective_work *work);
// Breaks the group when a rank failed or the deadline passed; gives the group's status.
tn_status work_look(tn_collective_work *work);

// --- progress.c -------------------------------------------------------------------------

void progress_enter(void);
void progress_leave(void);

// Between both, only this thread and threads that it starts call MPI, without the lock;
// progress_enter_held() takes the lock again.
void progress_hold(void);
void progress_enter_held(void);

// Has a thread drive a work to its end; between enter and leave.
bool progress_add(tn_collective_work *work);
void progress_remove(tn_collective_work *work); // may be absent
// Ends the thread, which drives no works then. Not between enter and leave.
void progress_stop(void);

// --- agree.c ----------------------------------------------------------------------------

// Begin and advance the agreement on a work's record. Once *out_ended, group->mine has the
// result. Both return error codes of MPI.
int agree_begin(tn_collective_work *work);
int agree_advance(tn_collective_work *work, bool *out_ended);

// Whether the call's elements travel with the record; writes the result to the call's
// output.
bool agree_carries(const tn_collective_work *work);
void agree_unpack(tn_collective_work *work);

// --- move.c -----------------------------------------------------------------------------

// Checks a call's arguments as far as one member can.
tn_status move_check(const tn_host *host, const tn_group *group,
                     const tn_collective_call *call);

// Starts moving the next part of the call's elements; *out_more is false for the last part.
// Returns an error code of MPI.
int move_start(tn_collective_work *work, bool *out_more);

// Finishes a move on the host when all elements are there.
void move_finish(tn_collective_work *work);

// "all_reduce", and what a record says: "all_reduce of 8 f32 (sum)".
const char *move_name(int32_t kind);
void move_print(const int64_t *record, char *text, size_t size);

#endif // MPI_GROUP_H
