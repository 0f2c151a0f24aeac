// SPDX-License-Identifier: MIT
// Groups of processes, their works, and how both fail.
//
// Each call of a group is agreed upon first: all members give a record of what they are
// about to do, and those that differ are told to everyone instead of waiting for each
// other. Such records, and the calls, have communicators of their own. Few elements travel
// with the record, in one message, or on a board where all members are on one machine.
//
// One thread at a time is in MPI, or reads and writes what is here (progress_enter). What
// fails meanwhile is recorded in the group, and told to the host afterwards.
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

// Kinds of calls that the interface does not have.
enum { CALL_SPLIT = 100, CALL_LEAVE = 101 };

// Words of the record that the members of a group have to agree on.
enum {
    RECORD_SEQUENCE,
    RECORD_KIND,
    RECORD_DTYPE,
    RECORD_REDUCTION,
    RECORD_PEER,
    RECORD_COUNT,
    RECORD_SIZE
};

// Message by which members agree: equal records, or `differs`. `data`: elements of a call
// that has few, reduced; of a broadcast and a gather the bytes of all, which are 0 where a
// member has none. Bytes behind these are not sent.
struct message {
    int64_t record[RECORD_SIZE];
    int64_t differs;
    unsigned char data[4096 - 8 * (RECORD_SIZE + 1)];
};

// Kinds of notes.
enum { NOTE_RECEIVES = 1, NOTE_SENDS, NOTE_ENDS };

// Facts in a note of a member: it waits in a message with this one, has started so many
// calls of all members, and sent to this member and received from it so many messages.
struct note_facts {
    int64_t kind; // 0: there is none
    int64_t sequence, sent, received;
};

// Another member, by rank: messages that this one started, and the last note of that one.
struct group_peer {
    int64_t sent, received;
    struct note_facts note;
};

struct tn_group {
    tn_group *next;         // of all groups of the process
    const tn_group *parent; // while it is split off: failures there are its own
    tn_group_facts facts;
    struct mpi_library *library;
    handle calls, agreements;      // communicators
    struct watch *watch;           // the process's
    struct board *board;           // NULL: members agree by messages
    int32_t *members;              // ranks in the world, by rank here
    int32_t world_rank;            // of this process
    int64_t sequence;              // of calls that all members make
    uint64_t deadline_ms;          // 0: none
    struct message *mine, *theirs; // of the work that agrees
    struct group_peer *peers;      // by rank here
    struct sent_note *notes;       // under way
    uint64_t note_looks;           // for notes
    int32_t num_messages;          // works of two members that have not ended
    tn_collective_work *queue;     // works in their order, whose elements do not move yet
    tn_collective_work *spare;     // memory of one that has ended
    bool keeps_notes;              // broken by this member, as notes tell the others
    char broken[REASON];           // why every call fails; "": it does not
    tn_status broken_status;
};

enum work_stage { QUEUED, AGREEING, COMPARING, MOVING, ENDED };

struct tn_collective_work {
    tn_group *group;
    tn_collective_work *next;       // in the queue
    tn_collective_work *background; // the next one that a thread drives
    tn_collective_call call;
    enum work_stage stage;
    handle request;   // of the stage
    bool has_more;    // MOVING: elements are left behind this part
    int part;         // elements of each member in it
    uint64_t moved;   // those up to its end
    int64_t began_ns; // 0: the wait has not begun
    bool has_noted;   // the other member of a message knows that this one waits
    int64_t record[RECORD_SIZE];
    int round;          // AGREEING, by messages
    uint64_t turns;     // on the board: looks at it
    handle requests[2]; // of the round: sending, receiving; those that are under way
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

// Says why `what` failed with a code of MPI; `out`: REASON bytes.
void group_print_failure(const struct mpi_library *library, int code, const char *what,
                         char *out);

// The same as group_break, by a code of MPI.
tn_status group_mpi_failed(tn_group *group, int code, const char *what);

// The same for all groups of the process, where a thread was left behind in MPI: nothing
// of MPI is called any more.
void groups_break(tn_status status, const char *why);
bool groups_are_lost(void);

// Who failed of those without whom a group cannot go on, or NULL: of its members, and of
// all ranks where the library has no fault tolerance. Reads the watch.
const struct watch_failure *group_failure(const tn_group *group);

// Tells the host the failure behind a status that is not TN_OK: why the group is broken, or
// that memory is out. Not between progress_enter and progress_leave.
tn_status group_tell(const tn_host *host, const tn_group *group, tn_status status);

// Makes a group over communicator `comm`, which it takes. Calls MPI, without entering.
// `why`: JOIN_REASON bytes.
tn_status group_create(struct mpi_library *library, handle comm, char *why,
                       tn_group **out_group);
// Lists a group that is complete among those of the process.
void group_enlist(tn_group *group);

// Gathers `count` elements of each member.
tn_status group_gather(const tn_host *host, tn_group *group, tn_dtype dtype, uint64_t count,
                       const void *mine, void *all);
// Gives the group a board, where all members can open one.
tn_status group_find_board(const tn_host *host, tn_group *group);

// --- introduce.c ------------------------------------------------------------------------

// Compares what the members of the world are: TN_ERR_REFUSED names those of different
// versions; different devices, and plugins that one lacks, are warnings.
tn_status world_introduce(const tn_host *host, tn_group *world);

// --- notes.c ----------------------------------------------------------------------------

// Breaks the group, and tells the other members why.
tn_status group_end(tn_group *group, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Reads a note, if one has come: the group is broken where a member ended it.
tn_status notes_read(tn_group *group);

// Tells the other member of a message that this process waits in `work`, and breaks the
// group where two wait for each other.
tn_status notes_look(tn_collective_work *work, int64_t waited_ns);

// Reads the notes that have come from all members.
void notes_drain(tn_group *group);

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
// Breaks the group by a failure of MPI in such a call, as soon as it is known who failed.
tn_status call_break(tn_group *group, int32_t kind, const char *why);

// Does what can be done now for a work and those before it, without waiting.
tn_status work_advance(tn_collective_work *work);
// Whether somebody failed, or the deadline passed: breaks the group.
tn_status work_look(tn_collective_work *work);

// --- progress.c -------------------------------------------------------------------------

void progress_enter(void);
void progress_leave(void);

// Between both, this thread and those that it starts are in MPI, without the lock; the
// second one enters.
void progress_hold(void);
void progress_enter_held(void);

// Has a thread drive a work to its end; between enter and leave.
bool progress_add(tn_collective_work *work);
void progress_remove(tn_collective_work *work); // it need not be there
// Ends the thread, which has no works. Not between enter and leave.
void progress_stop(void);

// --- agree.c ----------------------------------------------------------------------------

// Begins the agreement on a work's record; goes on with it, and says when it has ended:
// then group->mine has what came of it. Codes of MPI's.
int agree_begin(tn_collective_work *work);
int agree_advance(tn_collective_work *work, bool *out_ended);

// Whether the call's elements travel along; takes what came of them.
bool agree_carries(const tn_collective_work *work);
void agree_unpack(tn_collective_work *work);

// --- move.c -----------------------------------------------------------------------------

// Checks what of a call can be wrong by itself.
tn_status move_check(const tn_host *host, const tn_group *group,
                     const tn_collective_call *call);

// Starts the next part of the call's elements; false in *out_more when it is the last. A
// code of MPI's.
int move_start(tn_collective_work *work, bool *out_more);

// Finishes a move on the host when all elements are there.
void move_finish(tn_collective_work *work);

// "all_reduce", and what a record says: "all_reduce of 8 f32 (sum)".
const char *move_name(int32_t kind);
void move_print(const int64_t *record, char *text, size_t size);

#endif // MPI_GROUP_H
