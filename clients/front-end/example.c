/* Three boards of example.toml: cc -o example example.c evb_front_end.c -pthread && ./example */
#include "evb_front_end.h"

#include <stdio.h>
#include <string.h>

static int failed(int code) {
    if (code != EVB_OK)
        fprintf(stderr, "example: %s\n", evb_front_end_error_text(code));
    return code != EVB_OK;
}

int main(void) {
    const char *addresses[] = {"127.0.0.1:9101", "127.0.0.1:9102", "127.0.0.1:9103"};
    evb_front_end *boards[3];
    char payload[1000];
    for (uint16_t board = 0; board < 3; board++)
        if (failed(evb_front_end_open(&boards[board], addresses[board], board, NULL)))
            return 1;
    for (uint32_t event = 1; event <= 1000; event++) {
        memset(payload, (int)event, sizeof payload);
        for (int board = 0; board < 3; board++)
            if (failed(evb_front_end_send(boards[board], event, &event, payload, sizeof payload, 0)))
                return 1;
    }
    for (int board = 0; board < 3; board++)
        if (failed(evb_front_end_end_of_run(boards[board], NULL)) || failed(evb_front_end_close(boards[board], 10000)))
            return 1;
}
