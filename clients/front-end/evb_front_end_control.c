/* Run control for a front end: one thread listens or connects, and passes the orders of evb on. */
#define _GNU_SOURCE
#include "evb_front_end.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GREETING "evb-front-end 1"
#define LONGEST_LINE 4096 /* with its end */
#define RETRY_MS 100      /* between two attempts, and between two looks whether the control is closed */

struct evb_front_end_control {
    pthread_t thread;
    pthread_mutex_t lock; /* of link, and of lines that must not mix */
    atomic_int closes;
    int listener, link; /* -1 if there is none */
    struct addrinfo *places;
    evb_front_end_order *obey;
    void *board;
};

/* Sends a line; control characters in it become spaces, so that it stays one. */
static int send_line(evb_front_end_control *own, const char *text) {
    char line[LONGEST_LINE];
    size_t length = strnlen(text, sizeof line - 1), sent = 0;
    for (size_t at = 0; at < length; at++)
        line[at] = (unsigned char)text[at] < ' ' ? ' ' : text[at];
    line[length++] = '\n';
    pthread_mutex_lock(&own->lock);
    while (own->link >= 0 && sent < length) {
        ssize_t more = send(own->link, line + sent, length - sent, MSG_NOSIGNAL);
        if (more < 0 && errno != EINTR)
            break;
        sent += more > 0 ? (size_t)more : 0;
    }
    pthread_mutex_unlock(&own->lock);
    return sent == length ? EVB_OK : EVB_UNREACHABLE;
}

/* Carries out the order in a line and answers it; returns 0 if the line is none. */
static int obey(evb_front_end_control *own, char *line) {
    if (strcmp(line, GREETING) == 0)
        return 1;
    char *order = strchr(line, ' '), *arguments = order ? strchr(order + 1, ' ') : NULL, answer[LONGEST_LINE];
    if (!order)
        return 0;
    *order++ = 0;
    if (arguments)
        *arguments++ = 0;
    const char *why = own->obey(own->board, order, arguments ? arguments : "");
    snprintf(answer, sizeof answer, why ? "%.20s error %s" : "%.20s ok", line, why);
    return send_line(own, answer) == EVB_OK;
}

/* Serves a connection until either side ends it. */
static void talk(evb_front_end_control *own) {
    char held[LONGEST_LINE], *end;
    size_t length = 0;
    if (send_line(own, GREETING) != EVB_OK)
        return;
    while (length < sizeof held) {
        ssize_t more = recv(own->link, held + length, sizeof held - length, 0);
        if (more == 0 || (more < 0 && errno != EINTR) || atomic_load(&own->closes))
            return;
        length += more > 0 ? (size_t)more : 0;
        while ((end = memchr(held, '\n', length))) {
            *end = 0;
            if (!obey(own, held))
                return;
            length -= (size_t)(end + 1 - held);
            memmove(held, end + 1, length);
        }
    }
}

/* A connection, or -1 if there is none yet. */
static int reach(evb_front_end_control *own) {
    if (own->listener >= 0) {
        struct pollfd ready = {.fd = own->listener, .events = POLLIN};
        return poll(&ready, 1, RETRY_MS) == 1 ? accept(own->listener, NULL, NULL) : -1;
    }
    for (struct addrinfo *place = own->places; place; place = place->ai_next) {
        int link = socket(place->ai_family, place->ai_socktype | SOCK_CLOEXEC, place->ai_protocol);
        if (link >= 0 && connect(link, place->ai_addr, place->ai_addrlen) == 0)
            return link;
        if (link >= 0)
            close(link);
    }
    poll(NULL, 0, RETRY_MS);
    return -1;
}

static void set_link(evb_front_end_control *own, int link) {
    pthread_mutex_lock(&own->lock);
    int before = own->link;
    own->link = link;
    pthread_mutex_unlock(&own->lock);
    if (before >= 0)
        close(before);
}

static void *serve(void *argument) {
    evb_front_end_control *own = argument;
    while (!atomic_load(&own->closes)) {
        int link = reach(own);
        if (link < 0)
            continue;
        set_link(own, link);
        if (!atomic_load(&own->closes))
            talk(own);
        set_link(own, -1);
    }
    return NULL;
}

/* Listens at the first place where that is possible. */
static int listen_at(const struct addrinfo *places) {
    const int on = 1;
    for (const struct addrinfo *place = places; place; place = place->ai_next) {
        int listener = socket(place->ai_family, place->ai_socktype | SOCK_CLOEXEC, place->ai_protocol);
        if (listener < 0)
            continue;
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(listener, place->ai_addr, place->ai_addrlen) == 0 && listen(listener, 4) == 0)
            return listener;
        close(listener);
    }
    return -1;
}

static struct addrinfo *resolve(const char *address) {
    char host[256];
    const char *colon = strrchr(address, ':');
    size_t length = colon ? (size_t)(colon - address) : 0;
    if (length > 1 && address[0] == '[' && address[length - 1] == ']')
        address++, length -= 2;
    if (!length || length >= sizeof host || !colon[1])
        return NULL;
    memcpy(host, address, length);
    host[length] = 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    return getaddrinfo(host, colon + 1, &hints, &found) == 0 ? found : NULL;
}

static void free_control(evb_front_end_control *own) {
    if (own->listener >= 0)
        close(own->listener);
    if (own->places)
        freeaddrinfo(own->places);
    pthread_mutex_destroy(&own->lock);
    free(own);
}

int evb_front_end_control_open(evb_front_end_control **control, const char *address, int listens, evb_front_end_order *obey,
                               void *board) {
    if (!control || !address || !obey)
        return EVB_BAD_ARGUMENT;
    *control = NULL;
    evb_front_end_control *own = calloc(1, sizeof *own);
    if (!own)
        return EVB_NO_MEMORY;
    own->listener = own->link = -1;
    own->obey = obey;
    own->board = board;
    pthread_mutex_init(&own->lock, NULL);
    own->places = resolve(address);
    if (own->places && listens)
        own->listener = listen_at(own->places);
    int code = !own->places ? EVB_BAD_ADDRESS : listens && own->listener < 0 ? EVB_UNREACHABLE : EVB_OK;
    if (code == EVB_OK && pthread_create(&own->thread, NULL, serve, own) != 0)
        code = EVB_NO_MEMORY;
    if (code == EVB_OK)
        *control = own;
    else
        free_control(own);
    return code;
}

int evb_front_end_control_say(evb_front_end_control *control, const char *line) {
    return control && line ? send_line(control, line) : EVB_BAD_ARGUMENT;
}

void evb_front_end_control_close(evb_front_end_control *own) {
    if (!own)
        return;
    atomic_store(&own->closes, 1);
    pthread_mutex_lock(&own->lock);
    if (own->link >= 0)
        shutdown(own->link, SHUT_RDWR);
    pthread_mutex_unlock(&own->lock);
    pthread_join(own->thread, NULL);
    free_control(own);
}
