/* A board whose payloads test_front_end.py knows: board HOST:PORT SOURCE EVENTS */
#include "../evb_front_end.h"

#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 100000 };

static void must(int code) {
    if (code != EVB_OK) {
        fprintf(stderr, "board: %s\n", evb_front_end_error_text(code));
        exit(1);
    }
}

int main(int count, char **arguments) {
    if (count != 4)
        return 2;
    static uint8_t payload[LARGEST];
    uint16_t source = (uint16_t)atoi(arguments[2]);
    uint32_t events = (uint32_t)atoi(arguments[3]);
    evb_front_end *board;
    must(evb_front_end_open(&board, arguments[1], source, NULL));
    for (uint32_t event = 1; event <= events; event++) {
        size_t length = event % 50 ? event * 37 % 3000 : LARGEST;
        uint32_t mark = event * 3;
        for (size_t at = 0; at < length; at++)
            payload[at] = (uint8_t)(event * 7 + source * 31u + at);
        struct iovec halves[] = {{payload, length / 2}, {payload + length / 2, length - length / 2}};
        must(event % 2 ? evb_front_end_send(board, event, &mark, payload, length, 0)
                       : evb_front_end_send_pieces(board, event, &mark, halves, 2, 0));
    }
    must(evb_front_end_end_of_run(board, NULL));
    must(evb_front_end_close(board, 10000));
    return 0;
}
