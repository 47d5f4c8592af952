/* A board that hears run control: cc -o example_control example_control.c evb_front_end_control.c -pthread */
#include "evb_front_end.h"

#include <stdio.h>
#include <string.h>

static const char *obey(void *board, const char *order, const char *arguments) {
    (void)board;
    printf("%s %s\n", order, arguments);
    fflush(stdout);
    return strcmp(order, "configure") == 0 && strstr(arguments, "\"gain\":\"off\"") ? "the gain is off" : NULL;
}

int main(int count, char **addresses) {
    evb_front_end_control *control;
    if (evb_front_end_control_open(&control, count > 1 ? addresses[1] : "127.0.0.1:9400", 1, obey, NULL) != EVB_OK)
        return 1;
    getchar(); /* until standard input ends */
    evb_front_end_control_close(control);
}
