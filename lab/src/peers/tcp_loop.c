/* Ping-pong over TCP in plain C that polls, as evb's layer does when it does not sleep: the best that sockets can do.
 *
 *   tcp_loop ROUND_TRIPS CORE CORE BYTES...
 *
 * Prints lines of size, median and minimum in ns of one way, over batches of round trips. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 50, LONGEST = 65536 };

static void must(int good, const char *what) {
    if (!good) {
        perror(what);
        exit(1);
    }
}

static void pin(const char *core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(core), &set);
    must(!sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

static void give(int socket, const char *bytes, size_t size) {
    must(send(socket, bytes, size, MSG_NOSIGNAL) == (ssize_t)size, "send");
}

static void take(int socket, char *bytes, size_t size) {
    for (size_t have = 0; have < size;) {
        ssize_t more = recv(socket, bytes + have, size - have, MSG_DONTWAIT);
        must(more > 0 || (more < 0 && errno == EAGAIN), "recv");
        have += more > 0 ? (size_t)more : 0;
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void *first, const void *second) {
    double a = *(const double *)first, b = *(const double *)second;
    return (a > b) - (a < b);
}

static void play(int socket, int first, long trips, size_t size) {
    static char bytes[LONGEST];
    for (long trip = 0; trip < trips; trip++) {
        if (first)
            give(socket, bytes, size);
        take(socket, bytes, size);
        if (!first)
            give(socket, bytes, size);
    }
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), end = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (argc < 5)
        return 2;
    long trips = atol(argv[1]) / BATCHES + 1;
    must(!bind(listener, (struct sockaddr *)&address, length) && !listen(listener, 1), "listen");
    must(!getsockname(listener, (struct sockaddr *)&address, &length), "getsockname");
    pid_t child = fork();
    must(child >= 0, "fork");
    pin(argv[child ? 2 : 3]);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would wait for good */
        must(!connect(end, (struct sockaddr *)&address, length), "connect");
    } else {
        end = accept(listener, NULL, NULL);
        must(end >= 0, "accept");
    }
    must(!setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), "TCP_NODELAY");
    for (int at = 4; at < argc; at++) {
        size_t size = strtoul(argv[at], NULL, 10);
        must(size > 0 && size <= LONGEST, "size");
        double times[BATCHES];
        play(end, child != 0, trips * BATCHES / 10, size);
        for (int batch = 0; batch < BATCHES; batch++) {
            double start = now();
            play(end, child != 0, trips, size);
            times[batch] = (now() - start) / (double)trips / 2;
        }
        qsort(times, BATCHES, sizeof *times, compare);
        if (child)
            printf("%zu %.1f %.1f\n", size, times[BATCHES / 2], times[0]);
    }
    return 0;
}
