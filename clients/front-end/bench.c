/* How fast the kit sends fragments: into a sink in a process of its own that drops everything, or into evb.
 *
 *     cc -O2 -o bench bench.c evb_front_end.c -pthread
 *     ./bench [BYTES [FRAGMENTS [HOST:PORT [SOURCE]]]]
 *
 * Prints the checksum's speed, and median, minimum and maximum of five parts of FRAGMENTS each. */
#define _GNU_SOURCE
#include "evb_front_end.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PARTS = 5, SINK_BUFFER = 1 << 18 };

static void must(int good, const char *what) {
    if (!good) {
        fprintf(stderr, "bench: %s\n", what);
        exit(1);
    }
}

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int compare(const void *first, const void *second) {
    double a = *(const double *)first, b = *(const double *)second;
    return (a > b) - (a < b);
}

static void print(const char *what, double *values, const char *unit) {
    qsort(values, PARTS, sizeof *values, compare);
    printf("%-10s median %8.3f %s, minimum %.3f, maximum %.3f\n", what, values[PARTS / 2], unit, values[0],
           values[PARTS - 1]);
}

/* Takes a connection to its end. The system drops the bytes without a copy, so that the sender is what is measured. */
static void sink(int listener) {
    static char buffer[SINK_BUFFER];
    int socket = accept(listener, NULL, NULL);
    must(socket >= 0, "accept");
    while (recv(socket, buffer, sizeof buffer, MSG_TRUNC) > 0)
        ;
    close(socket);
}

/* Starts a sink, and writes its address. */
static pid_t start_sink(char *address, size_t size) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof place;
    must(bind(listener, (struct sockaddr *)&place, length) == 0 && listen(listener, 1) == 0, "listen");
    must(getsockname(listener, (struct sockaddr *)&place, &length) == 0, "getsockname");
    snprintf(address, size, "127.0.0.1:%d", ntohs(place.sin_port));
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        sink(listener);
        _exit(0);
    }
    close(listener);
    return child;
}

static void measure_checksum(const uint8_t *payload, size_t bytes) {
    double rates[PARTS];
    volatile uint32_t sum = 0;
    for (int part = 0; part < PARTS; part++) {
        size_t times = (1u << 30) / (bytes + 1) + 1;
        double start = now_s();
        for (size_t time = 0; time < times; time++)
            sum = evb_crc32c(sum, payload, bytes);
        rates[part] = (double)(times * bytes) / (now_s() - start) / 1e9;
    }
    print("checksum", rates, "GB/s");
}

int main(int count, char **arguments) {
    size_t bytes = count > 1 ? strtoull(arguments[1], NULL, 0) : 65536;
    uint64_t fragments = count > 2 ? strtoull(arguments[2], NULL, 0) : 40000;
    char own[64], *address = count > 3 ? arguments[3] : own;
    pid_t child = count > 3 ? 0 : start_sink(own, sizeof own);
    uint16_t source = (uint16_t)(count > 4 ? atoi(arguments[4]) : 0);
    uint8_t *payload = malloc(bytes + 1);
    must(payload != NULL, "no memory");
    memset(payload, 0x5a, bytes + 1);
    measure_checksum(payload, bytes);

    evb_front_end *front_end;
    int code = evb_front_end_open(&front_end, address, source, NULL);
    must(code == EVB_OK, evb_front_end_error_text(code));
    double rates[PARTS], frequencies[PARTS];
    uint64_t counter = 0;
    for (int part = 0; part < PARTS; part++) {
        double start = now_s();
        for (uint64_t fragment = 0; fragment < fragments; fragment++) {
            code = evb_front_end_send(front_end, ++counter, NULL, payload, bytes, 0);
            must(code == EVB_OK, evb_front_end_error_text(code));
        }
        code = evb_front_end_flush(front_end);
        must(code == EVB_OK, evb_front_end_error_text(code));
        double seconds = now_s() - start;
        rates[part] = (double)(bytes * fragments) / seconds / 1e9;
        frequencies[part] = (double)fragments / seconds / 1e3;
    }
    evb_front_end_counts counts;
    evb_front_end_statistics(front_end, &counts);
    code = evb_front_end_end_of_run(front_end, NULL);
    must(code == EVB_OK, evb_front_end_error_text(code));
    code = evb_front_end_close(front_end, 10000);
    print("bytes", rates, "GB/s");
    print("fragments", frequencies, "kHz");
    printf("%llu calls waited\n", (unsigned long long)counts.waits);
    if (child > 0)
        waitpid(child, NULL, 0);
    free(payload);
    must(code == EVB_OK, evb_front_end_error_text(code));
    return 0;
}
