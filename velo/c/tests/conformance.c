/* All of libevbvelo: every function, sizes and order between processes, ends of processes, wrong arguments, full mailboxes.
 * The first check that fails ends the program with its line. */
#define _POSIX_C_SOURCE 200809L
#include <evbvelo.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND ((int64_t)1000000)
#define LONGEST (1 << 20)

#define CHECK(what)                                                                        \
    do {                                                                                   \
        if (!(what)) {                                                                     \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #what);           \
            _exit(1);                                                                      \
        }                                                                                  \
    } while (0)

#define EXPECT(call, wanted)                                                               \
    do {                                                                                   \
        long long found = (long long)(call);                                               \
        if (found != (long long)(wanted)) {                                                \
            fprintf(stderr, "%s:%d: %s is %lld (%s), not %lld\n", __FILE__, __LINE__, #call, found, \
                    evbvelo_error((int)found), (long long)(wanted));                       \
            _exit(1);                                                                      \
        }                                                                                  \
    } while (0)

static evbvelo *opened(const char *name) {
    evbvelo *device = NULL;
    EXPECT(evbvelo_open(name, &device), 0);
    CHECK(device != NULL);
    return device;
}

/* A process that runs `body` with the address of `owner`. */
static pid_t started(evbvelo *owner, void (*body)(const evbvelo_address_t *)) {
    evbvelo_address_t address;
    EXPECT(evbvelo_address(owner, &address), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        body(&address);
        _exit(0);
    }
    return child;
}

static void ended_well(pid_t child) {
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void fill(unsigned char *bytes, size_t length, unsigned seed) {
    for (size_t at = 0; at < length; at++) bytes[at] = (unsigned char)(seed + at * 7 + (at >> 8));
}

/* Sends a message to its end. */
static void sent(evbvelo *device, int peer, const void *bytes, size_t length, uint64_t tag) {
    int send;
    while ((send = evbvelo_send(device, peer, bytes, length, tag, ~tag)) == EVBVELO_AGAIN) {
        struct timespec pause = {0, 100000};
        nanosleep(&pause, NULL);
    }
    CHECK(send >= 0 && send <= EVBVELO_MOST_SENDS);
    if (send == 0) return;
    int done;
    while ((done = evbvelo_done(device, send)) == 0) CHECK(evbvelo_wait(device, SECOND) >= 0);
    EXPECT(done, 1);
}

/* Waits for anything. A sender that has sent all may end meanwhile. */
static void waited(evbvelo *device, int64_t timeout_us) {
    int result = evbvelo_wait(device, timeout_us);
    CHECK(result >= 0 || result == EVBVELO_GONE);
}

/* Waits for the first message. */
static evbvelo_message arrived(evbvelo *device) {
    evbvelo_message message;
    for (int turn = 0; turn < 30; turn++) {
        if (evbvelo_poll(device, &message) == 1) return message;
        waited(device, SECOND);
    }
    CHECK(!"a message");
    return message;
}

static int64_t received(evbvelo *device, void *buffer, size_t room) {
    int64_t length;
    while ((length = evbvelo_receive(device, buffer, room)) == EVBVELO_AGAIN) waited(device, 1000);
    return length;
}

static const size_t SIZES[] = {0, 1, 64, 65, 4096, 8192, 8193, LONGEST};
enum { COUNT = sizeof SIZES / sizeof SIZES[0], ROUNDS = 40 };

/* Sends every size in turns, and expects each back. */
static void sender_of_sizes(const evbvelo_address_t *address) {
    unsigned char *bytes = malloc(LONGEST), *back = malloc(LONGEST);
    CHECK(bytes && back);
    evbvelo *device = opened(NULL);
    int peer = evbvelo_map_address(device, address);
    CHECK(peer >= 0);
    for (unsigned turn = 0; turn < ROUNDS * COUNT; turn++) {
        size_t length = SIZES[turn % COUNT];
        fill(bytes, length, turn);
        sent(device, peer, bytes, length, turn);
    }
    for (unsigned turn = 0; turn < COUNT; turn++) {
        evbvelo_message message = arrived(device);
        CHECK(message.length == SIZES[turn] && message.peer == peer);
        EXPECT(received(device, back, LONGEST), SIZES[turn]);
        fill(bytes, SIZES[turn], turn + 1000);
        CHECK(memcmp(bytes, back, SIZES[turn]) == 0);
    }
    EXPECT(evbvelo_close(device), 0);
    free(bytes);
    free(back);
}

static void sizes_arrive_whole_and_in_order(void) {
    unsigned char *bytes = malloc(LONGEST), *wanted = malloc(LONGEST);
    CHECK(bytes && wanted);
    evbvelo *device = opened(NULL);
    pid_t child = started(device, sender_of_sizes);
    int peer = -1;
    for (unsigned turn = 0; turn < ROUNDS * COUNT; turn++) {
        size_t length = SIZES[turn % COUNT];
        evbvelo_message message = arrived(device);
        CHECK(message.length == length && message.tag == turn && message.data == ~(uint64_t)turn);
        CHECK(message.kind == EVBVELO_KIND_MESSAGE && message.peer >= 0);
        if (length > 0) EXPECT(evbvelo_receive(device, bytes, length - 1), EVBVELO_TOO_LONG);
        EXPECT(received(device, bytes, LONGEST), length);
        fill(wanted, length, turn);
        CHECK(memcmp(bytes, wanted, length) == 0);
        peer = message.peer;
    }
    for (unsigned turn = 0; turn < COUNT; turn++) {
        fill(bytes, SIZES[turn], turn + 1000);
        sent(device, peer, bytes, SIZES[turn], turn);
    }
    EXPECT(evbvelo_flush(device, 30 * SECOND), 1);
    ended_well(child);
    EXPECT(evbvelo_close(device), 0);
    free(bytes);
    free(wanted);
}

enum { FLOOD = 3 * EVBVELO_MOST_MESSAGES };

/* The peer that `to` is for `from`. */
static int mapped(evbvelo *from, evbvelo *to) {
    evbvelo_address_t address;
    EXPECT(evbvelo_address(to, &address), 0);
    int peer = evbvelo_map_address(from, &address);
    CHECK(peer >= 0);
    return peer;
}

static void flooder(const evbvelo_address_t *address) {
    evbvelo *device = opened(NULL);
    int peer = evbvelo_map_address(device, address);
    CHECK(peer >= 0);
    for (uint64_t number = 0; number < FLOOD; number++) {
        int sent;
        while ((sent = evbvelo_send(device, peer, &number, sizeof number, number, 0)) == EVBVELO_AGAIN) {
            struct timespec pause = {0, 100000};
            nanosleep(&pause, NULL);
        }
        EXPECT(sent, 0);
    }
    EXPECT(evbvelo_close(device), 0);
}

static void a_message_that_is_taken_makes_room_at_once(void) {
    evbvelo *device = opened(NULL), *other = opened(NULL);
    int peer = mapped(other, device);
    for (int count = 0; count < EVBVELO_MOST_MESSAGES; count++) EXPECT(evbvelo_send(other, peer, "x", 1, 0, 0), 0);
    for (int turn = 0; turn < 2; turn++) {
        char byte;
        EXPECT(evbvelo_send(other, peer, "x", 1, 0, 0), EVBVELO_AGAIN);
        if (turn == 0) EXPECT(evbvelo_receive(device, &byte, 1), 1);
        if (turn == 1) EXPECT(evbvelo_discard(device), 0);
        EXPECT(evbvelo_send(other, peer, "x", 1, 0, 0), 0);
    }
    EXPECT(evbvelo_close(device), 0);
    EXPECT(evbvelo_close(other), 0);
}

static void a_full_mailbox_says_again_and_loses_nothing(void) {
    evbvelo *device = opened(NULL), *other = opened(NULL);
    int peer = mapped(other, device);
    for (uint64_t number = 0; number < EVBVELO_MOST_MESSAGES; number++) {
        EXPECT(evbvelo_send(other, peer, &number, sizeof number, number, 0), 0);
    }
    EXPECT(evbvelo_send(other, peer, "", 0, 0, 0), EVBVELO_AGAIN);
    EXPECT(evbvelo_notify(other, peer, 0, 0), EVBVELO_AGAIN);
    EXPECT(evbvelo_alive(other, peer), 1);
    pid_t children[2] = {started(device, flooder), started(device, flooder)};
    uint64_t next[3] = {0, 0, 0};
    int peers[3] = {-1, -1, -1};
    for (int count = 0; count < EVBVELO_MOST_MESSAGES + 2 * FLOOD; count++) {
        evbvelo_message message = arrived(device);
        uint64_t number = 0;
        EXPECT(evbvelo_receive(device, &number, sizeof number), sizeof number);
        int from = 0;
        while (from < 3 && peers[from] != message.peer && peers[from] != -1) from++;
        CHECK(message.peer >= 0 && from < 3);
        peers[from] = message.peer;
        CHECK(number == message.tag && number == next[from]);
        next[from]++;
    }
    ended_well(children[0]);
    ended_well(children[1]);
    evbvelo_message message;
    EXPECT(evbvelo_poll(device, &message), 0);
    CHECK(message.length == 0 && message.tag == 0);
    EXPECT(evbvelo_close(other), 0);
    EXPECT(evbvelo_close(device), 0);
}

/* Says hello and waits to be killed, with a block and a long message of its own under way. */
static void victim(const evbvelo_address_t *address) {
    unsigned char *bytes = calloc(1, LONGEST);
    evbvelo *device = opened(NULL);
    int peer = evbvelo_map_address(device, address);
    EXPECT(evbvelo_send(device, peer, "hello", 6, 1, 0), 0);
    CHECK(evbvelo_send(device, peer, bytes, LONGEST, 2, 0) > 0);
    for (;;) pause();
}

static void peers_that_are_killed_are_errors_and_leave_nothing(void) {
    unsigned char *bytes = calloc(1, LONGEST);
    CHECK(bytes);
    evbvelo *device = opened(NULL);
    pid_t child = started(device, victim);
    evbvelo_message message = arrived(device);
    char hello[6];
    EXPECT(received(device, hello, sizeof hello), 6);
    CHECK(strcmp(hello, "hello") == 0 && arrived(device).length == LONGEST);
    int peer = message.peer;
    EXPECT(evbvelo_alive(device, peer), 1);
    int send = evbvelo_send(device, peer, bytes, LONGEST, 0, 0);
    CHECK(send > 0);
    EXPECT(evbvelo_done(device, send), 0);
    /* All blocks of this device are on the way to the one that ends. */
    int blocks = 0;
    while (evbvelo_send(device, peer, bytes, 100, 0, 0) == 0) blocks++;
    CHECK(blocks > 0);
    EXPECT(evbvelo_flush(device, 1000), 0);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    int64_t result;
    while ((result = evbvelo_receive(device, bytes, LONGEST)) == EVBVELO_AGAIN) continue;
    EXPECT(result, EVBVELO_GONE);
    EXPECT(evbvelo_wait(device, 10 * SECOND), EVBVELO_GONE);
    EXPECT(evbvelo_wait(device, 1000), 0);
    EXPECT(evbvelo_alive(device, peer), 0);
    EXPECT(evbvelo_done(device, send), EVBVELO_GONE);
    EXPECT(evbvelo_done(device, send), EVBVELO_INVALID);
    EXPECT(evbvelo_send(device, peer, "", 0, 0, 0), EVBVELO_GONE);
    EXPECT(evbvelo_put(device, peer, 1, 0, bytes, 1), EVBVELO_GONE);
    EXPECT(evbvelo_flush(device, SECOND), 1);
    /* The blocks are there again for others. */
    evbvelo_address_t address;
    EXPECT(evbvelo_address(device, &address), 0);
    int self = evbvelo_map_address(device, &address);
    EXPECT(evbvelo_send(device, self, bytes, 100, 0, 0), 0);
    EXPECT(evbvelo_receive(device, bytes, 100), 100);
    EXPECT(evbvelo_close(device), 0);
    free(bytes);
}

static void closed_devices_are_gone(void) {
    evbvelo *device = opened(NULL), *other = opened(NULL);
    evbvelo_address_t address;
    EXPECT(evbvelo_address(other, &address), 0);
    int peer = evbvelo_map_address(device, &address);
    EXPECT(evbvelo_map_address(device, &address), peer);
    EXPECT(evbvelo_close(other), 0);
    EXPECT(evbvelo_alive(device, peer), 0);
    EXPECT(evbvelo_send(device, peer, "", 0, 0, 0), EVBVELO_GONE);
    EXPECT(evbvelo_close(device), 0);
}

static void sleeper(const evbvelo_address_t *address) {
    evbvelo *device = opened(NULL);
    int peer = evbvelo_map_address(device, address);
    struct timespec pause = {0, 50000000};
    nanosleep(&pause, NULL);
    EXPECT(evbvelo_send(device, peer, "wake", 4, 0, 0), 0);
    EXPECT(evbvelo_close(device), 0);
}

static void a_wait_ends_by_its_time_or_a_message(void) {
    evbvelo *device = opened(NULL);
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    EXPECT(evbvelo_wait(device, 20000), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK((end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000 >= 20000);
    EXPECT(evbvelo_wait(device, 0), 0);
    pid_t child = started(device, sleeper);
    EXPECT(evbvelo_wait(device, -1), 1);
    EXPECT(evbvelo_wait(device, -1), 1);
    EXPECT(evbvelo_discard(device), 0);
    EXPECT(evbvelo_discard(device), EVBVELO_AGAIN);
    ended_well(child);
    EXPECT(evbvelo_close(device), 0);
}

static void names_lead_to_devices(void) {
    char name[33];
    snprintf(name, sizeof name, "conformance-%d", (int)getpid());
    evbvelo *device = opened(name), *other = opened(NULL), *third = NULL;
    EXPECT(evbvelo_open(name, &third), EVBVELO_TAKEN);
    CHECK(third == NULL);
    int peer = evbvelo_map(other, name);
    CHECK(peer >= 0);
    EXPECT(evbvelo_send(other, peer, "named", 5, 3, 4), 0);
    evbvelo_message message = arrived(device);
    CHECK(message.tag == 3 && message.data == 4 && message.length == 5);
    EXPECT(evbvelo_close(device), 0);
    EXPECT(evbvelo_map(other, name), EVBVELO_UNKNOWN);
    EXPECT(evbvelo_close(other), 0);
}

static uint64_t lent[64];

static void borrower(const evbvelo_address_t *address) {
    evbvelo *device = opened(NULL);
    int peer = evbvelo_map_address(device, address);
    uint64_t words[2] = {0, 0};
    EXPECT(evbvelo_get(device, peer, 7, 8, words, sizeof words), 0);
    CHECK(words[0] == 1 && words[1] == 2);
    words[0] = 100;
    EXPECT(evbvelo_put(device, peer, 7, 63 * 8, words, 8), 0);
    EXPECT(evbvelo_put(device, peer, 7, 63 * 8, words, 9), EVBVELO_NOT_LENT);
    EXPECT(evbvelo_put(device, peer, 7, UINT64_MAX, words, 8), EVBVELO_NOT_LENT);
    EXPECT(evbvelo_put(device, peer, 8, 0, words, 8), EVBVELO_NOT_LENT);
    EXPECT(evbvelo_get(device, peer, 9, 0, words, 8), EVBVELO_NOT_LENT);
    EXPECT(evbvelo_notify(device, peer, 63, 5), 0);
    EXPECT(evbvelo_close(device), 0);
}

static void lent_memory_is_read_and_written(void) {
    evbvelo *device = opened(NULL);
    for (uint64_t word = 0; word < 64; word++) lent[word] = word;
    EXPECT(evbvelo_lend(device, 7, lent, sizeof lent, EVBVELO_READ | EVBVELO_WRITE), 0);
    EXPECT(evbvelo_lend(device, 7, lent, sizeof lent, EVBVELO_READ), EVBVELO_NO_KEY);
    EXPECT(evbvelo_lend(device, 8, lent, sizeof lent, EVBVELO_READ), 0);
    pid_t child = started(device, borrower);
    evbvelo_message message = arrived(device);
    CHECK(message.kind == EVBVELO_KIND_NOTICE && message.tag == 63 && message.data == 5 && message.length == 0);
    CHECK(lent[63] == 100 && lent[62] == 62);
    EXPECT(evbvelo_discard(device), 0);
    EXPECT(evbvelo_take_back(device, 7), 0);
    EXPECT(evbvelo_lend(device, 7, lent, sizeof lent, EVBVELO_READ), 0);
    ended_well(child);
    EXPECT(evbvelo_close(device), 0);
}

static void wrong_arguments_are_errors(void) {
    evbvelo *device = opened(NULL), *none = NULL;
    evbvelo_address_t address, nobody;
    evbvelo_message message;
    char byte = 0;
    memset(&nobody, 0, sizeof nobody);
    EXPECT(evbvelo_open(NULL, NULL), EVBVELO_INVALID);
    EXPECT(evbvelo_open("", &none), EVBVELO_NAME);
    EXPECT(evbvelo_open("a/b", &none), EVBVELO_NAME);
    EXPECT(evbvelo_open("\xff", &none), EVBVELO_NAME);
    EXPECT(evbvelo_open("123456789012345678901234567890123", &none), EVBVELO_NAME);
    EXPECT(evbvelo_address(device, NULL), EVBVELO_INVALID);
    EXPECT(evbvelo_address(device, &address), 0);
    EXPECT(evbvelo_map(device, NULL), EVBVELO_INVALID);
    EXPECT(evbvelo_map_address(device, NULL), EVBVELO_INVALID);
    EXPECT(evbvelo_map_address(device, &nobody), EVBVELO_UNKNOWN);
    int self = evbvelo_map_address(device, &address);
    EXPECT(self, 0);
    EXPECT(evbvelo_send(device, -1, &byte, 1, 0, 0), EVBVELO_INVALID);
    EXPECT(evbvelo_send(device, 1, &byte, 1, 0, 0), EVBVELO_INVALID);
    EXPECT(evbvelo_send(device, self, NULL, 1, 0, 0), EVBVELO_INVALID);
    EXPECT(evbvelo_send(device, self, &byte, SIZE_MAX, 0, 0), EVBVELO_INVALID);
    EXPECT(evbvelo_notify(device, 7, 0, 0), EVBVELO_INVALID);
    EXPECT(evbvelo_done(device, 0), EVBVELO_INVALID);
    EXPECT(evbvelo_done(device, 1), EVBVELO_INVALID);
    EXPECT(evbvelo_done(device, -5), EVBVELO_INVALID);
    EXPECT(evbvelo_alive(device, 1), EVBVELO_INVALID);
    EXPECT(evbvelo_poll(device, NULL), EVBVELO_INVALID);
    EXPECT(evbvelo_receive(device, NULL, 1), EVBVELO_INVALID);
    EXPECT(evbvelo_receive(device, &byte, 1), EVBVELO_AGAIN);
    EXPECT(evbvelo_lend(device, 1, NULL, 1, EVBVELO_READ), EVBVELO_INVALID);
    EXPECT(evbvelo_lend(device, 1, &byte, 0, EVBVELO_READ), EVBVELO_INVALID);
    EXPECT(evbvelo_lend(device, 1, &byte, 1, 0), EVBVELO_INVALID);
    EXPECT(evbvelo_lend(device, 1, &byte, 1, 4), EVBVELO_INVALID);
    EXPECT(evbvelo_put(device, self, 1, 0, NULL, 1), EVBVELO_INVALID);
    EXPECT(evbvelo_get(device, 3, 1, 0, &byte, 1), EVBVELO_INVALID);
    EXPECT(evbvelo_close(NULL), EVBVELO_INVALID);
    EXPECT(evbvelo_flush(NULL, 0), EVBVELO_INVALID);
    EXPECT(evbvelo_poll(NULL, &message), EVBVELO_INVALID);
    EXPECT(evbvelo_wait(NULL, 0), EVBVELO_INVALID);
    EXPECT(evbvelo_discard(NULL), EVBVELO_INVALID);
    EXPECT(evbvelo_take_back(NULL, 0), EVBVELO_INVALID);
    EXPECT(evbvelo_version(), EVBVELO_VERSION);
    CHECK(strlen(evbvelo_error(EVBVELO_GONE)) > 0 && strlen(evbvelo_error(-1000)) > 0);
    EXPECT(evbvelo_close(device), 0);
}

static void *waiting(void *device) {
    EXPECT(evbvelo_wait(device, 300000), 0);
    return NULL;
}

static void a_second_thread_is_told(void) {
    evbvelo *device = opened(NULL);
    evbvelo_message message;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, waiting, device) == 0);
    int seen = 0;
    for (int turn = 0; turn < 200 && !seen; turn++) {
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        seen = evbvelo_poll(device, &message) == EVBVELO_BUSY;
    }
    CHECK(seen);
    EXPECT(evbvelo_close(device), EVBVELO_BUSY);
    CHECK(pthread_join(thread, NULL) == 0);
    EXPECT(evbvelo_close(device), 0);
}

int main(void) {
    alarm(60);
    wrong_arguments_are_errors();
    names_lead_to_devices();
    a_wait_ends_by_its_time_or_a_message();
    closed_devices_are_gone();
    sizes_arrive_whole_and_in_order();
    a_message_that_is_taken_makes_room_at_once();
    a_full_mailbox_says_again_and_loses_nothing();
    lent_memory_is_read_and_written();
    peers_that_are_killed_are_errors_and_leave_nothing();
    a_second_thread_is_told();
    puts("conforms");
    return 0;
}
