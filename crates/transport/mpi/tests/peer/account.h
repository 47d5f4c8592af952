/* What the event manager of the event builders in C knows in the end. */

#include "fragment.h"

/* The account of the event manager: each event must be given once and be built once. */
struct account {
    int64_t events, built;
    unsigned char *is_built;
};

static struct account new_account(int64_t events) {
    return (struct account){.events = events, .is_built = room(HAS_DUTIES ? (size_t)events : 1)};
}

/* Takes note of a built event; none is negative. */
static void was_built(struct account *account, int64_t event) {
    if (!HAS_DUTIES || event < 0)
        return;
    if (event >= account->events || account->is_built[event]) {
        fprintf(stderr, "event %" PRId64 " was built twice, or never given\n", event);
        exit(1);
    }
    account->is_built[event] = 1;
    account->built++;
}

static void close_account(struct account *account) {
    if (HAS_DUTIES && account->built != account->events) {
        fprintf(stderr, "%" PRId64 " of %" PRId64 " events were built\n", account->built, account->events);
        exit(1);
    }
    free(account->is_built);
}

static void print_result(int64_t events, int64_t fragments, int64_t wrong, int64_t words, double seconds) {
    printf("{\"fragments\":%" PRId64 ",\"wrong\":%" PRId64 ",\"seconds\":%.6f,\"fragments_per_s\":%.0f,"
           "\"event_rate_hz\":%.0f,\"throughput_bytes_per_s\":%.0f}\n",
           fragments, wrong, seconds, (double)fragments / seconds, (double)events / seconds,
           (double)fragments * (double)words * 8 / seconds);
}
