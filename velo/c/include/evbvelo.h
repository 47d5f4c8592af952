/* libevbvelo: VELO as a device of any program. Messages between processes of one user on one machine, in shared memory.
 *
 * Functions return 0 or a positive number on success, and one of the negative EVBVELO_ errors otherwise. None of them
 * waits, except evbvelo_wait and evbvelo_flush, which have a limit. NULL is answered with EVBVELO_INVALID. One thread at a
 * time uses a device, any thread; a second one gets EVBVELO_BUSY.
 *
 * Times are in microseconds; a negative time has no limit. Lengths are in bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EVBVELO_H
#define EVBVELO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The interface that this header describes, and the library answers with in evbvelo_version. */
#define EVBVELO_VERSION 1

/* Longest message that is in the mailbox itself, and longest one that is copied when it is sent. */
#define EVBVELO_LINE_BYTES 64
#define EVBVELO_BLOCK_BYTES 8192
/* Messages that a mailbox holds, senders that it knows in its life, sends under way of one device. */
#define EVBVELO_MOST_MESSAGES 64
#define EVBVELO_MOST_SENDERS 1024
#define EVBVELO_MOST_SENDS 4096

/* Not now: receive what has arrived, and try again. Nothing is lost. */
#define EVBVELO_AGAIN (-1)
/* An argument is wrong. */
#define EVBVELO_INVALID (-2)
/* A name is not valid: use 1 to 32 characters out of A-Za-z0-9._- */
#define EVBVELO_NAME (-3)
/* Another device has this name. */
#define EVBVELO_TAKEN (-4)
/* No device has this name or address. */
#define EVBVELO_UNKNOWN (-5)
/* The peer knows EVBVELO_MOST_SENDERS senders already. */
#define EVBVELO_CROWDED (-6)
/* The peer has closed its device, or its process has ended. */
#define EVBVELO_GONE (-7)
/* The message is longer than the buffer; it stays. */
#define EVBVELO_TOO_LONG (-8)
/* No memory of the peer is lent with this key, place, length and right. */
#define EVBVELO_NOT_LENT (-9)
/* The key is in use, or as much memory is lent as can be. */
#define EVBVELO_NO_KEY (-10)
/* The system forbids it. */
#define EVBVELO_DENIED (-11)
/* Another thread uses the device. */
#define EVBVELO_BUSY (-12)
/* The system has no room, such as memory or open files. */
#define EVBVELO_SYSTEM (-13)
/* The device is broken by an error of the library. Close it. */
#define EVBVELO_BROKEN (-14)

/* Kinds of a message: one with bytes, and a notice of evbvelo_notify. */
#define EVBVELO_KIND_MESSAGE 0
#define EVBVELO_KIND_NOTICE 1

/* Rights on lent memory. */
#define EVBVELO_READ 1
#define EVBVELO_WRITE 2

/* An open device. */
typedef struct evbvelo evbvelo;

/* The address of a device, for processes of the same user on the same machine. It is plain bytes. */
typedef struct evbvelo_address_t {
    uint8_t bytes[16];
} evbvelo_address_t;

/* What has arrived. */
typedef struct evbvelo_message {
    uint64_t length; /* of its bytes */
    uint64_t tag;    /* two words of the sender */
    uint64_t data;
    int32_t peer;    /* who has sent it, to send an answer there; -1 if that is not possible any more */
    uint32_t kind;   /* EVBVELO_KIND_MESSAGE or EVBVELO_KIND_NOTICE */
} evbvelo_message;

/* EVBVELO_VERSION of the library. */
int evbvelo_version(void);

/* What an error means. The text stays. */
const char *evbvelo_error(int code);

/* Opens a device. Others find it by its name, or by its address alone if the name is NULL. */
int evbvelo_open(const char *name, evbvelo **device);

/* Closes a device. Messages of more than EVBVELO_LINE_BYTES that peers have not received yet are lost: flush first. */
int evbvelo_close(evbvelo *device);

/* Waits until peers have received all messages of more than EVBVELO_LINE_BYTES, or have ended. 1 if so, 0 at the end of
 * the time. */
int evbvelo_flush(evbvelo *device, int64_t timeout_us);

/* The address of a device. */
int evbvelo_address(evbvelo *device, evbvelo_address_t *address);

/* The number of the peer with this name, from 0 up. Its mailbox is mapped until the device is closed. */
int evbvelo_map(evbvelo *device, const char *name);

/* The number of the peer with this address. */
int evbvelo_map_address(evbvelo *device, const evbvelo_address_t *address);

/* 1 if a peer runs, 0 if it has ended. */
int evbvelo_alive(evbvelo *device, int peer);

/* Sends a message. 0: it is in the mailbox of the peer, or it will be fetched from a copy, and its memory can be used again.
 * A positive number: the send is under way, and its memory must stay as it is until evbvelo_done says so. EVBVELO_AGAIN: the
 * peer must receive first. Messages to one peer arrive in order. */
int evbvelo_send(evbvelo *device, int peer, const void *bytes, size_t length, uint64_t tag, uint64_t data);

/* 1 if a send is over, 0 if it is under way, EVBVELO_GONE if the peer has ended before. After 1 and EVBVELO_GONE the number is
 * free for other sends. */
int evbvelo_done(evbvelo *device, int send);

/* Sends a notice: a message without bytes, which arrives in order with the others, and behind all that evbvelo_put wrote. */
int evbvelo_notify(evbvelo *device, int peer, uint64_t tag, uint64_t data);

/* 1 and the first message, if one has arrived, and 0 and zeros otherwise. The message stays until it is received or discarded.
 * Sends under way need calls of this, of evbvelo_done, evbvelo_flush or evbvelo_wait. */
int evbvelo_poll(evbvelo *device, evbvelo_message *message);

/* Moves the bytes of the first message into a buffer with this much room, and returns their number. EVBVELO_AGAIN: none has
 * arrived, or its bytes come in blocks: call again with the same buffer. EVBVELO_TOO_LONG: the message stays.
 * EVBVELO_GONE: the sender has ended before its bytes came, and the message is dropped. */
int64_t evbvelo_receive(evbvelo *device, void *buffer, size_t room);

/* Throws the first message away. EVBVELO_AGAIN if none has arrived. */
int evbvelo_discard(evbvelo *device);

/* Waits for a message, or the end of a send: polls for some microseconds, and sleeps then. 1 if there is one, 0 at the end of
 * the time. EVBVELO_GONE: a mapped peer has ended; each is told once, and evbvelo_alive says which. */
int evbvelo_wait(evbvelo *device, int64_t timeout_us);

/* Lends memory to peers, which read or write it without asking. The key is the program's choice. The memory must stay until it is
 * taken back or the device is closed. */
int evbvelo_lend(evbvelo *device, uint64_t key, void *memory, size_t length, int rights);

/* Takes lent memory back. */
int evbvelo_take_back(evbvelo *device, uint64_t key);

/* Writes lent memory of a peer, from an offset on. When it returns, the bytes are there. */
int evbvelo_put(evbvelo *device, int peer, uint64_t key, uint64_t offset, const void *bytes, size_t length);

/* Reads lent memory of a peer, from an offset on. */
int evbvelo_get(evbvelo *device, int peer, uint64_t key, uint64_t offset, void *buffer, size_t length);

#ifdef __cplusplus
}
#endif

#endif
