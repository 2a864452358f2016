/* SPDX-License-Identifier: MIT */
/*
 * The worker's side of the board, as Ruby sees it: Leat::Board (the mapping, one per process),
 * Leat::Seat (one worker thread's place at it), Leat::Input (a request's body) and Leat::Native (what
 * Ruby cannot do with descriptors and processes).
 *
 * Every function here runs with the GVL unless it says otherwise. Functions that Ruby calls may raise,
 * but only while the board and the seat are consistent: a request is held or not, a record is written
 * or not. Ruby's `ensure` gives a request back on every path.
 */
#pragma once

#include "base/buf.h"
#include "board/bell.h"
#include "board/board.h"
#include "board/descriptor.h"
#include "board/page.h"
#include "board/queue.h"
#include "board/slot.h"

#include <ruby.h>

/* Leat::Board: this process's mapping and its entry in the worker table. */
struct place {
    struct board board;
    uint32_t worker;
    _Atomic bool is_stopping;     /* this process takes no more requests */
    _Atomic bool is_used;         /* requests were served since memory was last measured */
    _Atomic bool has_looked;      /* and since then only whether it has changed */
    _Atomic uint64_t measured_us; /* monotonic time of that; 0 = never */
    /* Of the garbage collector at the last look: collections, major ones, the number of the last of those
     * that was seen, and whether the next will be one. */
    uint64_t collected, majors, collected_major;
    bool is_collection_due;
    _Atomic uint64_t resident;   /* resident bytes then */
    _Atomic uint64_t told_bytes; /* private bytes that master was told last */
    int report;                  /* to master, or -1 */
    uint64_t last_request;       /* after so many it asks to be replaced, 0 = never */
    _Atomic bool is_spent;       /* and it has */
};

/* What the walk over an answer's fields found. */
enum head_flag {
    HEAD_LENGTH = 1,     /* the application gave content-length */
    HEAD_EVENTS = 2,     /* content-type is text/event-stream */
    HEAD_CHUNKED = 4,    /* the application says that it chunks its body itself */
    HEAD_CLOSE = 8,      /* connection: close */
    HEAD_HIJACK = 16,    /* rack.hijack holds a callable */
    HEAD_BODYLESS = 32,  /* no body goes out: HEAD, 204, 304 */
    HEAD_UPGRADE = 64,   /* 101: the connection changes its protocol */
    HEAD_PROTOCOL = 128, /* the field that names it is there */
    HEAD_FILE = 256      /* x-sendfile names a file in place of the body */
};

/* A response head being put together; bytes has room for struct page_head in front. */
struct head {
    struct buf bytes;
    uint32_t status;
    uint32_t field_count;
    uint32_t flags;  /* enum head_flag */
    uint64_t length; /* what the application gave, with HEAD_LENGTH */
};

/* Values of env that rarely change between two requests; the template holds them. */
enum env_cached {
    ENV_METHOD,
    ENV_PROTOCOL,
    ENV_SCRIPT_NAME,
    ENV_SERVER_NAME,
    ENV_SERVER_PORT,
    ENV_REMOTE_ADDRESS,
    ENV_CACHED
};

/* Leat::Seat: one worker thread. Owned by its Ruby object; only that thread uses it, save for
 * seat_hints and seat_write, which streaming applications call from threads of their own. */
struct seat {
    VALUE place_object;
    VALUE reporter;      /* is told of illegal fields */
    VALUE template;      /* env without fields and body */
    VALUE input;         /* of the request held, or Qnil */
    VALUE id;            /* of the request held or the last one */
    VALUE thread_object; /* the Ruby thread that takes */
    struct place *place;
    uint32_t thread;
    int64_t slot; /* held request, -1 = none */
    uint32_t turn;
    uint32_t front;
    uint32_t request_flags; /* enum slot_flag, a copy */
    uint64_t taken_us;      /* monotonic, of the request it holds or held last */
    bool is_counted;        /* in the worker's busy word */
    bool is_head_put;       /* the head is in a page */
    bool is_published;      /* part of the answer may have been seen by the front */
    bool is_hijacked;       /* the application has the connection: nothing more is answered */
    bool is_https;          /* the template says so */
    bool is_old_rack;       /* Rack 3.0 or older: HTTP_VERSION is set */
    struct page_writer writer;
    struct head head;
    VALUE cached[ENV_CACHED];
    int socket; /* connection to a front's descriptor socket, -1 = none */
    uint32_t socket_front;
    bool is_asking; /* a question was sent whose answer was not read */
};

extern const rb_data_type_t place_type;
extern const rb_data_type_t seat_type;

/* The process forked away from the worker: the board is not mapped here and nothing may be sent. */
bool ext_is_foreign(void);

/* The mapping of a Leat::Board; raises IOError where it is not open. */
struct place *place_get(VALUE self);

struct seat *seat_get(VALUE self);

/* The seat, which must hold a request in this very process; raises IOError otherwise. */
struct seat *seat_get_held(VALUE self);

/* Ends the request held: slot DONE, its input of no more use. */
void seat_release(struct seat *seat);

/* Builds the env of the request held. */
VALUE env_build(struct seat *seat);
void env_init_template(struct seat *seat, VALUE fixed);

/* The body of the request held. Reads stop working once input_end was called. */
VALUE input_new(struct seat *seat);
void input_end(VALUE input);

/* The input of every request without a body; keeps no state. */
VALUE input_empty(void);

/* Adds one name and value as Ruby gave them; several fields when the value is a list or has lines. */
void head_add(struct seat *seat, struct head *head, VALUE name, VALUE value);

/* Starts over; status must have been checked. */
void head_begin(struct seat *seat, struct head *head, uint32_t status);
void head_add_length(struct head *head, uint64_t bytes);

/* Walks a Hash, or anything with `each`, of fields. */
void head_add_all(struct seat *seat, struct head *head, VALUE headers);

/* Status as an Integer in 200..599 or 101, or 0 when it is none. */
uint32_t head_status(VALUE status);

/* Asks the front of the request held. BODY and HIJACK return a descriptor that the caller owns, FILE
 * sends `file` and returns 0; a negative errno on failure. Releases the GVL. */
int descriptor_ask(struct seat *seat, uint32_t kind, int file);

/* Private bytes of this process. */
uint64_t measure_private_bytes(void);

/* Reads this process's memory into its entry, and tells master when it has changed. These release the GVL:
 * now; when this worker was idle for long enough; between two requests, for one that is never idle. */
void measure_now(struct place *place);
void measure_if_idle(struct place *place);
void measure_between(struct place *place);

/* How long an idle worker sleeps before it looks at its memory; -1 when nothing has happened. */
int measure_timeout_ms(struct place *place);

/* Tells master about this worker; false when it does not read. */
bool measure_tell(struct place *place, const char *verb, uint64_t private_bytes);

/* Collects garbage when this worker is idle, nothing is queued and a major collection is due. Returns
 * whether it did; may raise (interrupts, finalizers). */
bool collect_if_due(struct place *place);

void Init_leat_ext(void);
void init_collect(void);
void init_take(VALUE leat);
void init_attend(VALUE board_class);
void init_reply(VALUE seat_class);
void init_input(VALUE leat);
void init_env(void);
void init_head(void);
void init_native(VALUE leat);
