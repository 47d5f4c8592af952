/* Runs the case that it is told, and lists them without one. */
#include "common.h"

static const struct {
    const char *name;
    void (*run)(void);
} CASES[] = {
    {"getinfo", case_getinfo},       {"objects", case_objects},
    {"addresses", case_addresses},   {"messages", case_messages},
    {"pieces", case_messages_in_pieces}, {"truncation", case_truncation},
    {"tagged", case_tagged},         {"matching", case_matching},
    {"peek", case_peek},             {"cancel", case_cancel},
    {"queues", case_queues},         {"waiting", case_waiting},
    {"selective", case_selective},   {"counters", case_counters},
    {"remote", case_remote},         {"remote-bounds", case_remote_bounds},
    {"remote-data", case_remote_data}, {"full", case_full},
    {"threads", case_threads},       {"processes", case_processes},
    {"ends", case_ends},             {"missing", case_missing},
    {"hardware", case_hardware},
};

int main(int count, char **arguments) {
    alarm(30);
    for (size_t index = 0; index < sizeof CASES / sizeof *CASES; index++) {
        if (count < 2) {
            puts(CASES[index].name);
        } else if (strcmp(arguments[1], CASES[index].name) == 0) {
            CASES[index].run();
            puts("conforms");
            return 0;
        }
    }
    return count < 2 ? 0 : 2;
}
