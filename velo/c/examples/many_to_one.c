/* Many senders, one receiver, which checks that the messages of each are in order: many_to_one [SENDERS [MESSAGES]] */
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

static void sender(const char *receiver, uint64_t number, uint64_t messages) {
    evbvelo *device;
    good(evbvelo_open(NULL, &device), "evbvelo_open");
    int peer = (int)good(evbvelo_map(device, receiver), "evbvelo_map");
    for (uint64_t message = 0; message < messages; message++) {
        int result;
        while ((result = evbvelo_send(device, peer, &message, sizeof message, number, 0)) == EVBVELO_AGAIN) {
            /* The mailbox is full: the receiver gets time. */
            struct timespec pause = {0, 50000};
            nanosleep(&pause, NULL);
        }
        good(result, "evbvelo_send");
    }
    evbvelo_close(device);
    exit(0);
}

int main(int argc, char **argv) {
    uint64_t senders = argc > 1 ? strtoull(argv[1], NULL, 10) : 4;
    uint64_t messages = argc > 2 ? strtoull(argv[2], NULL, 10) : 100000;
    uint64_t *next = calloc(senders + 1, sizeof *next);
    char name[33];
    evbvelo *device;
    if (next == NULL) return 2;
    snprintf(name, sizeof name, "many-to-one-%d", (int)getpid());
    good(evbvelo_open(name, &device), "evbvelo_open");
    for (uint64_t number = 0; number < senders; number++) {
        if (fork() == 0) sender(name, number, messages);
    }
    for (uint64_t count = 0; count < senders * messages;) {
        evbvelo_message message;
        uint64_t number;
        if (good(evbvelo_poll(device, &message), "evbvelo_poll") == 0) {
            /* A sender that has sent all may end. */
            int waited = evbvelo_wait(device, 1000000);
            if (waited != EVBVELO_GONE) good(waited, "evbvelo_wait");
            continue;
        }
        good(evbvelo_receive(device, &number, sizeof number), "evbvelo_receive");
        if (message.tag >= senders || number != next[message.tag]++) {
            fprintf(stderr, "message %llu is out of order\n", (unsigned long long)number);
            return 1;
        }
        count++;
    }
    while (wait(NULL) > 0) continue;
    printf("%llu messages of %llu senders, each in order\n", (unsigned long long)(senders * messages),
           (unsigned long long)senders);
    evbvelo_close(device);
    free(next);
    return 0;
}
