/* A filter of evb in C: three functions, compiled as a shared library or a program.
 *
 *     gcc -shared -fPIC -o my_filter.so my_filter.c             library = "./my_filter.so"
 *     gcc -DEVB_FILTER_PROGRAM -o my_filter my_filter.c         program = ["./my_filter"]
 *
 * Everything that a function is given is valid until it returns, and cannot be written.
 * docs/guides/filters.md has more. */
#ifndef EVB_FILTER_H
#define EVB_FILTER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The status of a fragment. */
enum { EVB_GOOD = 0, EVB_CORRUPTED = 1, EVB_MISSING = 2, EVB_OVERSIZED = 3, EVB_MISMATCHED = 4 };

/* Decisions; the index of any other stream is one, too. */
enum { EVB_REJECT = -1, EVB_ACCEPT = 0 };

/* The part of an event that comes from one source. Its bytes begin at a multiple of 8. */
typedef struct evb_fragment {
    uint16_t source;
    uint8_t status;
    uint8_t reserved;
    uint32_t length; /* bytes */
    const uint8_t *bytes;
} evb_fragment;

/* An event. */
typedef struct evb_event {
    uint64_t number;
    uint16_t fragments; /* their number */
    uint16_t complete;  /* 1 if every fragment is there and good */
    uint32_t reserved;
    const evb_fragment *fragment;
} evb_event;

/* The run, and the place of this filter in it. */
typedef struct evb_run {
    uint64_t number;
    uint16_t builder;
    uint16_t unit;
    uint16_t streams; /* their number */
    uint16_t reserved;
    const char *const *stream; /* their names; a null pointer follows the last one */
} evb_run;

/* Begins; returns anything but a null pointer, which means that the filter cannot work. */
void *evb_filter_open(const evb_run *run);
/* Decides about an event: EVB_REJECT, EVB_ACCEPT, or the index of a stream. */
int evb_filter_decide(void *filter, const evb_event *event);
/* Ends. */
void evb_filter_close(void *filter);

#ifdef __cplusplus
}
#endif

#ifdef EVB_FILTER_PROGRAM

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

enum { EVB_HELLO = 1, EVB_EVENTS = 2, EVB_PLACES = 3, EVB_READY = 16, EVB_VERDICTS = 17, EVB_MOST_VERDICTS = 4096 };
enum { EVB_HELLO_FIXED = 24, EVB_FIRST = 64 };

typedef struct evb_message {
    uint32_t length, kind;
    size_t room;
    uint8_t *body;
} evb_message;

/* The memory in which the builder puts events; a null pointer if there is none. */
typedef struct evb_area {
    const uint8_t *start;
    uint64_t length;
} evb_area;

static uint64_t evb_number(const uint8_t *bytes, int count) {
    uint64_t number = 0;
    while (count-- > 0) number = number << 8 | bytes[count];
    return number;
}

static void evb_put(uint8_t *bytes, uint64_t number, int count) {
    for (int i = 0; i < count; i++) bytes[i] = (uint8_t)(number >> (8 * i));
}

static void evb_die(const char *why) {
    fprintf(stderr, "evb filter: %s\n", why);
    exit(1);
}

/* Reads the next message; returns 0 at the end of the input. */
static int evb_read(evb_message *message) {
    uint8_t head[8];
    if (fread(head, 1, 8, stdin) < 8) return 0;
    message->length = (uint32_t)evb_number(head, 4);
    message->kind = (uint32_t)evb_number(head + 4, 4);
    if (message->length > message->room) {
        free(message->body);
        message->room = message->length;
        message->body = malloc(message->room);
        if (!message->body) evb_die("no memory is left for an event");
    }
    return fread(message->body, 1, message->length, stdin) == message->length;
}

static void evb_send(uint32_t kind, const uint8_t *body, size_t length) {
    uint8_t head[8];
    evb_put(head, length, 4);
    evb_put(head + 4, kind, 4);
    if (fwrite(head, 1, 8, stdout) < 8 || fwrite(body, 1, length, stdout) < length || fflush(stdout))
        evb_die("the builder does not read any more");
}

/* Maps the memory that a hello announces. The parent of this program may have closed the descriptor, and another
 * file may have its number: the memory begins with the same bytes as the hello. */
static evb_area evb_map(const uint8_t *hello) {
    evb_area none = {NULL, 0}, area;
    struct stat status;
    int descriptor = (int)evb_number(hello + 20, 4);
    if (descriptor <= 0 || fstat(descriptor, &status) || status.st_size < EVB_FIRST) return none;
    void *start = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (start == MAP_FAILED) return none;
    area.start = (const uint8_t *)start;
    area.length = (uint64_t)status.st_size;
    return memcmp(start, hello, EVB_HELLO_FIXED) ? none : area;
}

/* Opens the filter with the hello of the builder. */
static void *evb_begin(evb_message *message, evb_area *area) {
    if (!evb_read(message)) exit(0);
    const uint8_t *body = message->body;
    if (message->kind != EVB_HELLO || message->length < EVB_HELLO_FIXED || memcmp(body, "EVBF", 4)) evb_die("no builder is there");
    if (evb_number(body + 4, 2) != 1) evb_die("the builder has another version");
    evb_run run = {evb_number(body + 8, 8), (uint16_t)evb_number(body + 16, 2), (uint16_t)evb_number(body + 18, 2),
                   (uint16_t)evb_number(body + 6, 2), 0, NULL};
    char **names = calloc((size_t)run.streams + 1, sizeof *names);
    size_t at = EVB_HELLO_FIXED;
    for (int i = 0; names && i < run.streams; i++) {
        if (at + 2 > message->length) evb_die("the hello of the builder is damaged");
        size_t length = (size_t)evb_number(body + at, 2);
        if (at + 2 + length > message->length) evb_die("the hello of the builder is damaged");
        names[i] = (char *)calloc(length + 1, 1);
        if (!names[i]) evb_die("no memory is left for the names of streams");
        memcpy(names[i], body + at + 2, length);
        at += 2 + length;
    }
    run.stream = (const char *const *)names;
    void *filter = evb_filter_open(&run);
    if (!filter) evb_die("evb_filter_open has failed");
    *area = evb_map(body);
    uint8_t ready[8] = {'E', 'V', 'B', 'F', 1, 0, area->start != NULL, 0};
    evb_send(EVB_READY, ready, 8);
    return filter;
}

/* Reads one event from the bytes before the end, and returns what follows it. */
static const uint8_t *evb_event_at(const uint8_t *at, const uint8_t *end, evb_event *event, evb_fragment *fragments) {
    if (end - at < 16 || (uint64_t)(end - at) - 16 < evb_number(at + 12, 4)) evb_die("an event does not end");
    end = at + 16 + evb_number(at + 12, 4);
    event->number = evb_number(at, 8);
    event->fragments = (uint16_t)evb_number(at + 8, 2);
    event->complete = (uint16_t)evb_number(at + 10, 2) & 1;
    event->reserved = 0;
    event->fragment = fragments;
    at += 16;
    for (int i = 0; i < event->fragments; i++) {
        if (end - at < 8) evb_die("a fragment does not end");
        uint32_t length = (uint32_t)evb_number(at + 4, 4);
        uint64_t padded = ((uint64_t)length + 7) / 8 * 8;
        if ((uint64_t)(end - at) - 8 < padded) evb_die("a fragment does not end");
        evb_fragment fragment = {(uint16_t)evb_number(at, 2), at[2], 0, length, at + 8};
        fragments[i] = fragment;
        at += 8 + padded;
    }
    return end;
}

/* Finds the next event of a message, and moves on in it. */
static void evb_next(const evb_message *message, evb_area area, size_t *at, evb_event *event, evb_fragment *fragments) {
    const uint8_t *body = message->body, *end = body + message->length;
    if (message->kind == EVB_EVENTS) {
        *at = (size_t)(evb_event_at(body + *at, end, event, fragments) - body);
        return;
    }
    if (message->length - *at < 16) evb_die("a message does not end");
    uint64_t start = evb_number(body + *at, 8), length = evb_number(body + *at + 8, 8);
    if (start < EVB_FIRST || start % 8 || start > area.length || area.length - start < length)
        evb_die("the builder names a place outside of its memory");
    evb_event_at(area.start + start, area.start + start + length, event, fragments);
    *at += 16;
}

static void evb_flush(uint8_t *verdicts, uint32_t *count) {
    if (!*count) return;
    evb_put(verdicts, *count, 8);
    evb_send(EVB_VERDICTS, verdicts, 8 + 16 * (size_t)*count);
    *count = 0;
}

static double evb_seconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(void) {
    static evb_fragment fragments[65535];
    static uint8_t verdicts[8 + 16 * EVB_MOST_VERDICTS];
    evb_message message = {0, 0, 0, NULL};
    evb_area area = {NULL, 0};
    void *filter = evb_begin(&message, &area);
    while (evb_read(&message)) {
        int is_known = message.kind == EVB_EVENTS || (message.kind == EVB_PLACES && area.start);
        if (!is_known || message.length < 8) evb_die("the builder has sent an invalid event");
        uint64_t events = evb_number(message.body, 4);
        size_t at = 8;
        uint32_t count = 0;
        double sent = evb_seconds();
        while (events--) {
            evb_event event;
            evb_next(&message, area, &at, &event, fragments);
            int stream = evb_filter_decide(filter, &event);
            uint8_t *verdict = verdicts + 8 + 16 * (size_t)count++;
            memset(verdict, 0, 16);
            evb_put(verdict, event.number, 8);
            verdict[8] = stream >= 0;
            evb_put(verdict + 10, stream < 0 ? 0 : stream > 65535 ? 65535 : (uint64_t)stream, 2);
            /* Verdicts go early when events take long: the builder sees that work goes on. */
            if (count == EVB_MOST_VERDICTS || evb_seconds() - sent > 0.1) {
                evb_flush(verdicts, &count);
                sent = evb_seconds();
            }
        }
        evb_flush(verdicts, &count);
    }
    evb_filter_close(filter);
    return 0;
}

#endif
#endif
