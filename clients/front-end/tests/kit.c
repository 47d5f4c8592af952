/* Tests of the kit in C against a small receiver: cc -o kit tests/kit.c evb_front_end.c -pthread && ./kit */
#define _GNU_SOURCE
#include "../evb_front_end.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { LIMIT_S = 60, WAIT_S = 20, HEADER = 32 };

#define CHECK(CONDITION) check(CONDITION, #CONDITION, __LINE__)

static void check(int good, const char *what, int line) {
    if (!good) {
        fprintf(stderr, "kit.c:%d: not true: %s (errno: %s)\n", line, what, strerror(errno));
        exit(1);
    }
}

/* ---- The receiver ---- */

/* A listener. `port` 0 takes any; the socket's buffer is small, so that much cannot be under way. */
struct listener {
    int socket;
    uint16_t port;
    char address[32];
};

/* What a connection delivered. */
struct bytes {
    uint8_t *data;
    size_t size;
};

static void limit_wait(int socket) {
    struct timeval limit = {.tv_sec = WAIT_S};
    CHECK(setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
}

static struct listener bind_at(uint16_t port) {
    struct listener own = {.socket = socket(AF_INET, SOCK_STREAM, 0)};
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    socklen_t size = sizeof place;
    int yes = 1, small = 65536;
    setsockopt(own.socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(own.socket, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    CHECK(bind(own.socket, (struct sockaddr *)&place, size) == 0);
    CHECK(getsockname(own.socket, (struct sockaddr *)&place, &size) == 0);
    own.port = ntohs(place.sin_port);
    snprintf(own.address, sizeof own.address, "127.0.0.1:%d", own.port);
    limit_wait(own.socket);
    return own;
}

static struct listener listen_at(uint16_t port) {
    struct listener own = bind_at(port);
    CHECK(listen(own.socket, 8) == 0);
    return own;
}

static int accept_one(const struct listener *own) {
    int socket = accept(own->socket, NULL, NULL);
    CHECK(socket >= 0);
    limit_wait(socket);
    return socket;
}

static void read_exactly(int socket, uint8_t *to, size_t size) {
    for (size_t have = 0; have < size;) {
        ssize_t more = recv(socket, to + have, size - have, 0);
        CHECK(more > 0);
        have += (size_t)more;
    }
}

static struct bytes read_to_end(int socket) {
    struct bytes all = {NULL, 0};
    for (size_t capacity = 0;;) {
        if (all.size == capacity)
            all.data = realloc(all.data, capacity = capacity ? 2 * capacity : 1 << 16);
        ssize_t more = recv(socket, all.data + all.size, capacity - all.size, 0);
        CHECK(more >= 0);
        if (more == 0)
            return all;
        all.size += (size_t)more;
    }
}

/* Closes a connection so that the other end sees an error at once. */
static void reset(int socket) {
    struct linger at_once = {.l_onoff = 1};
    CHECK(setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    close(socket);
}

/* Reads one connection in a thread of its own. */
struct reader {
    const struct listener *listener;
    struct bytes bytes;
    pthread_t thread;
};

static void *read_one(void *argument) {
    struct reader *own = argument;
    int socket = accept_one(own->listener);
    own->bytes = read_to_end(socket);
    close(socket);
    return NULL;
}

static void start_reader(struct reader *reader, const struct listener *listener) {
    reader->listener = listener;
    CHECK(pthread_create(&reader->thread, NULL, read_one, reader) == 0);
}

static struct bytes end_reader(struct reader *reader) {
    CHECK(pthread_join(reader->thread, NULL) == 0);
    return reader->bytes;
}

static uint64_t number(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | at[bytes];
    return value;
}

/* Checks the frame at `*at`, goes behind it, and returns its counter. */
static uint64_t next_frame(const struct bytes *stream, size_t *at, size_t *length) {
    const uint8_t *frame = stream->data + *at;
    CHECK(stream->size - *at >= HEADER);
    CHECK(memcmp(frame, "evbF\1", 5) == 0);
    CHECK(number(frame + 28, 4) == evb_crc32c_by_table(0, frame, 28));
    *length = number(frame + 16, 4);
    CHECK(stream->size - *at - HEADER >= *length);
    CHECK(number(frame + 20, 4) == evb_crc32c_by_table(0, frame + HEADER, *length));
    *at += HEADER + *length;
    return number(frame + 8, 8);
}

/* Checks that a stream has the frames 1 to `count`, and nothing else. */
static void check_frames(const struct bytes *stream, uint64_t count) {
    size_t at = 0, length;
    for (uint64_t counter = 1; counter <= count; counter++)
        CHECK(next_frame(stream, &at, &length) == counter);
    CHECK(at == stream->size);
}

static evb_front_end *open_at(const struct listener *listener, const evb_front_end_options *options) {
    evb_front_end *front_end;
    CHECK(evb_front_end_open(&front_end, listener->address, 3, options) == EVB_OK && front_end);
    return front_end;
}

static evb_front_end_counts counts_of(const evb_front_end *front_end) {
    evb_front_end_counts counts;
    evb_front_end_statistics(front_end, &counts);
    return counts;
}

static uint8_t *random_bytes(size_t size) {
    uint8_t *bytes = malloc(size + 1);
    uint32_t state = 12345;
    for (size_t at = 0; at < size; at++) {
        state = state * 1664525 + 1013904223;
        bytes[at] = (uint8_t)(state >> 24);
    }
    return bytes;
}

/* ---- Checksums ---- */

static void check_vector(const uint8_t *bytes, size_t size, uint32_t wanted) {
    CHECK(evb_crc32c(0, bytes, size) == wanted);
    CHECK(evb_crc32c_by_table(0, bytes, size) == wanted);
}

/* RFC 3720, appendix B.4. */
static void checksums_are_those_of_the_rfc(void) {
    uint8_t bytes[32];
    check_vector((const uint8_t *)"123456789", 9, 0xe3069283);
    check_vector(bytes, 0, 0);
    memset(bytes, 0, 32);
    check_vector(bytes, 32, 0x8a9136aa);
    memset(bytes, 255, 32);
    check_vector(bytes, 32, 0x62a8ab43);
    for (int at = 0; at < 32; at++)
        bytes[at] = (uint8_t)at;
    check_vector(bytes, 32, 0x46dd794e);
    for (int at = 0; at < 32; at++)
        bytes[at] = (uint8_t)(31 - at);
    check_vector(bytes, 32, 0x113fdb5c);
}

/* Lengths around the bounds of the streams, at all alignments, whole and in two parts. */
static void instruction_and_table_agree(void) {
    const size_t around[] = {0, 8, 64, 768, 1536, 12288, 13056, 24576, 65536};
    uint8_t *bytes = random_bytes(70000);
    for (size_t bound = 0; bound < sizeof around / sizeof *around; bound++)
        for (size_t length = around[bound] > 17 ? around[bound] - 17 : 0; length < around[bound] + 17; length++) {
            const uint8_t *start = bytes + length % 8;
            uint32_t whole = evb_crc32c_by_table(0, start, length);
            CHECK(evb_crc32c(0, start, length) == whole);
            CHECK(evb_crc32c(evb_crc32c(0, start, length / 3), start + length / 3, length - length / 3) == whole);
        }
    free(bytes);
}

/* ---- Frames ---- */

/* The example of docs/reference/front-end-framing.md. */
static void a_frame_has_the_documented_bytes(void) {
    static const uint8_t wanted[] = {0x65, 0x76, 0x62, 0x46, 1, 0, 3, 0, 7,    0,    0,    0,    0,   0,   0,
                                     0,    3,    0,    0,    0, 0xb7, 0x3f, 0x4b, 0x36, 0, 0, 0, 0, 0x31, 0x5e,
                                     0xc2, 0x48, 'a',  'b',  'c'};
    struct listener listener = listen_at(0);
    struct reader reader;
    start_reader(&reader, &listener);
    evb_front_end *front_end = open_at(&listener, NULL);
    CHECK(evb_front_end_send(front_end, 7, NULL, "abc", 3, 0) == EVB_OK);
    CHECK(evb_front_end_close(front_end, 10000) == EVB_OK);
    struct bytes stream = end_reader(&reader);
    CHECK(stream.size == sizeof wanted && memcmp(stream.data, wanted, sizeof wanted) == 0);
    free(stream.data);
    close(listener.socket);
}

static void pieces_marks_flags_and_ends_are_in_the_frames(void) {
    struct listener listener = listen_at(0);
    struct reader reader;
    start_reader(&reader, &listener);
    evb_front_end *front_end = open_at(&listener, NULL);
    uint32_t mark = 0xcafe;
    uint64_t last = 9;
    uint8_t *bytes = random_bytes(200000);
    /* More pieces than the system takes at once, some of them empty. */
    struct iovec pieces[150];
    for (size_t piece = 0; piece < 150; piece++)
        pieces[piece] = (struct iovec){bytes + piece * 1000, piece % 7 ? 1000 : 0};
    CHECK(evb_front_end_send_pieces(front_end, 5, &mark, pieces, 150, EVB_DAMAGED) == EVB_OK);
    CHECK(evb_front_end_send(front_end, 6, NULL, NULL, 0, EVB_RESYNCHRONISED) == EVB_OK);
    CHECK(evb_front_end_end_of_run(front_end, NULL) == EVB_OK);
    CHECK(evb_front_end_end_of_run(front_end, &last) == EVB_OK);
    CHECK(counts_of(front_end).fragments == 2 && counts_of(front_end).bytes == 128000);
    CHECK(evb_front_end_close(front_end, 10000) == EVB_OK);
    struct bytes stream = end_reader(&reader);
    const struct { uint64_t counter; uint8_t flags; size_t length; uint32_t mark; } wanted[] = {
        {5, 4 | 8, 128000, 0xcafe}, {6, 2, 0, 0}, {6, 1 | 8, 0, 2}, {9, 1 | 8, 0, 0}};
    size_t at = 0, length;
    for (size_t frame = 0; frame < 4; frame++) {
        const uint8_t *header = stream.data + at;
        CHECK(next_frame(&stream, &at, &length) == wanted[frame].counter);
        CHECK(header[5] == wanted[frame].flags && length == wanted[frame].length);
        CHECK(number(header + 6, 2) == 3 && number(header + 24, 4) == wanted[frame].mark);
    }
    CHECK(at == stream.size);
    free(stream.data);
    free(bytes);
    close(listener.socket);
}

static void gathered_fragments_leave_without_another_call(void) {
    struct listener listener = listen_at(0);
    evb_front_end *front_end = open_at(&listener, NULL);
    int socket = accept_one(&listener);
    uint8_t frame[HEADER + 3];
    for (uint64_t counter = 1; counter <= 3; counter++) {
        CHECK(evb_front_end_send(front_end, counter, NULL, "abc", 3, 0) == EVB_OK);
        read_exactly(socket, frame, sizeof frame);
        CHECK(number(frame + 8, 8) == counter);
    }
    close(socket);
    CHECK(evb_front_end_close(front_end, 10000) == EVB_OK);
    close(listener.socket);
}

/* ---- Broken connections ---- */

enum { LARGE = 32 << 20, CUT_AT = 100000 };

static void *cut_and_read(void *argument) {
    struct reader *own = argument;
    static uint8_t part[CUT_AT];
    int socket = accept_one(own->listener);
    read_exactly(socket, part, sizeof part);
    reset(socket);
    return read_one(argument);
}

/* The frame is larger than all buffers of the system: the sender is within it when the receiver goes. */
static void a_frame_that_is_cut_is_sent_again_whole(void) {
    struct listener listener = listen_at(0);
    struct reader reader = {.listener = &listener};
    CHECK(pthread_create(&reader.thread, NULL, cut_and_read, &reader) == 0);
    evb_front_end_options options = evb_front_end_defaults();
    options.linger_us = 0;
    options.timeout_ms = WAIT_S * 1000;
    evb_front_end *front_end = open_at(&listener, &options);
    uint8_t *bytes = random_bytes(LARGE);
    CHECK(evb_front_end_send(front_end, 1, NULL, bytes, LARGE, 0) == EVB_OK);
    CHECK(evb_front_end_send(front_end, 2, NULL, bytes, 10, 0) == EVB_OK);
    CHECK(evb_front_end_flush(front_end) == EVB_OK);
    evb_front_end_counts counts = counts_of(front_end);
    CHECK(counts.fragments == 2 && counts.bytes == LARGE + 10);
    CHECK(counts.reconnects == 1 && counts.repeated == 1 && counts.waits >= 1);
    CHECK(evb_front_end_close(front_end, WAIT_S * 1000) == EVB_OK);
    struct bytes stream = end_reader(&reader);
    check_frames(&stream, 2);
    CHECK(memcmp(stream.data + HEADER, bytes, LARGE) == 0);
    free(stream.data);
    free(bytes);
    close(listener.socket);
}

/* The kit sees that the receiver has gone before it gives the system a frame. */
static void nothing_is_sent_into_a_closed_connection(void) {
    struct listener listener = listen_at(0);
    evb_front_end_options options = evb_front_end_defaults();
    options.buffer_bytes = 0;
    evb_front_end *front_end = open_at(&listener, &options);
    int first = accept_one(&listener);
    uint8_t frame[HEADER];
    CHECK(evb_front_end_send(front_end, 1, NULL, NULL, 0, 0) == EVB_OK);
    read_exactly(first, frame, sizeof frame);
    close(first);
    CHECK(evb_front_end_send(front_end, 2, NULL, NULL, 0, 0) == EVB_OK);
    int second = accept_one(&listener);
    read_exactly(second, frame, sizeof frame);
    CHECK(number(frame + 8, 8) == 2);
    evb_front_end_counts counts = counts_of(front_end);
    CHECK(counts.reconnects == 1 && counts.repeated == 0 && counts.unconfirmed_bytes == 0);
    close(second);
    CHECK(evb_front_end_close(front_end, 10000) == EVB_OK);
    close(listener.socket);
}

/* Sends fragments with these bytes until one is not accepted; how many were. */
static uint64_t send_until_refused(evb_front_end *front_end, const void *payload, size_t length, int wanted) {
    for (uint64_t counter = 1;; counter++) {
        int code = evb_front_end_send(front_end, counter, NULL, payload, length, 0);
        if (code != EVB_OK) {
            CHECK(code == wanted);
            return counter - 1;
        }
    }
}

/* Flushes a front end that never waits. */
static void flush_patiently(evb_front_end *front_end) {
    int code;
    while ((code = evb_front_end_flush(front_end)) == EVB_WOULD_BLOCK)
        usleep(1000);
    CHECK(code == EVB_OK);
}

static void fragments_wait_in_the_buffer_for_the_receiver(void) {
    struct listener listener = bind_at(0);
    evb_front_end_options options = {.retry_ms = 1, .buffer_bytes = 65536};
    evb_front_end *front_end = open_at(&listener, &options);
    uint8_t *bytes = random_bytes(1000);
    uint64_t count = send_until_refused(front_end, bytes, 1000, EVB_WOULD_BLOCK);
    CHECK(count == 65536 / 1032);
    CHECK(evb_front_end_end_of_run(front_end, NULL) == EVB_WOULD_BLOCK);
    CHECK(listen(listener.socket, 1) == 0);
    struct reader reader;
    start_reader(&reader, &listener);
    flush_patiently(front_end);
    CHECK(evb_front_end_end_of_run(front_end, NULL) == EVB_OK);
    CHECK(counts_of(front_end).fragments == count && counts_of(front_end).reconnects == 0);
    CHECK(evb_front_end_close(front_end, 10000) == EVB_OK);
    struct bytes stream = end_reader(&reader);
    /* The end of the run has the last counter. */
    CHECK(stream.size == count * 1032 + HEADER && stream.data[stream.size - HEADER + 5] == (1 | 8));
    stream.size -= HEADER;
    check_frames(&stream, count);
    free(stream.data);
    free(bytes);
    close(listener.socket);
}

/* ---- Receivers that do not read ---- */

/* Nothing that is accepted is lost, whether fragments are gathered, larger than the buffer, or in between. */
static void a_receiver_that_does_not_read_holds_up_the_sender(size_t length, uint32_t timeout_ms, int wanted) {
    struct listener listener = listen_at(0);
    evb_front_end_options options = evb_front_end_defaults();
    options.timeout_ms = timeout_ms;
    evb_front_end *front_end = open_at(&listener, &options);
    uint8_t *bytes = random_bytes(length);
    uint64_t count = send_until_refused(front_end, bytes, length, wanted);
    CHECK(counts_of(front_end).fragments == count && counts_of(front_end).waits > 0);
    struct reader reader;
    start_reader(&reader, &listener);
    int code;
    while ((code = evb_front_end_flush(front_end)) == wanted)
        usleep(1000);
    CHECK(code == EVB_OK);
    CHECK(evb_front_end_close(front_end, 10000) == EVB_OK);
    struct bytes stream = end_reader(&reader);
    check_frames(&stream, count);
    free(stream.data);
    free(bytes);
    close(listener.socket);
}

static void close_says_what_was_not_read(void) {
    struct listener listener = listen_at(0);
    evb_front_end *front_end = open_at(&listener, NULL);
    int socket = accept_one(&listener);
    CHECK(evb_front_end_send(front_end, 1, NULL, "abc", 3, 0) == EVB_OK);
    CHECK(evb_front_end_flush(front_end) == EVB_OK);
    CHECK(evb_front_end_close(front_end, 20) == EVB_TIMED_OUT);
    close(socket);

    front_end = open_at(&listener, NULL);
    socket = accept_one(&listener);
    CHECK(evb_front_end_send(front_end, 1, NULL, "abc", 3, 0) == EVB_OK);
    CHECK(evb_front_end_flush(front_end) == EVB_OK);
    reset(socket);
    CHECK(evb_front_end_close(front_end, 10000) == EVB_NOT_READ);
    close(listener.socket);
}

/* ---- Unfriendly input ---- */

static void bad_addresses_are_refused(void) {
    const char *bad[] = {"", "127.0.0.1", ":9101", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:x",
                         "127.0.0.1:-1", "127.0.0.1: 1", "::1:9101", "[]:9101", "256.0.0.1.example.invalid:9101"};
    char long_host[400];
    evb_front_end *front_end = (evb_front_end *)long_host;
    for (size_t at = 0; at < sizeof bad / sizeof *bad; at++)
        CHECK(evb_front_end_open(&front_end, bad[at], 0, NULL) == EVB_BAD_ADDRESS && !front_end);
    memset(long_host, 'a', sizeof long_host);
    strcpy(long_host + sizeof long_host - 6, ":9101");
    CHECK(evb_front_end_open(&front_end, long_host, 0, NULL) == EVB_BAD_ADDRESS);
}

/* The port is bound, and nobody listens: the system refuses connections, and gives the port to nobody else. */
static void a_host_that_does_not_answer_is_unreachable(void) {
    struct listener listener = bind_at(0);
    evb_front_end_options options = evb_front_end_defaults();
    options.connect_timeout_ms = 50;
    options.retry_ms = 5;
    evb_front_end *front_end;
    CHECK(evb_front_end_open(&front_end, listener.address, 0, &options) == EVB_UNREACHABLE && errno == ECONNREFUSED);
    options.connect_timeout_ms = 0;
    options.timeout_ms = 50;
    front_end = open_at(&listener, &options);
    CHECK(evb_front_end_send(front_end, 1, NULL, &options, sizeof options, 0) == EVB_OK);
    CHECK(evb_front_end_flush(front_end) == EVB_UNREACHABLE && errno == ECONNREFUSED);
    CHECK(evb_front_end_close(front_end, 20) == EVB_UNREACHABLE);
    close(listener.socket);
}

static void bad_arguments_are_refused(void) {
    struct listener listener = listen_at(0);
    evb_front_end *front_end = open_at(&listener, NULL);
    int socket = accept_one(&listener);
    struct iovec null = {NULL, 1}, halves[2] = {{&listener, 1u << 31}, {&listener, 1u << 31}};
    CHECK(evb_front_end_send(NULL, 1, NULL, "", 0, 0) == EVB_BAD_ARGUMENT);
    CHECK(evb_front_end_send(front_end, 1, NULL, NULL, 1, 0) == EVB_BAD_ARGUMENT);
    CHECK(evb_front_end_send(front_end, 1, NULL, "", 0, 1) == EVB_BAD_ARGUMENT);
    CHECK(evb_front_end_send(front_end, 1, NULL, "", 0, 16) == EVB_BAD_ARGUMENT);
    CHECK(evb_front_end_send_pieces(front_end, 1, NULL, NULL, 1, 0) == EVB_BAD_ARGUMENT);
    CHECK(evb_front_end_send_pieces(front_end, 1, NULL, &null, 1, 0) == EVB_BAD_ARGUMENT);
    CHECK(evb_front_end_send(front_end, 1, NULL, "", (size_t)1 << 32, 0) == EVB_TOO_LARGE);
    CHECK(evb_front_end_send_pieces(front_end, 1, NULL, halves, 2, 0) == EVB_TOO_LARGE);
    CHECK(evb_front_end_flush(NULL) == EVB_BAD_ARGUMENT && evb_front_end_end_of_run(NULL, NULL) == EVB_BAD_ARGUMENT);
    CHECK(evb_front_end_open(NULL, listener.address, 0, NULL) == EVB_BAD_ARGUMENT);
    CHECK(evb_front_end_close(NULL, 0) == EVB_OK);
    CHECK(counts_of(front_end).fragments == 0 && counts_of(NULL).fragments == 0);
    close(socket);
    CHECK(evb_front_end_close(front_end, 10000) == EVB_OK);
    evb_front_end_options options = evb_front_end_defaults();
    options.retry_ms = 0;
    CHECK(evb_front_end_open(&front_end, listener.address, 0, &options) == EVB_BAD_ARGUMENT && !front_end);
    CHECK(evb_front_end_open(&front_end, NULL, 0, NULL) == EVB_BAD_ARGUMENT);
    for (int code = EVB_OK; code <= EVB_NOT_READ; code++)
        CHECK(strcmp(evb_front_end_error_text(code), evb_front_end_error_text(-1)) != 0);
    close(listener.socket);
}

/* ---- Threads ---- */

enum { THREADS = 4, OF_EACH = 500 };

static void *send_many(void *front_end) {
    static const uint8_t payload[20000];
    for (uint64_t counter = 0; counter < OF_EACH; counter++)
        CHECK(evb_front_end_send(front_end, counter, NULL, payload, counter % 2 ? 100 : sizeof payload, 0) == EVB_OK);
    return NULL;
}

static void threads_take_turns(void) {
    struct listener listener = listen_at(0);
    struct reader reader;
    start_reader(&reader, &listener);
    evb_front_end *front_end = open_at(&listener, NULL);
    pthread_t threads[THREADS];
    for (int thread = 0; thread < THREADS; thread++)
        CHECK(pthread_create(&threads[thread], NULL, send_many, front_end) == 0);
    for (int thread = 0; thread < THREADS; thread++)
        CHECK(pthread_join(threads[thread], NULL) == 0);
    CHECK(evb_front_end_close(front_end, 10000) == EVB_OK);
    struct bytes stream = end_reader(&reader);
    uint64_t frames = 0;
    for (size_t at = 0, length; at < stream.size; frames++)
        next_frame(&stream, &at, &length);
    CHECK(frames == THREADS * OF_EACH);
    free(stream.data);
    close(listener.socket);
}

int main(void) {
    alarm(LIMIT_S);
    checksums_are_those_of_the_rfc();
    instruction_and_table_agree();
    a_frame_has_the_documented_bytes();
    pieces_marks_flags_and_ends_are_in_the_frames();
    gathered_fragments_leave_without_another_call();
    a_frame_that_is_cut_is_sent_again_whole();
    nothing_is_sent_into_a_closed_connection();
    fragments_wait_in_the_buffer_for_the_receiver();
    a_receiver_that_does_not_read_holds_up_the_sender(1000, 0, EVB_WOULD_BLOCK);
    a_receiver_that_does_not_read_holds_up_the_sender(30000, 0, EVB_WOULD_BLOCK);
    a_receiver_that_does_not_read_holds_up_the_sender(1000000, 0, EVB_WOULD_BLOCK);
    a_receiver_that_does_not_read_holds_up_the_sender(30000, 20, EVB_TIMED_OUT);
    close_says_what_was_not_read();
    bad_addresses_are_refused();
    a_host_that_does_not_answer_is_unreachable();
    bad_arguments_are_refused();
    threads_take_turns();
    puts("the kit in C: all tests passed");
}
