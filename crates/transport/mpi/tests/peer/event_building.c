/* An event builder in plain MPI: what evb's own is compared with.
 *
 *   mpirun -n 1+R+B event_building R EVENTS BYTES (pull|push) SLOTS
 *
 * Rank 0 is the event manager, then come R readout units and B builder units. A builder has SLOTS slots, each with a receive
 * for each readout unit that is posted before the slot is offered: so fragments are never unexpected. The event manager
 * gives an event for each slot that it is offered. Pull: it tells the builder, which asks all readout units. Push: it
 * tells all readout units. A readout unit writes a pattern into each fragment (BYTES, a multiple of 8), and the builder
 * verifies every word. Requests, offers and assignments travel in groups, as many as there are at that moment. Who waits
 * gives way to others after some tries: there may be more ranks than cores, and not every MPI does that by itself.
 *
 * Rank 0 prints a line of JSON. The exit status is 1 if anything was wrong. fragment.h has what a fragment holds, and the
 * duties of evb. */

#include "account.h"
#include <mpi.h>
#include <sched.h>
#include <string.h>

enum { OFFER = 1, ASSIGN, REQUEST, FRAGMENT };
enum { MOST_SLOTS = 1024, SENDING = 64, TRIES = 100 };

/* An event, and the slot of the builder that it is for; event -1 is the end. In an offer it is the event that was built in
 * the slot, or -1 if there was none. */
struct entry {
    int64_t event, builder, slot;
};
enum { WORDS = sizeof(struct entry) / sizeof(int64_t) };

static int readouts, builders, push, slots;
static int64_t events, words;

static void fail(const char *why) {
    fprintf(stderr, "%s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Counts tries, and gives way after some. */
static void try_again(int *tries) {
    if (++*tries >= TRIES)
        sched_yield();
}

static void await(MPI_Request *request, MPI_Status *status) {
    for (int done = 0, tries = 0; MPI_Test(request, &done, status), !done;)
        try_again(&tries);
}

static void meet(void) {
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    await(&request, MPI_STATUS_IGNORE);
}

/* Small messages whose buffers are used again when they have left. */
struct sender {
    MPI_Request requests[SENDING];
    void *buffers[SENDING];
    size_t bytes;
    int next;
};

static struct sender new_sender(size_t bytes) {
    struct sender sender = {.bytes = bytes, .next = 0};
    for (int index = 0; index < SENDING; index++) {
        sender.requests[index] = MPI_REQUEST_NULL;
        sender.buffers[index] = room(bytes);
    }
    return sender;
}

/* A buffer that nobody needs any more. */
static void *next_buffer(struct sender *sender) {
    await(&sender->requests[sender->next], MPI_STATUS_IGNORE);
    return sender->buffers[sender->next];
}

static void start_send(struct sender *sender, int64_t count, int to, int tag) {
    MPI_Isend(sender->buffers[sender->next], (int)count, MPI_INT64_T, to, tag, MPI_COMM_WORLD,
              &sender->requests[sender->next]);
    sender->next = (sender->next + 1) % SENDING;
}

static void send_entries(struct sender *sender, const struct entry *entries, int count, int to, int tag) {
    memcpy(next_buffer(sender), entries, sizeof *entries * (size_t)count);
    start_send(sender, (int64_t)count * WORDS, to, tag);
}

static void end_sender(struct sender *sender) {
    for (int index = 0; index < SENDING; index++) {
        await(&sender->requests[index], MPI_STATUS_IGNORE);
        free(sender->buffers[index]);
    }
}

static int receive_entries(struct entry *entries, int tag, int *from) {
    MPI_Status status;
    MPI_Request request;
    int count;
    MPI_Irecv(entries, MOST_SLOTS * WORDS, MPI_INT64_T, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
    await(&request, &status);
    MPI_Get_count(&status, MPI_INT64_T, &count);
    *from = status.MPI_SOURCE;
    return count / WORDS;
}

/* Gives an event for each slot that is offered, and the end for each when there are no more. */
static void manage(void) {
    static struct entry offers[MOST_SLOTS];
    struct sender sender = new_sender(sizeof offers);
    struct account account = new_account(events);
    int64_t next = 0, open = (int64_t)builders * slots;
    while (open > 0) {
        int from, count = receive_entries(offers, OFFER, &from), given = 0;
        for (int index = 0; index < count; index++) {
            int more = next < events;
            was_built(&account, offers[index].event);
            offers[index].event = more ? next++ : -1;
            given += more;
            open -= !more;
        }
        if (push && given > 0)
            for (int readout = 0; readout < readouts; readout++)
                send_entries(&sender, offers, given, 1 + readout, REQUEST);
        if (!push || given < count)
            send_entries(&sender, offers, count, from, ASSIGN);
    }
    struct entry end = {.event = -1};
    for (int readout = 0; push && readout < readouts; readout++)
        send_entries(&sender, &end, 1, 1 + readout, REQUEST);
    end_sender(&sender);
    close_account(&account);
}

/* Sends what it is asked for. In push, unit n starts at entry n of the list, so that not all go to one builder. */
static void read_out(int unit) {
    static struct entry requests[MOST_SLOTS];
    struct sender sender = new_sender(sizeof(uint64_t) * (size_t)(words + SEAL_WORDS));
    int open = push ? 1 : builders;
    while (open > 0) {
        int from, count = receive_entries(requests, REQUEST, &from);
        for (int index = 0; index < count; index++) {
            const struct entry *entry = &requests[push ? (index + unit) % count : index];
            if (entry->event < 0) {
                open--;
                continue;
            }
            write_fragment(next_buffer(&sender), words, entry->event, unit);
            start_send(&sender, words + SEAL_WORDS, (int)entry->builder, FRAGMENT + (int)entry->slot);
        }
    }
    end_sender(&sender);
}

/* Builds events: receives, verifies, offers the slot again. Gives the fragments and the wrong words. */
static void build(int rank, int64_t counts[2]) {
    static struct entry assigned[MOST_SLOTS], offers[MOST_SLOTS];
    int receives = slots * readouts, open = slots, offered = 0;
    int64_t stride = words + SEAL_WORDS;
    MPI_Request *requests = room(sizeof *requests * (size_t)(receives + 1));
    MPI_Status *statuses = room(sizeof *statuses * (size_t)(receives + 1));
    int *done = room(sizeof *done * (size_t)(receives + 1)), *missing = room(sizeof *missing * (size_t)slots);
    uint64_t *fragments = room(sizeof *fragments * (size_t)(stride * receives));
    struct sender sender = new_sender(sizeof assigned);
    for (int slot = 0; slot < slots; slot++) {
        for (int unit = 0; unit < readouts; unit++) {
            int index = slot * readouts + unit;
            MPI_Recv_init(fragments + stride * index, (int)stride, MPI_UINT64_T, 1 + unit, FRAGMENT + slot, MPI_COMM_WORLD,
                          &requests[index]);
        }
        missing[slot] = readouts;
        offers[offered++] = (struct entry){.event = -1, .builder = rank, .slot = slot};
    }
    MPI_Recv_init(assigned, MOST_SLOTS * WORDS, MPI_INT64_T, 0, ASSIGN, MPI_COMM_WORLD, &requests[receives]);
    MPI_Startall(receives + 1, requests);
    while (open > 0) {
        if (offered > 0)
            send_entries(&sender, offers, offered, 0, OFFER);
        offered = 0;
        int count;
        for (int tries = 0; MPI_Testsome(receives + 1, requests, &count, done, statuses), count == 0;)
            try_again(&tries);
        for (int index = 0; index < count; index++) {
            if (done[index] == receives) {
                int length, given = 0;
                MPI_Get_count(&statuses[index], MPI_INT64_T, &length);
                length /= WORDS;
                while (given < length && assigned[given].event >= 0)
                    given++;
                for (int unit = 0; !push && given > 0 && unit < readouts; unit++)
                    send_entries(&sender, assigned, given, 1 + unit, REQUEST);
                open -= length - given;
                MPI_Start(&requests[receives]);
                continue;
            }
            int slot = done[index] / readouts, unit = done[index] % readouts;
            const uint64_t *fragment = fragments + stride * done[index];
            /* All fragments of an event must name the same one. */
            int64_t event = (int64_t)fragment[0];
            counts[0]++;
            counts[1] += verify_fragment(fragment, words, event, unit);
            if (--missing[slot] > 0)
                continue;
            for (int other = 0; other < readouts; other++)
                counts[1] += fragments[stride * (slot * readouts + other)] != (uint64_t)event;
            missing[slot] = readouts;
            MPI_Startall(readouts, &requests[slot * readouts]);
            offers[offered++] = (struct entry){.event = event, .builder = rank, .slot = slot};
        }
    }
    struct entry end = {.event = -1};
    for (int unit = 0; !push && unit < readouts; unit++)
        send_entries(&sender, &end, 1, 1 + unit, REQUEST);
    end_sender(&sender);
    for (int index = 0; index <= receives; index++) {
        MPI_Cancel(&requests[index]);
        MPI_Wait(&requests[index], MPI_STATUS_IGNORE);
        MPI_Request_free(&requests[index]);
    }
    free(requests), free(statuses), free(done), free(missing), free(fragments);
}

int main(int argc, char **argv) {
    int rank, size;
    int64_t counts[2] = {0, 0}, all[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 6)
        fail("usage: event_building R EVENTS BYTES pull|push SLOTS");
    readouts = atoi(argv[1]), events = atoll(argv[2]), words = atoll(argv[3]) / 8;
    push = !strcmp(argv[4], "push"), slots = atoi(argv[5]), builders = size - 1 - readouts;
    if (readouts < 1 || builders < 1 || words < 1 || slots < 1 || slots > MOST_SLOTS)
        fail("there must be readout units, builders, bytes (8 or more) and slots (1024 at most)");
    meet();
    double start = MPI_Wtime();
    if (rank == 0)
        manage();
    else if (rank <= readouts)
        read_out(rank - 1);
    else
        build(rank, counts);
    meet();
    double seconds = MPI_Wtime() - start;
    MPI_Allreduce(counts, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    int good = all[0] == events * readouts && all[1] == 0;
    if (rank == 0)
        print_result(events, all[0], all[1], words, seconds);
    MPI_Finalize();
    return !good;
}
