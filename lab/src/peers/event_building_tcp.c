/* The event builder of event_building.c over plain sockets, by push: the event manager assigns each event to a
 * slot of a builder, and the readout units send their fragments there. The processes are started by fork and use the loopback.
 *
 *   event_building_tcp R B EVENTS BYTES SLOTS
 *
 * A readout unit gathers the fragments for a builder that were requested together, and sends them with one call. A
 * builder reads all available bytes and verifies them in place. A process that waits yields after some tries. Sends block:
 * builders always read, and offers are small, so there is no deadlock.
 *
 * The event manager prints a line of JSON. The exit status is 1 if anything was wrong. It is compiled with the folder of
 * account.h as a folder of headers. */

#define _GNU_SOURCE
#include "account.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 100, MOST_SLOTS = 1024, MOST_UNITS = 64, GATHERED = 256 << 10 };

/* An event and the slot in which it is built; in an offer the event that was built there, or -1. Event -1 is the end. */
struct entry {
    int64_t event, builder, slot;
};

/* The header of a fragment: the readout unit and the slot. */
enum { HEAD_WORDS = 2 };

static int readouts, builders, slots;
static int64_t events, words, stride;

static void fail(const char *why) {
    perror(why);
    exit(1);
}

static void try_again(int *tries) {
    if (++*tries >= TRIES)
        sched_yield();
}

/* The two ends of a connection over the loopback. */
static void connect_pair(int ends[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &length))
        fail("listen");
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[0], (struct sockaddr *)&address, length) || (ends[1] = accept(listener, NULL, NULL)) < 0)
        fail("connect");
    for (int end = 0; end < 2; end++)
        setsockopt(ends[end], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    close(listener);
}

static void send_all(int socket, const void *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = send(socket, bytes, length, MSG_NOSIGNAL);
        if (sent < 0)
            fail("send");
        bytes = (const char *)bytes + sent;
        length -= (size_t)sent;
    }
}

/* Bytes that arrive at a socket; `used` of them are processed. */
struct inbox {
    int socket;
    size_t length, size;
    char *bytes;
};

static struct inbox new_inbox(int socket, size_t size) {
    return (struct inbox){.socket = socket, .size = size, .bytes = room(size)};
}

/* Reads the available bytes without waiting. Returns 0 if there are none. */
static int read_some(struct inbox *inbox) {
    ssize_t count = recv(inbox->socket, inbox->bytes + inbox->length, inbox->size - inbox->length, MSG_DONTWAIT);
    if (count == 0) {
        fprintf(stderr, "a process has left\n");
        exit(1);
    }
    inbox->length += count > 0 ? (size_t)count : 0;
    return count > 0;
}

static void drop_used(struct inbox *inbox, size_t used) {
    memmove(inbox->bytes, inbox->bytes + used, inbox->length - used);
    inbox->length -= used;
}

/* Takes complete entries out of the inbox, at most the number of slots. */
static int take_entries(struct inbox *inbox, struct entry *entries) {
    int count = (int)(inbox->length / sizeof *entries);
    count = count > MOST_SLOTS ? MOST_SLOTS : count;
    memcpy(entries, inbox->bytes, (size_t)count * sizeof *entries);
    drop_used(inbox, (size_t)count * sizeof *entries);
    return count;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Assigns an event to each offered slot, and sends the end when all events are built. */
static void manage(const int *to_readouts, const int *to_builders) {
    struct entry offers[MOST_SLOTS], end = {.event = -1};
    struct inbox inboxes[MOST_UNITS];
    struct account account = new_account(events);
    int64_t next = 0, open = (int64_t)builders * slots;
    for (int builder = 0; builder < builders; builder++)
        inboxes[builder] = new_inbox(to_builders[builder], sizeof offers);
    double start = now();
    for (int tries = 0, builder = 0; open > 0; builder = (builder + 1) % builders) {
        if (!read_some(&inboxes[builder])) {
            try_again(&tries);
            continue;
        }
        int count = take_entries(&inboxes[builder], offers), given = 0;
        tries = 0;
        for (int index = 0; index < count; index++) {
            was_built(&account, offers[index].event);
            open -= next == events;
            if (next < events) {
                offers[given] = offers[index];
                offers[given++].event = next++;
            }
        }
        for (int readout = 0; given > 0 && readout < readouts; readout++)
            send_all(to_readouts[readout], offers, (size_t)given * sizeof *offers);
    }
    double seconds = now() - start;
    close_account(&account);
    for (int readout = 0; readout < readouts; readout++)
        send_all(to_readouts[readout], &end, sizeof end);
    int64_t wrong = 0;
    for (int builder = 0; builder < builders; builder++) {
        int64_t of_one = 0;
        send_all(to_builders[builder], &of_one, sizeof of_one);
        if (recv(to_builders[builder], &of_one, sizeof of_one, MSG_WAITALL) != sizeof of_one)
            fail("recv");
        wrong += of_one;
    }
    print_result(events, events * readouts, wrong, words, seconds);
    exit(wrong > 0);
}

/* Sends the requested fragments. Unit n starts at entry n of the list, so that the units send to different builders. */
static void read_out(int unit, int manager, const int *to_builders) {
    struct entry requests[MOST_SLOTS];
    struct inbox inbox = new_inbox(manager, sizeof requests);
    uint64_t *gathered[MOST_UNITS];
    int64_t used[MOST_UNITS] = {0}, most = GATHERED / 8 > stride ? GATHERED / 8 : stride;
    for (int builder = 0; builder < builders; builder++)
        gathered[builder] = room((size_t)most * 8);
    for (int open = 1, tries = 0; open;) {
        if (!read_some(&inbox)) {
            try_again(&tries);
            continue;
        }
        tries = 0;
        int count = take_entries(&inbox, requests);
        for (int index = 0; index < count; index++) {
            const struct entry *entry = &requests[(index + unit) % count];
            if (entry->event < 0) {
                open = 0;
                continue;
            }
            int64_t builder = entry->builder;
            if (used[builder] + stride > most) {
                send_all(to_builders[builder], gathered[builder], (size_t)used[builder] * 8);
                used[builder] = 0;
            }
            uint64_t *place = gathered[builder] + used[builder];
            place[0] = (uint64_t)unit, place[1] = (uint64_t)entry->slot;
            write_fragment(place + HEAD_WORDS, words, entry->event, unit);
            used[builder] += stride;
        }
        for (int builder = 0; builder < builders; builder++) {
            send_all(to_builders[builder], gathered[builder], (size_t)used[builder] * 8);
            used[builder] = 0;
        }
    }
}

/* Builds events: verifies the fragments that have arrived, and offers full slots again. */
static void build(int builder, int manager, const int *from_readouts) {
    struct entry offers[MOST_SLOTS];
    struct inbox inboxes[MOST_UNITS], of_manager = new_inbox(manager, sizeof(int64_t));
    int missing[MOST_SLOTS], offered = 0;
    int64_t built_in[MOST_SLOTS], wrong = 0;
    for (int readout = 0; readout < readouts; readout++)
        inboxes[readout] = new_inbox(from_readouts[readout], GATHERED + (size_t)stride * 8);
    for (int slot = 0; slot < slots; slot++) {
        missing[slot] = readouts, built_in[slot] = -1;
        offers[offered++] = (struct entry){.event = -1, .builder = builder, .slot = slot};
    }
    for (int tries = 0;;) {
        if (offered > 0)
            send_all(manager, offers, (size_t)offered * sizeof *offers);
        offered = 0;
        int found = 0;
        for (int readout = 0; readout < readouts; readout++) {
            struct inbox *inbox = &inboxes[readout];
            if (!read_some(inbox))
                continue;
            found = 1;
            size_t done = 0;
            for (; inbox->length - done >= (size_t)stride * 8; done += (size_t)stride * 8) {
                const uint64_t *place = (const uint64_t *)(inbox->bytes + done), *fragment = place + HEAD_WORDS;
                int64_t slot = (int64_t)place[1], event = (int64_t)fragment[0];
                wrong += verify_fragment(fragment, words, event, (int)place[0]);
                /* All fragments in a slot must belong to the same event. */
                wrong += missing[slot] < readouts && built_in[slot] != event;
                built_in[slot] = event;
                if (--missing[slot] == 0) {
                    missing[slot] = readouts;
                    offers[offered++] = (struct entry){.event = event, .builder = builder, .slot = slot};
                }
            }
            drop_used(inbox, done);
        }
        if (found) {
            tries = 0;
        } else if (read_some(&of_manager)) {
            send_all(manager, &wrong, sizeof wrong);
            return;
        } else {
            try_again(&tries);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: event_building_tcp R B EVENTS BYTES SLOTS\n");
        return 2;
    }
    readouts = atoi(argv[1]), builders = atoi(argv[2]), events = atoll(argv[3]), words = atoll(argv[4]) / 8;
    slots = atoi(argv[5]), stride = HEAD_WORDS + words + SEAL_WORDS;
    if (readouts < 1 || builders < 1 || readouts > MOST_UNITS || builders > MOST_UNITS || words < 1 || slots < 1 ||
        slots > MOST_SLOTS) {
        fprintf(stderr, "there must be 1 to 64 units of each kind, 8 bytes or more, and 1 to 1024 slots\n");
        return 2;
    }
    int of_readout[MOST_UNITS][2], of_builder[MOST_UNITS][2], data[MOST_UNITS][MOST_UNITS][2];
    for (int readout = 0; readout < readouts; readout++)
        connect_pair(of_readout[readout]);
    for (int builder = 0; builder < builders; builder++) {
        connect_pair(of_builder[builder]);
        for (int readout = 0; readout < readouts; readout++)
            connect_pair(data[builder][readout]);
    }
    for (int unit = 0; unit < readouts + builders; unit++) {
        if (fork() > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would wait for good */
        int ends[MOST_UNITS], builder = unit - readouts;
        if (unit < readouts) {
            for (int other = 0; other < builders; other++)
                ends[other] = data[other][unit][0];
            read_out(unit, of_readout[unit][1], ends);
        } else {
            for (int other = 0; other < readouts; other++)
                ends[other] = data[builder][other][1];
            build(builder, of_builder[builder][1], ends);
        }
        return 0;
    }
    int to_readouts[MOST_UNITS], to_builders[MOST_UNITS];
    for (int readout = 0; readout < readouts; readout++)
        to_readouts[readout] = of_readout[readout][0];
    for (int builder = 0; builder < builders; builder++)
        to_builders[builder] = of_builder[builder][0];
    manage(to_readouts, to_builders);
}
