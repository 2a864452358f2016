/* SPDX-License-Identifier: MIT */
/*
 * An exchange is one request and its response, with one arena. It lies between a connection, which
 * carries it (struct conn), a handler, which answers it (struct handler), and the service, which decides
 * who that is (struct service). It belongs to its connection's loop.
 *
 *   connection            service                 handler
 *   head parsed     ->    on_head (limits, site)
 *   body complete   ->    on_request              -> start
 *                                                    exchange_add_field, exchange_head, exchange_write, exchange_end
 *   update          <-------------------------------
 *   output low      ->                            -> resume
 *   client left     ->                            -> cancel
 *   all sent        ->    on_end (log), then the arena is reset
 *
 * Output is a bounded list of pieces. A handler appends; the connection pulls what it can send and calls
 * resume when less than EXCHANGE_LOW bytes are left. A handler with an unbounded source stops appending
 * when exchange_is_full.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "http/fields.h"
#include "loop/listen.h"
#include "loop/loop.h"

#include <stdint.h>
#include <sys/types.h>

enum {
    EXCHANGE_LOW = 64 * 1024,
    EXCHANGE_HIGH = 256 * 1024 /* memory one answer may hold before it is spooled or held back */
};

struct exchange;

/* What answers a request. All calls come from the exchange's loop, never from inside exchange_head,
 * exchange_write or exchange_end of the same exchange. */
struct handler {
    const char *name; /* for logs */
    /* The request is complete. Answers now or later. */
    void (*start)(struct exchange *exchange);
    /* Output has fallen below EXCHANGE_LOW and the answer has not ended. May be NULL. */
    void (*resume)(struct exchange *exchange);
    /* The connection is gone or gives up (exchange->refusal says why); the exchange must not be touched
     * after this returns. Not called once the answer has ended. May be NULL. */
    void (*cancel)(struct exchange *exchange);
};

/* A layer between the handler and the output: while an exchange has one, what the handler gives comes here
 * instead of to the output, and the filter passes on what it makes of it with exchange_put and
 * exchange_finish. It steps aside by setting exchange->filter to NULL. Bytes that it keeps count in
 * response.memory, so that the handler is held back. */
struct filter {
    /* exchange_head was called; nothing of it has been sent. */
    void (*head)(struct exchange *exchange);
    /* The connection is about to make the head: the last moment to change it. */
    void (*settle)(struct exchange *exchange);
    /* As the exchange functions of these names. The handler may be gone after end. */
    void (*write)(struct exchange *exchange, struct span bytes);
    void (*write_file)(struct exchange *exchange, int fd, bool owns_fd, uint64_t offset,
                       uint64_t size);
    void (*flush)(struct exchange *exchange);
    void (*end)(struct exchange *exchange, bool cut);
    /* Output has fallen below EXCHANGE_LOW. Returns whether the handler should be asked for more. */
    bool (*pull)(struct exchange *exchange);
};

/* What carries an exchange; called by the exchange functions below. */
struct conn {
    /* Sends an interim response (1xx) now; HTTP/1.0 clients get none (RFC 9110 15.2). */
    void (*interim)(struct exchange *exchange, unsigned status, const struct fields *fields);
    /* Head, output or end have changed: send what can be sent, soon (it may be at the batch's end). */
    void (*update)(struct exchange *exchange);
    /* Hands the connection over to a relay with fd, which it owns from now on, also on failure (101,
     * hijack); a head that was given goes out first, and the handler must not touch the exchange
     * afterwards. NULL when the carrier cannot. 0 or a negative errno: then nothing has happened. */
    int (*tunnel)(struct exchange *exchange, int fd);
    /* Ends an exchange that was handed over, on both sides, and tells the service why. NULL when the
     * carrier hands none over. */
    void (*cut)(struct exchange *exchange, enum refusal refusal);
};

/* What the server does with an exchange: implemented by the front, given to every connection. */
struct service {
    /* The head is there (method, target, fields, framing). Returns the refusal to answer, or
     * REFUSAL_NONE after setting what the body needs (request.body_limit). */
    enum refusal (*on_head)(struct exchange *exchange);
    /* The request is complete, or exchange->refusal is set and wants its own page. */
    void (*on_request)(struct exchange *exchange);
    /* Everything is sent or the exchange was broken off; the last call. */
    void (*on_end)(struct exchange *exchange);
};

/* The body of a request, complete when the handler starts. */
struct body {
    struct buf memory; /* owned; what is not in the file */
    int fd;            /* -1, or the unlinked file that holds all of it; owned */
    uint64_t size;     /* bytes, decoded from chunks */
};

struct request {
    enum method method;
    struct span method_text;
    struct span target;    /* as received */
    struct span path;      /* undecoded; "*" only for OPTIONS */
    struct span mount;     /* the path of the route that it was sent, or empty; set by on_head */
    size_t mount_bytes;    /* so many of path are that; see request_inner */
    struct span query;     /* without '?' */
    bool has_query;        /* "/x?" has an empty one */
    struct span host;      /* authority: from an absolute target, else Host; lower case; no port */
    unsigned port;         /* of the authority, 0 when it names none */
    struct span authority; /* as an application finds it in HTTP_HOST */
    unsigned minor;        /* HTTP/1.minor; 2 stands for HTTP/2 */
    struct fields fields;  /* all fields as received, hop-by-hop ones too; never changed */
    bool has_body;         /* Content-Length > 0 or chunked */
    bool expects_continue;
    int64_t length;      /* Content-Length, or -1 when unknown (chunked) */
    uint64_t body_limit; /* bytes; set by on_head */
    struct body body;
};

/* What of the path lies below its route, undecoded; may be empty. */
static inline struct span request_inner(const struct request *request)
{
    return span_skip(request->path, request->mount_bytes);
}

/* Who is at the other end, after forwarded fields of trusted peers were read (http/forwarded.h). */
struct client {
    const struct address *peer;  /* the socket's other end; the connection's */
    const struct address *local; /* the listener's address; the connection's */
    struct span address;         /* for REMOTE_ADDR: a numeric IP address */
    unsigned port;               /* of the server, for SERVER_PORT */
    bool secure;                 /* the request's scheme is https */
    bool trusted;                /* the peer is a trusted proxy */
    bool foreign;                /* the peer's address is public: claims of its are removed */
};

enum piece_kind { PIECE_BYTES, PIECE_FILE };

/* A part of the output. */
struct piece {
    struct list link;
    enum piece_kind kind;
    bool heap;       /* allocated singly, not in the arena */
    int fd;          /* FILE */
    bool owns_fd;    /* FILE: closed when sent */
    uint64_t offset; /* FILE: of the next byte */
    uint64_t size;   /* bytes still to send */
    char *data;      /* BYTES: the next byte */
    size_t room;     /* BYTES: free bytes behind the last one, for the next write */
};

struct response {
    unsigned status;      /* 0 until exchange_head */
    struct fields fields; /* end-to-end fields; framing is the connection's */
    int64_t length;       /* of the body, or -1 when unknown */
    bool stream;          /* parts are sent as they come */
    bool close;           /* the connection ends after this response */
    bool raw;             /* what follows the head is not framed: the connection becomes a tunnel */
    bool raw_chunked;     /* whoever sends through it makes chunks */
    bool no_body;         /* HEAD or a status without body: pieces are dropped */
    bool ended;           /* exchange_end was called */
    bool cut;             /* it ended early: the client must see that */
    struct list pieces;
    uint64_t pending; /* bytes in pieces */
    uint64_t memory;  /* of them in memory */
    uint64_t written; /* body bytes given to exchange_write so far */
};

/* Monotonic microseconds, 0 = not reached. */
struct times {
    uint64_t start_us;  /* first byte of the request */
    uint64_t head_us;   /* head complete */
    uint64_t body_us;   /* request complete */
    uint64_t taken_us;  /* a worker or peer took it */
    uint64_t answer_us; /* head of the answer */
    uint64_t end_us;    /* last byte written */
};

struct exchange {
    struct arena arena;
    struct loop *loop;
    const struct conn *conn;
    const struct service *service;
    void *service_data;            /* the front's loop data */
    void *carrier;                 /* the owner given when its connection was opened */
    const struct handler *handler; /* NULL until routed */
    void *handler_data;
    const struct filter *filter; /* NULL: what the handler gives is the output */
    void *filter_data;
    const void *site;  /* the front's: which site was found */
    const void *place; /* and which of its places */
    unsigned former;   /* and how many former releases' files were looked at */
    struct request request;
    struct client client;
    struct response response;
    struct times times;
    enum refusal refusal;
    unsigned retry_s;    /* for the page of a 503: when it may go better; 0 = nobody knows */
    struct span id;      /* request id, made or kept by on_head */
    uint64_t sent_bytes; /* on the wire for this exchange, head and framing included */
    bool resuming;       /* guards against recursion */
    bool finished;       /* on_end was called */
};

/* Connection: prepares an exchange of zeros, or one that was reset, for the next request. */
void exchange_init(struct exchange *exchange, struct loop *loop, const struct conn *conn,
                   const struct service *service, void *service_data);

/* Connection: frees what the exchange holds (pieces, body, arena cleanups) and keeps one arena block. */
void exchange_reset(struct exchange *exchange);
void exchange_done(struct exchange *exchange);

/* Handler: adds a response field; the bytes must live as long as the exchange. A failure to allocate
 * breaks the exchange off later, so it need not be checked. */
void exchange_add_field(struct exchange *exchange, struct span name, struct span value);

/* The same with a value of our own making, which is legal. */
void exchange_add_own(struct exchange *exchange, enum field_id id, struct span value);

/* Handler: status and fields are complete. length: of the body in bytes, -1 when unknown. */
void exchange_head(struct exchange *exchange, unsigned status, int64_t length);

/* Handler: appends body bytes (copied), or a part of a file. Bytes beyond a known length are dropped and
 * make the answer end as cut; so does an end before it. */
void exchange_write(struct exchange *exchange, struct span bytes);
void exchange_write_file(struct exchange *exchange, int fd, bool owns_fd, uint64_t offset,
                         uint64_t size);

/* Handler: what was appended so far should go out now. */
void exchange_flush(struct exchange *exchange);

/* Handler: the answer is complete (cut: it is not, and the client must see it). The handler must not
 * touch the exchange afterwards. Without a head before it, a cut end becomes an own page with 502. */
void exchange_end(struct exchange *exchange, bool cut);

/* Handler: answers with an own page for this refusal instead (possible while no head was set), then
 * ends. The handler must not touch the exchange afterwards. */
void exchange_refuse(struct exchange *exchange, enum refusal refusal);

/* Filter: appends to the output, or ends the answer. */
void exchange_put(struct exchange *exchange, struct span bytes);
void exchange_finish(struct exchange *exchange, bool cut);

/* Handler: sends an interim response. */
void exchange_interim(struct exchange *exchange, unsigned status, const struct fields *fields);

/* Whether a handler should stop appending until resume is called. */
static inline bool exchange_is_full(const struct exchange *exchange)
{
    return exchange->response.memory >= EXCHANGE_HIGH;
}

/* Connection: before it makes the head of the answer. */
void exchange_settle(struct exchange *exchange);

/* Connection: count bytes of the first pieces were sent: drops them and closes files. */
void exchange_consume(struct exchange *exchange, uint64_t count);

/* Connection: reads up to limit bytes of the file that the first piece is into memory, as a piece
 * before it. may_wait: also from the disk, not only from memory. Returns the bytes, 0 when the file is
 * shorter than it was, or a negative errno (-EAGAIN: it would have to wait). */
ssize_t exchange_load(struct exchange *exchange, size_t limit, bool may_wait);

/* Connection: the client is gone, or it broke a limit: cancels the handler unless the answer has ended,
 * and tells the service with that refusal. */
void exchange_abort(struct exchange *exchange, enum refusal refusal);

/* Connection: calls resume when it is due. */
void exchange_pull(struct exchange *exchange);
