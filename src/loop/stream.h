/* SPDX-License-Identifier: MIT */
/*
 * A byte stream to one client: a vtable over a plain socket (here) or TLS. Its owner does all reads
 * and writes itself, without blocking, when it is told that they may succeed. One loop for life.
 *
 * Writing to a socket whose peer is gone gives -EPIPE; send_file has no flag against the signal, so
 * the process must ignore SIGPIPE.
 *
 * Invariants: after stream_close no callback comes and the stream must not be used; a peer that has
 * ended its own direction only (half-close) is no hang-up: reading gives 0, and an owner that has seen
 * this stops wanting STREAM_READ, or it is told again and again.
 */
#pragma once

#include "base/span.h"
#include "loop/listen.h"
#include "loop/loop.h"

#include <sys/types.h>
#include <sys/uio.h>

enum {
    STREAM_READ = 1,  /* asked for, or told: reading may make progress */
    STREAM_WRITE = 2, /* asked for, or told: writing may make progress */
    STREAM_HANGUP = 4 /* told: reset or error; both directions are over. Bytes that came before it
                       * may still be read. Told once, and again whenever stream_want asks for more */
};

struct stream;

struct stream_ops {
    /* Bytes moved, 0 at the peer's end of file (read only), or negative errno; -EAGAIN: wait. */
    ssize_t (*read)(struct stream *stream, char *out, size_t room);
    ssize_t (*write)(struct stream *stream, const struct iovec *parts, int count, bool more);
    /* Sends file bytes, 0 when the file is shorter; -EOPNOTSUPP: the owner reads and writes itself. */
    ssize_t (*send_file)(struct stream *stream, int fd, off_t offset, size_t size);
    /* Ends our direction only. */
    void (*shutdown)(struct stream *stream);
    /* Closes and frees everything but the struct itself; reset: the peer sees a reset. */
    void (*close)(struct stream *stream, bool reset);
};

struct stream {
    const struct stream_ops *ops;
    struct loop *loop;
    struct watch watch;     /* of plain sockets; may ask for more than is wanted */
    int fd;                 /* owned; -1 when closed */
    bool hung_up;           /* the watch has ended, news come by told_again */
    struct task told_again; /* STREAM_HANGUP and what is wanted */
    unsigned wants;         /* STREAM_READ | STREAM_WRITE */
    void (*on_event)(struct stream *stream, unsigned events); /* the owner's callback */
    void *owner;                                              /* whatever it wants to find there */
    bool secure;                                              /* TLS ends here */
};

/* Makes a stream of a connected non-blocking socket without duplicates, which it owns from now on (also
 * on failure). It wants STREAM_READ at first. 0 or negative errno. */
int stream_open_socket(struct stream *stream, struct loop *loop, int fd,
                       void (*on_event)(struct stream *, unsigned));

/* Sets what the owner waits for; nothing (0) still reports hang-ups. Wanting less costs nothing until
 * what is not wanted any more happens, so that turning READ off and on for each request is free. */
void stream_want(struct stream *stream, unsigned wants);

static inline ssize_t stream_read(struct stream *stream, char *out, size_t room)
{
    return stream->ops->read(stream, out, room);
}

/* more: the owner sends more at once, so that the bytes may wait for it to fill a packet. */
static inline ssize_t stream_write(struct stream *stream, const struct iovec *parts, int count,
                                   bool more)
{
    return stream->ops->write(stream, parts, count, more);
}

static inline ssize_t stream_send_file(struct stream *stream, int fd, off_t offset, size_t size)
{
    return stream->ops->send_file(stream, fd, offset, size);
}

static inline void stream_shutdown(struct stream *stream)
{
    stream->ops->shutdown(stream);
}

static inline void stream_close(struct stream *stream, bool reset)
{
    stream->ops->close(stream, reset);
}
