/* SPDX-License-Identifier: MIT */
#include "leat_ext.h"

#include <errno.h>
#include <ruby/thread.h>
#include <unistd.h>

/* An answer's records. What is in a page that was not published yet can be taken back, so that an
 * error before the first byte still becomes a clean 500. */

enum { RECORD = sizeof(struct page_record) };

static VALUE client_gone;

static size_t padded(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* ---- pages */

struct page_wait {
    struct seat *seat;
    _Atomic bool is_interrupted;
};

static void *wait_for_page(void *memory)
{
    struct page_wait *wait = memory;
    struct seat *seat = wait->seat;
    const struct board *board = &seat->place->board;
    uint32_t bell = bell_prepare(board, seat->thread, BOARD_SLEEP_PAGE);

    if (atomic_load(&wait->is_interrupted) || page_can_write(&seat->writer) ||
        page_is_lost(&seat->writer))
        bell_stay(board, seat->thread);
    else
        (void)bell_sleep(board, seat->thread, bell, -1);
    return NULL;
}

static void interrupt_page_wait(void *memory)
{
    struct page_wait *wait = memory;

    atomic_store(&wait->is_interrupted, true);
    bell_ring_thread(&wait->seat->place->board, wait->seat->thread);
}

static bool is_held_still(const struct seat *seat, int64_t slot, uint32_t turn)
{
    return seat->slot == slot && seat->turn == turn;
}

/* Waits until the current page may be filled. False when nobody wants the answer any more. Raises when
 * the thread is interrupted, or when the request was answered meanwhile by another thread. */
static bool get_page(struct seat *seat)
{
    int64_t slot = seat->slot;
    uint32_t turn = seat->turn;

    for (;;) {
        struct page_wait wait = {.seat = seat};

        if (page_is_lost(&seat->writer))
            return false;
        if (page_can_write(&seat->writer))
            return true;
        rb_nogvl(wait_for_page, &wait, interrupt_page_wait, &wait, 0);
        if (!is_held_still(seat, slot, turn))
            rb_raise(rb_eIOError, "the request was answered");
    }
}

static void publish(struct seat *seat)
{
    if (seat->writer.used == 0)
        return;
    if (!seat->is_published)
        slot_advance(&seat->place->board, (uint32_t)seat->slot, seat->thread, SLOT_REPLYING);
    seat->is_published = true;
    page_publish(&seat->writer);
}

/* A page with room for at least `size` bytes of payload; false when nobody wants the answer. */
static bool get_room(struct seat *seat, size_t size)
{
    for (;;) {
        if (!get_page(seat))
            return false;
        if (page_room(&seat->writer) >= size && page_room(&seat->writer) > 0)
            return true;
        publish(seat);
    }
}

/* Puts the staged head, over several pages when it must be. */
static bool put_head(struct seat *seat, uint8_t flags)
{
    struct page_head start = {(uint16_t)seat->head.status, (uint16_t)seat->head.field_count};
    struct span rest = buf_span(&seat->head.bytes);

    memcpy((char *)rest.data, &start, sizeof(start));
    while (rest.size > 0) {
        size_t size = rest.size;
        uint8_t more = 0;

        if (!get_room(seat, size < 1024 ? size : 1024))
            return false;
        if (size > page_room(&seat->writer)) {
            size = page_room(&seat->writer);
            more = PAGE_MORE;
        }
        memcpy(page_put(&seat->writer, PAGE_HEAD, flags | more, (uint32_t)size), rest.data, size);
        rest = span_skip(rest, size);
    }
    seat->is_head_put = true;
    return true;
}

/* Puts the bytes of a String; it may change while the thread waits, so its memory is looked at anew. */
static bool put_string(struct seat *seat, VALUE string)
{
    size_t done = 0;

    while (done < (size_t)RSTRING_LEN(string)) {
        size_t size;

        if (!get_room(seat, 1))
            return false;
        if (done >= (size_t)RSTRING_LEN(string))
            break;
        size = (size_t)RSTRING_LEN(string) - done;
        if (size > page_room(&seat->writer))
            size = page_room(&seat->writer);
        memcpy(page_put(&seat->writer, PAGE_DATA, 0, (uint32_t)size), RSTRING_PTR(string) + done,
               size);
        done += size;
    }
    return true;
}

/* Ends the answer and gives the request back. */
static void finish(struct seat *seat, bool is_cut)
{
    /* An END record is nothing but its header. */
    if (!seat->is_hijacked && get_room(seat, 0)) {
        (void)page_put(&seat->writer, PAGE_END, is_cut ? PAGE_CUT : 0, 0);
        publish(seat);
    }
    seat->writer.used = 0;
    seat_release(seat);
}

/* ---- the common answer: an Array of Strings */

static bool is_plain_array(VALUE body)
{
    if (!RB_TYPE_P(body, T_ARRAY) || RBASIC_CLASS(body) != rb_cArray)
        return false;
    for (long i = 0; i < RARRAY_LEN(body); i++)
        if (!RB_TYPE_P(RARRAY_AREF(body, i), T_STRING))
            return false;
    return true;
}

static size_t array_bytes(VALUE body)
{
    size_t total = 0;

    for (long i = 0; i < RARRAY_LEN(body); i++)
        total += (size_t)RSTRING_LEN(RARRAY_AREF(body, i));
    return total;
}

/* Head, body and end in the current page. */
static void put_whole(struct seat *seat, uint8_t flags, VALUE body, size_t total)
{
    put_head(seat, flags);
    if (total > 0) {
        char *out = page_put(&seat->writer, PAGE_DATA, 0, (uint32_t)total);

        for (long i = 0; i < RARRAY_LEN(body); i++) {
            VALUE part = RARRAY_AREF(body, i);

            memcpy(out, RSTRING_PTR(part), (size_t)RSTRING_LEN(part));
            out += RSTRING_LEN(part);
        }
    }
    (void)page_put(&seat->writer, PAGE_END, 0, 0);
    publish(seat);
    seat_release(seat);
}

static void put_in_parts(struct seat *seat, uint8_t flags, VALUE body)
{
    bool is_wanted = put_head(seat, flags);

    for (long i = 0; is_wanted && i < RARRAY_LEN(body); i++)
        is_wanted = put_string(seat, RARRAY_AREF(body, i));
    finish(seat, false);
}

static uint8_t page_flags(const struct head *head)
{
    return head->flags & HEAD_CLOSE ? PAGE_CLOSE : 0;
}

static void stage(struct seat *seat, VALUE status, VALUE headers)
{
    uint32_t number = head_status(status);

    if (number == 0)
        rb_raise(rb_eArgError, "%+" PRIsVALUE " is no status of an answer", status);
    head_begin(seat, &seat->head, number);
    head_add_all(seat, &seat->head, headers);
}

/* Seat#answer(status, headers, body): sends the whole answer when the body is an Array of Strings, and
 * returns true; otherwise does nothing and returns false. */
static VALUE seat_answer(VALUE self, VALUE status, VALUE headers, VALUE body)
{
    struct seat *seat = seat_get_held(self);
    struct head *head = &seat->head;
    size_t total, need;

    if (!is_plain_array(body) || !RB_TYPE_P(headers, T_HASH) || seat->is_hijacked)
        return Qfalse;
    stage(seat, status, headers);
    if (head->flags & (HEAD_CHUNKED | HEAD_HIJACK | HEAD_EVENTS | HEAD_UPGRADE | HEAD_FILE))
        return Qfalse;
    if (!is_plain_array(body)) /* to_s of a header value is the application's code */
        return Qfalse;
    total = array_bytes(body);
    if (!(head->flags & HEAD_LENGTH) && head->status != 204 && head->status != 304 &&
        (total > 0 || !(head->flags & HEAD_BODYLESS)))
        head_add_length(head, total);
    if (head->flags & HEAD_BODYLESS)
        total = 0;
    if (!get_page(seat)) {
        finish(seat, true);
        return Qtrue;
    }
    need = padded(head->bytes.size) + RECORD + (total > 0 ? RECORD + padded(total) : 0);
    if (need <= page_room(&seat->writer))
        put_whole(seat, page_flags(head), body, total);
    else
        put_in_parts(seat, page_flags(head), total > 0 ? rb_ary_dup(body) : rb_ary_new());
    RB_GC_GUARD(body);
    return Qtrue;
}

/* ---- the steps of every other answer; Leat::Response decides their order */

/* Seat#stage(status, headers): prepares the head and returns what was found (enum head_flag). */
static VALUE seat_stage(VALUE self, VALUE status, VALUE headers)
{
    struct seat *seat = seat_get_held(self);

    stage(seat, status, headers);
    return UINT2NUM(seat->head.flags);
}

/* Seat#head(length, stream): puts the staged head; length nil = none is added. */
static VALUE seat_head(VALUE self, VALUE length, VALUE is_stream)
{
    struct seat *seat = seat_get_held(self);
    uint8_t flags = page_flags(&seat->head) | (RTEST(is_stream) ? PAGE_STREAM : 0);

    if (seat->is_head_put || seat->is_hijacked)
        rb_raise(rb_eIOError, "the head was sent");
    if (!NIL_P(length))
        head_add_length(&seat->head, NUM2ULL(length));
    if (!put_head(seat, flags))
        rb_raise(client_gone, "the client left");
    return Qnil;
}

/* Seat#write(string): raises Leat::ClientGone when nobody wants the answer any more. */
static VALUE seat_write(VALUE self, VALUE string)
{
    struct seat *seat = seat_get_held(self);

    StringValue(string);
    if (seat->is_hijacked)
        rb_raise(rb_eIOError, "the connection was hijacked");
    if (!put_string(seat, string) || page_is_lost(&seat->writer))
        rb_raise(client_gone, "the client left");
    RB_GC_GUARD(string);
    return Qnil;
}

/* Seat#flush: what was written goes to the client now. */
static VALUE seat_flush(VALUE self)
{
    publish(seat_get_held(self));
    return Qnil;
}

/* Seat#pass(descriptor): gives the front the file of the answer; false when it does not take it. */
static VALUE seat_pass(VALUE self, VALUE fd)
{
    struct seat *seat = seat_get_held(self);

    return descriptor_ask(seat, DESCRIPTOR_FILE, NUM2INT(fd)) == 0 ? Qtrue : Qfalse;
}

/* Seat#file(offset, size): puts the file that was passed. */
static VALUE seat_file(VALUE self, VALUE offset, VALUE size)
{
    struct seat *seat = seat_get_held(self);
    struct page_file file = {NUM2ULL(offset), NUM2ULL(size)};

    if (!get_room(seat, sizeof(file)))
        rb_raise(client_gone, "the client left");
    memcpy(page_put(&seat->writer, PAGE_FILE, 0, sizeof(file)), &file, sizeof(file));
    return Qnil;
}

/* A 101 must be asked for and name its protocol (RFC 9110 7.8, 15.2.2); a client that asked for one in
 * particular gets that. */
static void check_upgrade(struct seat *seat, VALUE protocol)
{
    if (!(seat->head.flags & HEAD_UPGRADE))
        return;
    if (!(seat->request_flags & SLOT_FLAG_UPGRADE))
        rb_raise(rb_eArgError, "101, but the client asked for no other protocol");
    if (!(seat->head.flags & HEAD_PROTOCOL))
        head_add(seat, &seat->head, rb_str_new_cstr("upgrade"), protocol);
}

/* The head, if one is staged for it, and the record that ends all answering. */
static bool put_tunnel(struct seat *seat, bool has_head, bool is_chunked)
{
    uint8_t flags = PAGE_RAW | (is_chunked ? PAGE_CHUNKED : 0);

    if (has_head && !put_head(seat, flags | page_flags(&seat->head)))
        return false;
    if (!get_room(seat, 0))
        return false;
    (void)page_put(&seat->writer, PAGE_TUNNEL, 0, 0);
    publish(seat);
    return true;
}

/* Takes the connection: a descriptor that the caller owns. Other threads run while the front answers, and
 * one of them may have answered the request meanwhile. */
static VALUE take_connection(struct seat *seat, bool has_head, bool is_chunked)
{
    int64_t slot = seat->slot;
    uint32_t turn = seat->turn;
    int fd;

    if (seat->is_hijacked || seat->is_head_put)
        rb_raise(rb_eIOError, "the connection was hijacked or the request answered");
    /* A page first, so that nothing has to be waited for once the descriptor is there. */
    fd = get_page(seat) ? descriptor_ask(seat, DESCRIPTOR_HIJACK, -1) : -ESTALE;
    if (fd == -ESTALE)
        rb_raise(client_gone, "the client left");
    if (fd < 0)
        rb_syserr_fail(-fd, "the connection cannot be hijacked");
    if (!is_held_still(seat, slot, turn) || seat->is_head_put ||
        !put_tunnel(seat, has_head, is_chunked)) {
        (void)close(fd);
        rb_raise(client_gone, "the client left");
    }
    seat->is_hijacked = true;
    return INT2NUM(fd);
}

/* Seat#hijack: the connection as it is; whatever the application returns is not sent. */
static VALUE seat_hijack(VALUE self)
{
    return take_connection(seat_get_held(self), false, false);
}

/* Seat#tunnel(protocol, chunked): the connection behind the staged head. protocol: the one of a 101 that
 * names none; chunked: the caller will frame what it writes. */
static VALUE seat_tunnel(VALUE self, VALUE protocol, VALUE is_chunked)
{
    struct seat *seat = seat_get_held(self);

    check_upgrade(seat, protocol);
    return take_connection(seat, true, RTEST(is_chunked));
}

static VALUE seat_is_hijacked(VALUE self)
{
    return seat_get(self)->is_hijacked ? Qtrue : Qfalse;
}

/* Seat#finish(cut): ends the answer; the request is not held any more. */
static VALUE seat_finish(VALUE self, VALUE is_cut)
{
    finish(seat_get_held(self), RTEST(is_cut));
    return Qnil;
}

/* Seat#take_back: forgets an answer of which nothing was sent; false when something was. */
static VALUE seat_take_back(VALUE self)
{
    struct seat *seat = seat_get_held(self);

    if (seat->is_hijacked || (seat->is_published && seat->is_head_put))
        return Qfalse;
    seat->writer.used = 0;
    seat->is_head_put = false;
    return Qtrue;
}

/* Seat#head_put?: the final head was decided; no hint may follow. */
static VALUE seat_is_head_put(VALUE self)
{
    return seat_get(self)->is_head_put ? Qtrue : Qfalse;
}

/* Seat#hints(headers): sends a 103 (RFC 8297), from the thread that serves the request only: a thread
 * that outlives its request must not write into the next. */
static VALUE seat_hints(VALUE self, VALUE headers)
{
    struct seat *seat = seat_get(self);
    struct span bytes;
    struct page_head start;

    if (ext_is_foreign() || seat->slot < 0 || seat->is_head_put || seat->is_hijacked ||
        seat->thread_object != rb_thread_current() || (seat->request_flags & SLOT_FLAG_HTTP10))
        return Qnil;
    head_begin(seat, &seat->head, 103);
    head_add_all(seat, &seat->head, headers);
    bytes = buf_span(&seat->head.bytes);
    if (seat->head.field_count == 0 || bytes.size > BOARD_PAGE_BYTES / 2 ||
        !get_room(seat, bytes.size))
        return Qnil;
    start = (struct page_head){103, (uint16_t)seat->head.field_count};
    memcpy((char *)bytes.data, &start, sizeof(start));
    memcpy(page_put(&seat->writer, PAGE_INTERIM, 0, (uint32_t)bytes.size), bytes.data, bytes.size);
    publish(seat);
    return Qnil;
}

void init_reply(VALUE seat_class)
{
    VALUE leat = rb_const_get(rb_cObject, rb_intern("Leat"));

    client_gone =
        rb_define_class_under(leat, "ClientGone", rb_const_get(rb_mErrno, rb_intern("EPIPE")));
    rb_gc_register_mark_object(client_gone);
    rb_define_method(seat_class, "answer", seat_answer, 3);
    rb_define_method(seat_class, "stage", seat_stage, 2);
    rb_define_method(seat_class, "head", seat_head, 2);
    rb_define_method(seat_class, "write", seat_write, 1);
    rb_define_method(seat_class, "flush", seat_flush, 0);
    rb_define_method(seat_class, "pass", seat_pass, 1);
    rb_define_method(seat_class, "file", seat_file, 2);
    rb_define_method(seat_class, "hijack", seat_hijack, 0);
    rb_define_method(seat_class, "tunnel", seat_tunnel, 2);
    rb_define_method(seat_class, "hijacked?", seat_is_hijacked, 0);
    rb_define_method(seat_class, "finish", seat_finish, 1);
    rb_define_method(seat_class, "take_back", seat_take_back, 0);
    rb_define_method(seat_class, "head_put?", seat_is_head_put, 0);
    rb_define_method(seat_class, "hints", seat_hints, 1);
    rb_define_const(seat_class, "LENGTH", INT2FIX(HEAD_LENGTH));
    rb_define_const(seat_class, "EVENTS", INT2FIX(HEAD_EVENTS));
    rb_define_const(seat_class, "CHUNKED", INT2FIX(HEAD_CHUNKED));
    rb_define_const(seat_class, "HIJACK", INT2FIX(HEAD_HIJACK));
    rb_define_const(seat_class, "BODYLESS", INT2FIX(HEAD_BODYLESS));
    rb_define_const(seat_class, "UPGRADE", INT2FIX(HEAD_UPGRADE));
    rb_define_const(seat_class, "FILE", INT2FIX(HEAD_FILE));
}
