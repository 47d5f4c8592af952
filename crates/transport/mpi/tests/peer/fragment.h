/* What a fragment of the event builders in C holds. It has the number of its event in its first word and a pattern in the
 * others.
 *
 * With DUTIES defined, they do what evb does beside moving and verifying fragments: the readout unit makes a CRC-32C of each
 * fragment, which travels with it, the builder checks it, and the event manager accounts for every event (account.h). The
 * checksum is that of Intel's ISA-L (-lisal), which uses the same instructions as evb's. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef DUTIES
#include <isa-l/crc.h>
#endif

#ifdef DUTIES
enum { HAS_DUTIES = 1 };
#else
enum { HAS_DUTIES = 0 };
#endif

static void *room(size_t bytes) {
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return memory;
}

static uint64_t first_word(int64_t event, int readout) {
    return ((uint64_t)event << 16 | (uint64_t)readout) * UINT64_C(0x9e3779b97f4a7c15);
}

/* The words that follow a fragment on its way: the checksum, if there is one. */
enum { SEAL_WORDS = HAS_DUTIES };

/* Writes a fragment of so many words, and its seal behind it. */
static void write_fragment(uint64_t *fragment, int64_t words, int64_t event, int readout) {
    uint64_t first = first_word(event, readout);
    fragment[0] = (uint64_t)event;
    for (int64_t word = 1; word < words; word++)
        fragment[word] = first + (uint64_t)word;
#ifdef DUTIES
    fragment[words] = crc32_iscsi((unsigned char *)fragment, (int)words * 8, 0);
#endif
}

/* The number of wrong words, a wrong checksum among them. */
static int64_t verify_fragment(const uint64_t *fragment, int64_t words, int64_t event, int readout) {
    uint64_t first = first_word(event, readout);
    int64_t wrong = fragment[0] != (uint64_t)event;
    for (int64_t word = 1; word < words; word++)
        wrong += fragment[word] != first + (uint64_t)word;
#ifdef DUTIES
    wrong += fragment[words] != crc32_iscsi((unsigned char *)fragment, (int)words * 8, 0);
#endif
    return wrong;
}
