/* Two processes throw a message to and fro, and tell half of the time of a round trip: ping_pong [ROUNDS [BYTES]] */
#define _POSIX_C_SOURCE 200809L
#include <evbvelo.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The result of a call, or the end of the program. */
static int64_t good(int64_t result, const char *call) {
    if (result >= 0) return result;
    fprintf(stderr, "%s: %s\n", call, evbvelo_error((int)result));
    exit(1);
}

static void throw(evbvelo *device, int peer, const void *bytes, size_t length) {
    int send;
    do send = evbvelo_send(device, peer, bytes, length, 0, 0);
    while (send == EVBVELO_AGAIN);
    good(send, "evbvelo_send");
    while (send > 0 && good(evbvelo_done(device, send), "evbvelo_done") == 0) continue;
}

static void catch(evbvelo *device, void *buffer, size_t room) {
    int64_t length;
    while ((length = evbvelo_receive(device, buffer, room)) == EVBVELO_AGAIN) continue;
    good(length, "evbvelo_receive");
}

static void child(const evbvelo_address_t *parent, int rounds, char *bytes, size_t length) {
    evbvelo *device;
    good(evbvelo_open(NULL, &device), "evbvelo_open");
    int peer = (int)good(evbvelo_map_address(device, parent), "evbvelo_map_address");
    throw(device, peer, "", 0);
    for (int round = 0; round < rounds; round++) {
        catch(device, bytes, length);
        throw(device, peer, bytes, length);
    }
    evbvelo_close(device);
    exit(0);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100000;
    size_t length = argc > 2 ? strtoul(argv[2], NULL, 10) : 8;
    char *bytes = calloc(1, length + 1);
    evbvelo *device;
    evbvelo_address_t address;
    evbvelo_message message;
    if (rounds < 1 || bytes == NULL) return 2;
    good(evbvelo_open(NULL, &device), "evbvelo_open");
    good(evbvelo_address(device, &address), "evbvelo_address");
    if (fork() == 0) child(&address, rounds, bytes, length);
    /* The first message tells who the peer is. */
    if (good(evbvelo_wait(device, 10000000), "evbvelo_wait") == 0) return 1;
    good(evbvelo_poll(device, &message), "evbvelo_poll");
    good(evbvelo_discard(device), "evbvelo_discard");
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int round = 0; round < rounds; round++) {
        throw(device, message.peer, bytes, length);
        catch(device, bytes, length);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9;
    printf("%zu bytes: %.3f us half round trip\n", length, seconds * 1e6 / rounds / 2);
    wait(NULL);
    evbvelo_close(device);
    free(bytes);
    return 0;
}
