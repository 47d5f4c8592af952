/* The front-end kit of evb: sends the fragments of one source to a readout unit by TCP, in the framing of
 * docs/reference/front-end-framing.md.
 *
 *     cc -O2 -c evb_front_end.c -pthread
 *
 * A call that returns EVB_OK has accepted its fragment. With any other code it has not, and the call may be repeated.
 * Nothing that was accepted is dropped in silence: evb_front_end_close says whether the other end has read everything, and
 * evb_front_end_statistics counts what a broken connection may have lost. docs/guides/front-ends.md has more.
 *
 * Several threads may use one front end; their calls take turns. The calls of evb_front_end_statistics and
 * evb_front_end_error_text never wait. */
#ifndef EVB_FRONT_END_H
#define EVB_FRONT_END_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A connection to the readout unit of one source. */
typedef struct evb_front_end evb_front_end;

/* The outcome of a call. */
enum {
    EVB_OK = 0,
    EVB_WOULD_BLOCK = 1,  /* the timeout is 0, and the call would have to wait */
    EVB_TIMED_OUT = 2,    /* the receiver is connected, and took nothing within the timeout */
    EVB_UNREACHABLE = 3,  /* there is no connection within the timeout; errno says why */
    EVB_BAD_ADDRESS = 4,  /* the address is not HOST:PORT, or the host is not known */
    EVB_BAD_ARGUMENT = 5, /* a null pointer, an unknown flag, or an option out of its range */
    EVB_TOO_LARGE = 6,    /* the payload has 4 GiB or more */
    EVB_NO_MEMORY = 7,    /* the system gives no memory or no thread */
    EVB_NOT_READ = 8      /* the receiver closed the connection before it had read everything */
};

/* Flags of a fragment. */
enum {
    EVB_RESYNCHRONISED = 2, /* the event counter starts again with this fragment */
    EVB_DAMAGED = 4         /* the front end knows that the payload is bad */
};

/* Options of a front end. evb_front_end_defaults fills them. */
typedef struct evb_front_end_options {
    /* Longest wait for the first connection in ms, 10,000 by default. 0: open does not wait, the first fragments do. */
    uint32_t connect_timeout_ms;
    /* Longest wait of every other call in ms, 10,000 by default. 0: no call waits, but returns EVB_WOULD_BLOCK. */
    uint32_t timeout_ms;
    /* Pause between two attempts to connect in ms, at least 1, 100 by default. */
    uint32_t retry_ms;
    /* Bytes of small fragments that are gathered, at most 64 MiB, 65,536 by default. 0: each is sent at once. */
    uint32_t buffer_bytes;
    /* Longest time that a fragment is gathered in us, 1000 by default. 0: until the buffer is full or is flushed. */
    uint32_t linger_us;
} evb_front_end_options;

/* Counts since the front end was opened. */
typedef struct evb_front_end_counts {
    uint64_t fragments;         /* fragments accepted */
    uint64_t bytes;             /* payload bytes accepted */
    uint64_t reconnects;        /* connections after the first one */
    uint64_t waits;             /* calls that waited for the receiver, or would have with a timeout */
    uint64_t repeated;          /* frames that a broken connection cut, and that began again */
    uint64_t unconfirmed_bytes; /* bytes that were under way when a connection broke, and may be lost (Linux only) */
} evb_front_end_counts;

/* The default options. */
evb_front_end_options evb_front_end_defaults(void);

/* Opens a front end. `address` is HOST:PORT, or [HOST]:PORT for IPv6; `source` is the index of the readout unit. `options`
 * may be null. `*front_end` is set to null on failure.
 * Errors: EVB_BAD_ARGUMENT, EVB_BAD_ADDRESS, EVB_UNREACHABLE, EVB_NO_MEMORY. */
int evb_front_end_open(evb_front_end **front_end, const char *address, uint16_t source, const evb_front_end_options *options);

/* Sends the fragment of an event. `counter` is the number of the event as the front end counts it. `mark` points to a value
 * that is the same in all sources of one event, or is null. The payload is free for reuse when the call returns.
 * Errors: EVB_BAD_ARGUMENT, EVB_TOO_LARGE, EVB_WOULD_BLOCK, EVB_TIMED_OUT, EVB_UNREACHABLE, EVB_NO_MEMORY. */
int evb_front_end_send(evb_front_end *front_end, uint64_t counter, const uint32_t *mark, const void *payload, size_t length,
                       unsigned flags);

/* Sends a fragment whose payload is in `count` pieces, one behind the other. */
int evb_front_end_send_pieces(evb_front_end *front_end, uint64_t counter, const uint32_t *mark, const struct iovec *pieces,
                              size_t count, unsigned flags);

/* Hands all gathered fragments to the system. Errors: EVB_WOULD_BLOCK, EVB_TIMED_OUT, EVB_UNREACHABLE. */
int evb_front_end_flush(evb_front_end *front_end);

/* Announces the end of the run with the number of fragments since the last end, and flushes. `last_counter` points to the
 * counter of the run's last event, or is null: then that of the last fragment is taken. Errors: as of flush; the call may
 * be repeated. Fragments after it belong to the next run. */
int evb_front_end_end_of_run(evb_front_end *front_end, const uint64_t *last_counter);

/* Flushes, closes the connection, waits until the receiver has read everything, at most `timeout_ms`, and frees the front
 * end in any case. No other call may be under way.
 * Errors: EVB_WOULD_BLOCK (with 0), EVB_TIMED_OUT, EVB_UNREACHABLE, EVB_NOT_READ: some fragments may not have arrived. */
int evb_front_end_close(evb_front_end *front_end, uint32_t timeout_ms);

/* Copies the counts. They do not belong to one instant while another thread sends. */
void evb_front_end_statistics(const evb_front_end *front_end, evb_front_end_counts *counts);

/* What a code means, as an English sentence without its full stop. */
const char *evb_front_end_error_text(int code);

/* Run control: evb tells a front end its settings, the start and the stop by the lines of
 * docs/reference/front-end-control.md. The functions are in evb_front_end_control.c. */
typedef struct evb_front_end_control evb_front_end_control;

/* Carries out an order: "configure", "start", "next", "pause", "resume" or "stop". `arguments` is a JSON object for the first
 * three, such as {"run":17,"type":"physics"}, and "" for the others. Returns null, or why the order is not possible. Orders
 * come from one thread, one after the other. */
typedef const char *evb_front_end_order(void *board, const char *order, const char *arguments);

/* Opens the way of run control to a front end, which listens at HOST:PORT, or with `listens` 0 connects to it, again and
 * again. `board` is passed on to `obey`.
 * Errors: EVB_BAD_ARGUMENT, EVB_BAD_ADDRESS, EVB_UNREACHABLE (it cannot listen there), EVB_NO_MEMORY. */
int evb_front_end_control_open(evb_front_end_control **control, const char *address, int listens, evb_front_end_order *obey,
                               void *board);

/* Says "busy", "ready" or "problem TEXT" to run control. Errors: EVB_BAD_ARGUMENT, EVB_UNREACHABLE (no run listens). */
int evb_front_end_control_say(evb_front_end_control *control, const char *line);

/* Ends the connection and the thread, when the order under way is carried out, and frees the control. */
void evb_front_end_control_close(evb_front_end_control *control);

/* CRC-32C (Castagnoli) of `length` bytes that follow bytes with the checksum `before`, 0 at the beginning. */
uint32_t evb_crc32c(uint32_t before, const void *bytes, size_t length);

/* The same by tables, for processors without an instruction for it. */
uint32_t evb_crc32c_by_table(uint32_t before, const void *bytes, size_t length);

#ifdef __cplusplus
}
#endif

#endif
