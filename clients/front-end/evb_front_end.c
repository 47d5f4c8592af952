/* The front-end kit of evb. evb_front_end.h has its description.
 *
 * Large fragments go from the memory of the caller to the system without a copy. Small ones are gathered in a bounded
 * buffer, since a call of the system costs more than the copy of some KiB. Nothing waits without a deadline: a
 * deadline of 0 is in the past, so that the same code serves callers that never wait. */
#define _GNU_SOURCE
#include "evb_front_end.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/sockios.h>
#include <sys/auxv.h>
#endif
#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#endif

/* ---- CRC-32C ---- */

/* The polynomial of Castagnoli, with its bits reversed. */
#define POLYNOMIAL 0x82f63b78u
/* Bytes of each of the three streams that are summed at once: an instruction takes three cycles, and one can begin in each. */
#define LONG_STREAM 4096u
#define SHORT_STREAM 256u

typedef uint32_t sum_function(uint32_t sum, const uint8_t *bytes, size_t length);

static uint32_t sums[8][256];
/* What a sum becomes behind as many zero bytes as a stream has, by the bytes of the sum. */
static uint32_t behind_long[4][256], behind_short[4][256];
static sum_function *fastest_sum;
static pthread_once_t sums_are_made = PTHREAD_ONCE_INIT;

static uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static uint32_t sum_by_table(uint32_t sum, const uint8_t *bytes, size_t length) {
    for (; length >= 8; bytes += 8, length -= 8) {
        uint32_t low = sum ^ (bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24);
        sum = sums[7][low & 255] ^ sums[6][low >> 8 & 255] ^ sums[5][low >> 16 & 255] ^ sums[4][low >> 24] ^
              sums[3][bytes[4]] ^ sums[2][bytes[5]] ^ sums[1][bytes[6]] ^ sums[0][bytes[7]];
    }
    for (; length > 0; bytes++, length--)
        sum = sum >> 8 ^ sums[0][(sum ^ *bytes) & 255];
    return sum;
}

static uint32_t behind(uint32_t zeros[4][256], uint32_t sum) {
    return zeros[0][sum & 255] ^ zeros[1][sum >> 8 & 255] ^ zeros[2][sum >> 16 & 255] ^ zeros[3][sum >> 24];
}

/* The sum by an instruction: `EIGHT` sums eight bytes, `ONE` one byte. */
#define SUM_BY_INSTRUCTION(NAME, TARGET, EIGHT, ONE)                                                                      \
    TARGET static uint32_t NAME##_streams(uint32_t sum, const uint8_t *bytes, size_t stream, uint32_t zeros[4][256]) {   \
        uint32_t second = 0, third = 0;                                                                                   \
        for (size_t at = 0; at < stream; at += 8) {                                                                       \
            sum = (uint32_t)EIGHT(sum, word_at(bytes + at));                                                              \
            second = (uint32_t)EIGHT(second, word_at(bytes + stream + at));                                               \
            third = (uint32_t)EIGHT(third, word_at(bytes + 2 * stream + at));                                             \
        }                                                                                                                 \
        return behind(zeros, behind(zeros, sum) ^ second) ^ third;                                                        \
    }                                                                                                                     \
    TARGET static uint32_t NAME(uint32_t sum, const uint8_t *bytes, size_t length) {                                      \
        for (; length >= 3 * LONG_STREAM; bytes += 3 * LONG_STREAM, length -= 3 * LONG_STREAM)                            \
            sum = NAME##_streams(sum, bytes, LONG_STREAM, behind_long);                                                   \
        for (; length >= 3 * SHORT_STREAM; bytes += 3 * SHORT_STREAM, length -= 3 * SHORT_STREAM)                         \
            sum = NAME##_streams(sum, bytes, SHORT_STREAM, behind_short);                                                 \
        for (; length >= 8; bytes += 8, length -= 8)                                                                      \
            sum = (uint32_t)EIGHT(sum, word_at(bytes));                                                                   \
        for (; length > 0; bytes++, length--)                                                                             \
            sum = ONE(sum, *bytes);                                                                                       \
        return sum;                                                                                                       \
    }

#if defined(__x86_64__)
SUM_BY_INSTRUCTION(sum_by_instruction, __attribute__((target("sse4.2"))), _mm_crc32_u64, _mm_crc32_u8)

static int has_instruction(void) {
    return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__) && defined(__linux__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
SUM_BY_INSTRUCTION(sum_by_instruction, __attribute__((target("+crc"))), __crc32cd, __crc32cb)

static int has_instruction(void) {
    const unsigned long crc32 = 1ul << 7; /* HWCAP_CRC32 */
    return (getauxval(AT_HWCAP) & crc32) != 0;
}
#else
static uint32_t sum_by_instruction(uint32_t sum, const uint8_t *bytes, size_t length) {
    return sum_by_table(sum, bytes, length);
}

static int has_instruction(void) {
    return 0;
}
#endif

static void make_behind(uint32_t zeros[4][256], size_t stream) {
    static const uint8_t zero[SHORT_STREAM];
    for (unsigned byte = 0; byte < 4; byte++)
        for (uint32_t value = 0; value < 256; value++) {
            uint32_t sum = value << (8 * byte);
            for (size_t at = 0; at < stream; at += sizeof zero)
                sum = sum_by_table(sum, zero, sizeof zero);
            zeros[byte][value] = sum;
        }
}

static void make_sums(void) {
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t sum = value;
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? POLYNOMIAL : 0);
        sums[0][value] = sum;
    }
    for (int step = 1; step < 8; step++)
        for (uint32_t value = 0; value < 256; value++)
            sums[step][value] = sums[step - 1][value] >> 8 ^ sums[0][sums[step - 1][value] & 255];
    make_behind(behind_long, LONG_STREAM);
    make_behind(behind_short, SHORT_STREAM);
    fastest_sum = has_instruction() ? sum_by_instruction : sum_by_table;
}

uint32_t evb_crc32c(uint32_t before, const void *bytes, size_t length) {
    pthread_once(&sums_are_made, make_sums);
    return ~fastest_sum(~before, bytes, length);
}

uint32_t evb_crc32c_by_table(uint32_t before, const void *bytes, size_t length) {
    pthread_once(&sums_are_made, make_sums);
    return ~sum_by_table(~before, bytes, length);
}

/* ---- The frame ---- */

enum { HEADER = 32, CHECKED = 28, AT_LENGTH = 16, END_OF_RUN = 1, MARKED = 8 };

/* A frame in the memory of the caller. */
struct frame {
    uint8_t header[HEADER];
    const struct iovec *pieces;
    size_t count;
    size_t size; /* bytes, with the header */
    size_t sent; /* bytes that the system has taken on this connection */
};

static void store(uint8_t *at, uint64_t value, int bytes) {
    for (int byte = 0; byte < bytes; byte++)
        at[byte] = (uint8_t)(value >> (8 * byte));
}

static uint32_t checksum_of(const struct iovec *pieces, size_t count) {
    uint32_t sum = 0;
    for (size_t piece = 0; piece < count; piece++)
        sum = evb_crc32c(sum, pieces[piece].iov_base, pieces[piece].iov_len);
    return sum;
}

/* Adds up the lengths of the pieces. */
static int measure(const struct iovec *pieces, size_t count, size_t *length) {
    *length = 0;
    if (!pieces && count > 0)
        return EVB_BAD_ARGUMENT;
    for (size_t piece = 0; piece < count; piece++) {
        if (!pieces[piece].iov_base && pieces[piece].iov_len > 0)
            return EVB_BAD_ARGUMENT;
        if (pieces[piece].iov_len > UINT32_MAX - *length)
            return EVB_TOO_LARGE;
        *length += pieces[piece].iov_len;
    }
    return EVB_OK;
}

static void write_header(struct frame *frame, uint16_t source, uint64_t counter, const uint32_t *mark, unsigned flags) {
    uint8_t *header = frame->header;
    memcpy(header, "evbF\1", 5);
    header[5] = (uint8_t)(flags | (mark ? MARKED : 0u));
    store(header + 6, source, 2);
    store(header + 8, counter, 8);
    store(header + AT_LENGTH, frame->size - HEADER, 4);
    store(header + 20, checksum_of(frame->pieces, frame->count), 4);
    store(header + 24, mark ? *mark : 0, 4);
    store(header + CHECKED, evb_crc32c(0, header, CHECKED), 4);
}

/* Size of a frame that is wholly in memory, in bytes. */
static size_t size_of_frame(const uint8_t *frame) {
    size_t length = 0;
    for (int byte = 3; byte >= 0; byte--)
        length = length << 8 | frame[AT_LENGTH + byte];
    return HEADER + length;
}

/* ---- The front end ---- */

enum {
    MOST_PIECES = 64,            /* pieces that are given to the system at once */
    LARGEST_GATHERED = 32768,    /* bytes of a frame that is gathered */
    LARGEST_BUFFER = 64 << 20,   /* bytes */
    LONGEST_HOST = 255,          /* bytes */
    ATTEMPT_US = 3000000,        /* longest attempt to connect to one address */
    BACKED_UP_US = 10000,        /* pause of the flusher while the receiver takes nothing */
    ALIVE_IDLE_S = 10,           /* silence after which the system asks whether the other machine is there */
    ALIVE_PAUSE_S = 5,
    ALIVE_PROBES = 3
};

enum link_state { DOWN, CONNECTING, UP };

/* The end of waits of a caller that never waits. */
static const int64_t NEVER_WAIT = 0;

struct evb_front_end {
    pthread_mutex_t lock;
    pthread_cond_t has_work; /* the buffer is not empty any more, or the front end closes */
    pthread_t flusher;
    int has_flusher, is_closing;
    evb_front_end_options options;
    uint16_t source;

    struct addrinfo *addresses, *address; /* all, and the one that is tried */
    enum link_state state;
    int socket;
    int error;           /* of the last attempt to connect */
    int was_up;          /* there has been a connection */
    int64_t attempt_end; /* us */
    int64_t retry_at;    /* us */

    /* Whole frames that are accepted, from `start` to `end`. The first `sent` bytes are with the system already, and are
     * kept because a frame that is cut has to be sent again whole. */
    uint8_t *held;
    size_t capacity, start, end, sent;

    uint64_t last_counter;
    uint32_t run_fragments; /* since the last end of run */
    int end_is_held;        /* an end of run is accepted, and was not flushed within the timeout */

    _Atomic uint64_t fragments, bytes, reconnects, waits, repeated, unconfirmed_bytes;
};

static void add(_Atomic uint64_t *count, uint64_t more) {
    atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

static int64_t now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static int64_t end_after(uint32_t timeout_ms) {
    return timeout_ms ? now_us() + (int64_t)timeout_ms * 1000 : NEVER_WAIT;
}

/* Waits for the socket, or only for the time if it is negative. Returns 0 when the time is over. */
static int wait_until(int socket, short events, int64_t end) {
    for (;;) {
        int64_t left = end - now_us();
        int64_t left_ms = left <= 0 ? 0 : left > 1000000000 ? 1000000 : (left + 999) / 1000;
        struct pollfd on = {.fd = socket, .events = events};
        int ready = poll(&on, 1, (int)left_ms);
        if (ready > 0)
            return 1;
        if (ready == 0 && now_us() >= end)
            return 0;
    }
}

/* ---- The buffer ---- */

static size_t held_bytes(const evb_front_end *own) {
    return own->end - own->start;
}

static void release_held(evb_front_end *own) {
    own->start = own->end = own->sent = 0;
    if (own->capacity > own->options.buffer_bytes) {
        free(own->held);
        own->held = NULL;
        own->capacity = 0;
    }
}

/* Removes the frames that the system has whole. */
static void held_sent(evb_front_end *own, size_t bytes) {
    own->sent += bytes;
    while (own->start < own->end && own->sent >= size_of_frame(own->held + own->start)) {
        size_t size = size_of_frame(own->held + own->start);
        own->start += size;
        own->sent -= size;
    }
    if (own->start == own->end)
        release_held(own);
}

static int make_room(evb_front_end *own, size_t more) {
    if (own->capacity - own->end >= more)
        return 1;
    size_t bytes = held_bytes(own);
    if (bytes > 0)
        memmove(own->held, own->held + own->start, bytes);
    own->end = bytes;
    own->start = 0;
    size_t wanted = bytes + more > own->options.buffer_bytes ? bytes + more : own->options.buffer_bytes;
    if (own->capacity >= wanted)
        return 1;
    uint8_t *larger = realloc(own->held, wanted);
    if (!larger)
        return 0;
    own->held = larger;
    own->capacity = wanted;
    return 1;
}

/* Copies a frame behind the others. Returns 0 if there is no memory. */
static int hold(evb_front_end *own, const struct frame *frame) {
    if (!make_room(own, frame->size))
        return 0;
    int was_empty = held_bytes(own) == 0;
    uint8_t *at = own->held + own->end;
    memcpy(at, frame->header, HEADER);
    at += HEADER;
    for (size_t piece = 0; piece < frame->count; at += frame->pieces[piece++].iov_len)
        if (frame->pieces[piece].iov_len > 0)
            memcpy(at, frame->pieces[piece].iov_base, frame->pieces[piece].iov_len);
    own->end += frame->size;
    if (was_empty) {
        own->sent = frame->sent;
        if (own->has_flusher)
            pthread_cond_signal(&own->has_work);
    }
    return 1;
}

static int fits(const evb_front_end *own, const struct frame *frame) {
    return frame->size <= LARGEST_GATHERED && held_bytes(own) + frame->size <= own->options.buffer_bytes;
}

/* ---- The connection ---- */

/* Counts what was under way: the system does not say how much of it arrived. */
static void count_unconfirmed(evb_front_end *own) {
#ifdef SIOCOUTQ
    int under_way = 0;
    if (ioctl(own->socket, SIOCOUTQ, &under_way) == 0 && under_way > 0)
        add(&own->unconfirmed_bytes, (uint64_t)under_way);
#else
    (void)own;
#endif
}

static void disconnect(evb_front_end *own) {
    if (own->socket >= 0)
        close(own->socket);
    own->socket = -1;
    own->state = DOWN;
}

/* Gives a connection up. The frame that it cut begins again. */
static void break_link(evb_front_end *own, struct frame *frame) {
    count_unconfirmed(own);
    disconnect(own);
    add(&own->repeated, own->sent > 0 || (frame && frame->sent > 0));
    own->sent = 0;
    if (frame)
        frame->sent = 0;
    own->address = own->addresses;
}

/* The next address has its turn, or the first one after a pause. */
static void attempt_failed(evb_front_end *own, int error) {
    disconnect(own);
    own->error = error;
    own->address = own->address->ai_next;
    if (own->address)
        own->retry_at = 0;
    else
        own->address = own->addresses;
}

/* A listener that is not there yet can be met by oneself: the system may take its port for our end. */
static int is_self(int socket) {
    struct sockaddr_storage ours, theirs;
    socklen_t our_size = sizeof ours, their_size = sizeof theirs;
    memset(&ours, 0, sizeof ours);
    memset(&theirs, 0, sizeof theirs);
    return getsockname(socket, (struct sockaddr *)&ours, &our_size) == 0 &&
           getpeername(socket, (struct sockaddr *)&theirs, &their_size) == 0 && our_size == their_size &&
           memcmp(&ours, &theirs, our_size) == 0;
}

static void set_option(int socket, int level, int option, int value) {
    /* Without it the connection works, too. */
    (void)setsockopt(socket, level, option, &value, sizeof value);
}

static void prepare(int socket) {
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef TCP_KEEPIDLE
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, ALIVE_IDLE_S);
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, ALIVE_PAUSE_S);
    set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, ALIVE_PROBES);
#endif
#ifdef SO_NOSIGPIPE
    set_option(socket, SOL_SOCKET, SO_NOSIGPIPE, 1);
#endif
}

static void begin_attempt(evb_front_end *own) {
    const struct addrinfo *to = own->address;
    int64_t now = now_us();
    own->retry_at = now + (int64_t)own->options.retry_ms * 1000;
    own->attempt_end = now + ATTEMPT_US;
    own->socket = socket(to->ai_family, to->ai_socktype, to->ai_protocol);
    if (own->socket < 0) {
        attempt_failed(own, errno);
        return;
    }
    (void)fcntl(own->socket, F_SETFD, FD_CLOEXEC);
    if (fcntl(own->socket, F_SETFL, O_NONBLOCK) < 0 ||
        (connect(own->socket, to->ai_addr, to->ai_addrlen) < 0 && errno != EINPROGRESS && errno != EINTR)) {
        attempt_failed(own, errno);
        return;
    }
    own->state = CONNECTING;
}

static void end_attempt(evb_front_end *own) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(own->socket, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (!error && is_self(own->socket))
        error = ECONNREFUSED;
    if (error) {
        attempt_failed(own, error);
        return;
    }
    prepare(own->socket);
    own->state = UP;
    own->error = 0;
    add(&own->reconnects, own->was_up != 0);
    own->was_up = 1;
}

static int64_t earlier(int64_t one, int64_t other) {
    return one < other ? one : other;
}

/* Connects, and tries again until the deadline. Returns 0 when it has passed. */
static int connect_until(evb_front_end *own, int64_t end) {
    while (own->state != UP) {
        if (own->state == DOWN) {
            if (!wait_until(-1, 0, earlier(own->retry_at, end)) && now_us() < own->retry_at)
                return 0;
            begin_attempt(own);
        } else if (wait_until(own->socket, POLLOUT, earlier(own->attempt_end, end))) {
            end_attempt(own);
        } else if (now_us() >= own->attempt_end) {
            attempt_failed(own, ETIMEDOUT);
        } else {
            return 0;
        }
    }
    return 1;
}

/* True if the receiver has closed the connection. evb sends nothing; what another program says is dropped. */
static int is_closed_by_peer(int socket) {
    char said[256];
    ssize_t bytes = recv(socket, said, sizeof said, MSG_DONTWAIT);
    return bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* ---- Sending ---- */

/* Lists what is to be sent: the buffer, and behind it the rest of the frame. */
static size_t list_unsent(const evb_front_end *own, const struct frame *frame, struct iovec *list) {
    size_t count = 0;
    if (held_bytes(own) > 0)
        list[count++] = (struct iovec){own->held + own->start + own->sent, held_bytes(own) - own->sent};
    if (!frame)
        return count;
    size_t skip = frame->sent;
    for (size_t piece = 0; piece <= frame->count && count < MOST_PIECES; piece++) {
        struct iovec part = {(void *)frame->header, HEADER};
        if (piece > 0)
            part = frame->pieces[piece - 1];
        size_t skipped = skip < part.iov_len ? skip : part.iov_len;
        skip -= skipped;
        if (part.iov_len > skipped)
            list[count++] = (struct iovec){(uint8_t *)part.iov_base + skipped, part.iov_len - skipped};
    }
    return count;
}

/* Gives the system what it takes. Returns -1 with errno if that is nothing. */
static ssize_t give(evb_front_end *own, struct frame *frame) {
    struct iovec list[MOST_PIECES];
    struct msghdr message = {.msg_iov = list};
    message.msg_iovlen = list_unsent(own, frame, list);
    ssize_t taken = sendmsg(own->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken < 0)
        return -1;
    size_t of_held = held_bytes(own) - own->sent;
    of_held = of_held < (size_t)taken ? of_held : (size_t)taken;
    if (of_held > 0)
        held_sent(own, of_held);
    if (frame)
        frame->sent += (size_t)taken - of_held;
    return taken;
}

static int or_would_block(int code, int64_t end) {
    return end == NEVER_WAIT ? EVB_WOULD_BLOCK : code;
}

/* Gives the buffer and the frame to the system, at the latest at `end`; `frame` may be null. */
static int transmit(evb_front_end *own, struct frame *frame, int64_t end) {
    int has_waited = 0;
    while (held_bytes(own) > 0 || (frame && frame->sent < frame->size)) {
        if (!connect_until(own, end)) {
            errno = own->error ? own->error : ETIMEDOUT;
            return or_would_block(EVB_UNREACHABLE, end);
        }
        if (is_closed_by_peer(own->socket)) {
            break_link(own, frame);
        } else if (give(own, frame) < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK) {
                /* The flusher is no call. */
                add(&own->waits, !has_waited++ && (end != NEVER_WAIT || own->options.timeout_ms == 0));
                if (!wait_until(own->socket, POLLOUT | POLLIN, end))
                    return or_would_block(EVB_TIMED_OUT, end);
            } else if (errno != EINTR) {
                break_link(own, frame);
            }
        }
    }
    return EVB_OK;
}

/* Sends a frame, or gathers it. A frame of which the system has a part is accepted: the rest follows with the next call. */
static int accept_frame(evb_front_end *own, struct frame *frame) {
    if (fits(own, frame))
        return hold(own, frame) ? EVB_OK : EVB_NO_MEMORY;
    int code = transmit(own, frame, end_after(own->options.timeout_ms));
    if (code == EVB_OK || (frame->sent == 0 && !fits(own, frame)))
        return code;
    if (hold(own, frame))
        return EVB_OK;
    if (frame->sent > 0)
        break_link(own, frame);
    return EVB_NO_MEMORY;
}

/* Gathered fragments leave even if no call follows. */
static void *flush_in_time(void *argument) {
    evb_front_end *own = argument;
    pthread_mutex_lock(&own->lock);
    int64_t pause_us = own->options.linger_us;
    while (!own->is_closing) {
        if (held_bytes(own) == 0) {
            pthread_cond_wait(&own->has_work, &own->lock);
            continue;
        }
        int64_t end = now_us() + pause_us;
        struct timespec until = {.tv_sec = (time_t)(end / 1000000), .tv_nsec = (long)(end % 1000000) * 1000};
        if (pthread_cond_timedwait(&own->has_work, &own->lock, &until) == ETIMEDOUT) {
            int is_backed_up = transmit(own, NULL, NEVER_WAIT) != EVB_OK;
            pause_us = is_backed_up && own->options.linger_us < BACKED_UP_US ? BACKED_UP_US : own->options.linger_us;
        }
    }
    pthread_mutex_unlock(&own->lock);
    return NULL;
}

/* ---- The calls ---- */

evb_front_end_options evb_front_end_defaults(void) {
    return (evb_front_end_options){
        .connect_timeout_ms = 10000, .timeout_ms = 10000, .retry_ms = 100, .buffer_bytes = 65536, .linger_us = 1000};
}

/* Finds the addresses of HOST:PORT. */
static int resolve(const char *address, struct addrinfo **found) {
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || colon[1 + strspn(colon + 1, "0123456789")] || strlen(colon) > 6)
        return EVB_BAD_ADDRESS;
    long port = strtol(colon + 1, NULL, 10);
    size_t length = (size_t)(colon - address);
    int is_bracketed = address[0] == '[' && address[length - 1] == ']';
    if (port < 1 || port > 65535 || length > LONGEST_HOST || (is_bracketed && length < 3))
        return EVB_BAD_ADDRESS;
    char host[LONGEST_HOST + 1] = {0};
    memcpy(host, address + is_bracketed, length - 2 * (size_t)is_bracketed);
    if (!is_bracketed && strchr(host, ':'))
        return EVB_BAD_ADDRESS;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    int failure = getaddrinfo(host, colon + 1, &hints, found);
    return failure == 0 ? EVB_OK : failure == EAI_MEMORY ? EVB_NO_MEMORY : EVB_BAD_ADDRESS;
}

static int are_good(const evb_front_end_options *options) {
    return options->retry_ms >= 1 && options->buffer_bytes <= LARGEST_BUFFER;
}

static void free_all(evb_front_end *own) {
    disconnect(own);
    if (own->addresses)
        freeaddrinfo(own->addresses);
    free(own->held);
    free(own);
}

/* Makes the lock and starts the flusher. */
static int start(evb_front_end *own) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&own->lock, NULL);
    pthread_cond_init(&own->has_work, &attributes);
    pthread_condattr_destroy(&attributes);
    own->has_flusher = own->options.buffer_bytes > 0 && own->options.linger_us > 0;
    if (!own->has_flusher || pthread_create(&own->flusher, NULL, flush_in_time, own) == 0)
        return EVB_OK;
    pthread_cond_destroy(&own->has_work);
    pthread_mutex_destroy(&own->lock);
    return EVB_NO_MEMORY;
}

static int prepare_open(evb_front_end *own, const char *address) {
    int code = resolve(address, &own->addresses);
    if (code != EVB_OK)
        return code;
    own->address = own->addresses;
    if (own->options.connect_timeout_ms > 0 && !connect_until(own, end_after(own->options.connect_timeout_ms))) {
        errno = own->error ? own->error : ETIMEDOUT;
        return EVB_UNREACHABLE;
    }
    return start(own);
}

int evb_front_end_open(evb_front_end **front_end, const char *address, uint16_t source, const evb_front_end_options *options) {
    if (front_end)
        *front_end = NULL;
    if (!front_end || !address || (options && !are_good(options)))
        return EVB_BAD_ARGUMENT;
    evb_front_end *own = calloc(1, sizeof *own);
    if (!own)
        return EVB_NO_MEMORY;
    own->options = options ? *options : evb_front_end_defaults();
    own->source = source;
    own->socket = -1;
    int code = prepare_open(own, address), error = errno;
    if (code == EVB_OK)
        *front_end = own;
    else
        free_all(own);
    errno = error;
    return code;
}

int evb_front_end_send(evb_front_end *front_end, uint64_t counter, const uint32_t *mark, const void *payload, size_t length,
                       unsigned flags) {
    struct iovec piece = {(void *)payload, length};
    return evb_front_end_send_pieces(front_end, counter, mark, &piece, 1, flags);
}

int evb_front_end_send_pieces(evb_front_end *own, uint64_t counter, const uint32_t *mark, const struct iovec *pieces,
                              size_t count, unsigned flags) {
    size_t length;
    if (!own || (flags & ~(unsigned)(EVB_RESYNCHRONISED | EVB_DAMAGED)))
        return EVB_BAD_ARGUMENT;
    int code = measure(pieces, count, &length);
    if (code != EVB_OK)
        return code;
    struct frame frame = {.pieces = pieces, .count = count, .size = HEADER + length};
    write_header(&frame, own->source, counter, mark, flags);
    pthread_mutex_lock(&own->lock);
    code = accept_frame(own, &frame);
    if (code == EVB_OK) {
        own->last_counter = counter;
        own->run_fragments++;
        own->end_is_held = 0;
        add(&own->fragments, 1);
        add(&own->bytes, length);
    }
    pthread_mutex_unlock(&own->lock);
    return code;
}

int evb_front_end_flush(evb_front_end *own) {
    if (!own)
        return EVB_BAD_ARGUMENT;
    pthread_mutex_lock(&own->lock);
    int code = transmit(own, NULL, end_after(own->options.timeout_ms));
    pthread_mutex_unlock(&own->lock);
    return code;
}

static int accept_end(evb_front_end *own, uint64_t counter) {
    struct frame frame = {.size = HEADER};
    write_header(&frame, own->source, counter, &own->run_fragments, END_OF_RUN);
    int code = accept_frame(own, &frame);
    if (code == EVB_OK) {
        own->run_fragments = 0;
        own->end_is_held = 1;
    }
    return code;
}

int evb_front_end_end_of_run(evb_front_end *own, const uint64_t *last_counter) {
    if (!own)
        return EVB_BAD_ARGUMENT;
    pthread_mutex_lock(&own->lock);
    int code = own->end_is_held ? EVB_OK : accept_end(own, last_counter ? *last_counter : own->last_counter);
    if (code == EVB_OK)
        code = transmit(own, NULL, end_after(own->options.timeout_ms));
    own->end_is_held = own->end_is_held && code != EVB_OK;
    pthread_mutex_unlock(&own->lock);
    return code;
}

/* Waits until the receiver closes the connection, which it does when it has read everything. */
static int await_reader(evb_front_end *own, int64_t end) {
    (void)shutdown(own->socket, SHUT_WR);
    char said[256];
    for (;;) {
        ssize_t bytes = recv(own->socket, said, sizeof said, MSG_DONTWAIT);
        if (bytes == 0)
            return EVB_OK;
        if (bytes < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return EVB_NOT_READ;
        if (bytes < 0 && !wait_until(own->socket, POLLIN, end))
            return or_would_block(EVB_TIMED_OUT, end);
    }
}

int evb_front_end_close(evb_front_end *own, uint32_t timeout_ms) {
    if (!own)
        return EVB_OK;
    pthread_mutex_lock(&own->lock);
    own->is_closing = 1;
    pthread_cond_signal(&own->has_work);
    pthread_mutex_unlock(&own->lock);
    if (own->has_flusher)
        pthread_join(own->flusher, NULL);
    int64_t end = end_after(timeout_ms);
    int code = transmit(own, NULL, end);
    if (code == EVB_OK && own->state == UP)
        code = await_reader(own, end);
    int error = errno;
    pthread_cond_destroy(&own->has_work);
    pthread_mutex_destroy(&own->lock);
    free_all(own);
    errno = error;
    return code;
}

void evb_front_end_statistics(const evb_front_end *own, evb_front_end_counts *counts) {
    if (!counts)
        return;
    *counts = (evb_front_end_counts){0};
    if (!own)
        return;
    counts->fragments = atomic_load_explicit(&own->fragments, memory_order_relaxed);
    counts->bytes = atomic_load_explicit(&own->bytes, memory_order_relaxed);
    counts->reconnects = atomic_load_explicit(&own->reconnects, memory_order_relaxed);
    counts->waits = atomic_load_explicit(&own->waits, memory_order_relaxed);
    counts->repeated = atomic_load_explicit(&own->repeated, memory_order_relaxed);
    counts->unconfirmed_bytes = atomic_load_explicit(&own->unconfirmed_bytes, memory_order_relaxed);
}

const char *evb_front_end_error_text(int code) {
    switch (code) {
    case EVB_OK: return "all is well";
    case EVB_WOULD_BLOCK: return "the call would have to wait: call it again later";
    case EVB_TIMED_OUT: return "the receiver took nothing within the timeout: the run is paused, or evb is slower";
    case EVB_UNREACHABLE: return "there is no connection within the timeout: does evb run, and listen at this address?";
    case EVB_BAD_ADDRESS: return "the address is not HOST:PORT, or the host is not known";
    case EVB_BAD_ARGUMENT: return "an argument is a null pointer, an unknown flag, or out of its range";
    case EVB_TOO_LARGE: return "the payload has 4 GiB or more: a frame cannot carry it";
    case EVB_NO_MEMORY: return "the system gives no memory or no thread";
    case EVB_NOT_READ: return "the receiver closed the connection before it had read everything: fragments may be lost";
    default: return "the code is not known";
    }
}
