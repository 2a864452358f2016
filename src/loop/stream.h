/* SPDX-License-Identifier: MIT */
/*
 * A byte stream to one client: a vtable over a plain socket (here) or TLS. Its owner does all reads
 * and writes itself, without blocking, when it is told that they may succeed. One loop for life.
 *
 * Invariant: after stream_close no callback comes and the stream must not be used.
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
    STREAM_HANGUP = 4 /* told: reset or error; both directions are over */
};

struct stream;

struct stream_ops {
    /* Bytes moved, 0 at the peer's end of file (read only), or negative errno; -EAGAIN: wait. */
    ssize_t (*read)(struct stream *stream, char *out, size_t room);
    ssize_t (*write)(struct stream *stream, const struct iovec *parts, int count);
    /* Sends file bytes; -EOPNOTSUPP when the owner must read and write them itself. */
    ssize_t (*send_file)(struct stream *stream, int fd, off_t offset, size_t size);
    /* Ends our direction only. */
    void (*shutdown)(struct stream *stream);
    /* Closes and frees everything but the struct itself; reset: the peer sees a reset. */
    void (*close)(struct stream *stream, bool reset);
};

struct stream {
    const struct stream_ops *ops;
    struct loop *loop;
    struct watch watch;
    unsigned wants;                                           /* STREAM_READ | STREAM_WRITE */
    void (*on_event)(struct stream *stream, unsigned events); /* the owner's callback */
    bool secure;                                              /* TLS ends here */
};

/* Makes a stream of a connected non-blocking socket, which it owns from now on (also on failure).
 * 0 or negative errno. */
int stream_open_socket(struct stream *stream, struct loop *loop, int fd,
                       void (*on_event)(struct stream *, unsigned));

/* Sets what the owner waits for; nothing (0) still reports hang-ups. */
void stream_want(struct stream *stream, unsigned wants);

static inline ssize_t stream_read(struct stream *stream, char *out, size_t room)
{
    return stream->ops->read(stream, out, room);
}

static inline ssize_t stream_write(struct stream *stream, const struct iovec *parts, int count)
{
    return stream->ops->write(stream, parts, count);
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
