/* A filter in C: it accepts events with more than 1000 bytes from source 3. evb_filter.h says how to compile it. */
#include "evb_filter.h"

void *evb_filter_open(const evb_run *run) {
    return (void *)run; /* Anything but a null pointer will do: this filter remembers nothing. */
}

int evb_filter_decide(void *filter, const evb_event *event) {
    (void)filter;
    for (int i = 0; i < event->fragments; i++)
        if (event->fragment[i].source == 3)
            return event->fragment[i].length > 1000 ? EVB_ACCEPT : EVB_REJECT;
    return EVB_REJECT;
}

void evb_filter_close(void *filter) {
    (void)filter;
}
