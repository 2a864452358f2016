/* SPDX-License-Identifier: MIT */
#include "leat_ext.h"

#include <errno.h>
#include <ruby/encoding.h>
#include <ruby/io.h>
#include <ruby/thread.h>
#include <sys/uio.h>
#include <unistd.h>

/* A request's body: complete, binary, rewindable. A small one is read where it lies, in the slot, as
 * long as the request is held; a large one comes as a descriptor, asked for on the first read, and is
 * read by position, so that nobody shares an offset. */

enum { LINE_BLOCK = 16384 }; /* bytes read at once in search of a line's end */

struct input {
    VALUE seat_object;
    struct seat *seat;   /* NULL once the request has ended, and for the empty input */
    struct span inlined; /* in the slot; of use while seat is set */
    uint64_t size;
    uint64_t at;
    int fd; /* of a large body; -1 = not asked for yet */
    bool is_file;
    bool is_closed;
};

static VALUE input_class;
static VALUE empty;

static void input_mark(void *memory)
{
    rb_gc_mark(((struct input *)memory)->seat_object);
}

static void input_free(void *memory)
{
    struct input *input = memory;

    if (input->fd != -1)
        (void)close(input->fd);
    xfree(input);
}

static size_t input_memory(const void *memory)
{
    (void)memory;
    return sizeof(struct input);
}

static const rb_data_type_t input_type = {
    .wrap_struct_name = "Leat::Input",
    .function = {.dmark = input_mark, .dfree = input_free, .dsize = input_memory},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE input_make(struct input **ret_input)
{
    struct input *input;
    VALUE self = TypedData_Make_Struct(input_class, struct input, &input_type, input);

    input->fd = -1;
    input->seat_object = Qnil;
    *ret_input = input;
    return self;
}

VALUE input_new(struct seat *seat)
{
    const struct board *board = &seat->place->board;
    const struct slot_request *request = slot_request(board, (uint32_t)seat->slot);
    struct input *input;
    VALUE self = input_make(&input);

    input->seat = seat;
    input->size = request->body_bytes;
    input->is_file = request->body_kind == SLOT_BODY_FILE;
    if (!input->is_file) {
        struct slot_span part = {request->body_offset, (uint32_t)request->body_bytes};

        input->inlined = slot_text(board, (uint32_t)seat->slot, part);
        input->size = input->inlined.size;
    }
    return self;
}

VALUE input_empty(void)
{
    return empty;
}

/* The seat is only reachable while it holds this request, so the object need not keep it alive. */
void input_end(VALUE self)
{
    struct input *input;

    if (NIL_P(self))
        return;
    input = rb_check_typeddata(self, &input_type);
    input->seat = NULL;
    if (input->fd != -1)
        (void)close(input->fd);
    input->fd = -1;
}

static struct input *input_open(VALUE self)
{
    struct input *input = rb_check_typeddata(self, &input_type);

    if (input->is_closed)
        rb_raise(rb_eIOError, "closed stream");
    if (input->size > 0 && (!input->seat || ext_is_foreign()))
        rb_raise(rb_eIOError, "the request has ended");
    if (input->is_file && input->fd == -1) {
        int fd = descriptor_ask(input->seat, DESCRIPTOR_BODY, -1);

        if (fd < 0)
            rb_syserr_fail(-fd, "the request's body");
        input->fd = fd;
    }
    return input;
}

/* A copy of this size takes less time than giving the GVL up and taking it back among other threads. */
enum { AT_ONCE = 128 * 1024 };

struct file_read {
    int fd;
    char *out;
    size_t size;
    uint64_t offset;
    ssize_t result;
};

/* What was written a moment ago is in the system's memory. False where that cannot be told, or where the
 * file would have to be waited for. */
static bool read_at_once(struct file_read *read)
{
    struct iovec part = {read->out, read->size};

    if (read->size > AT_ONCE)
        return false;
    read->result = preadv2(read->fd, &part, 1, (off_t)read->offset, RWF_NOWAIT);
    return read->result > 0;
}

/* The file may not be in memory. */
static void *read_without_gvl(void *memory)
{
    struct file_read *read = memory;

    read->result = pread(read->fd, read->out, read->size, (off_t)read->offset);
    if (read->result == -1)
        read->result = -errno;
    return NULL;
}

/* A part of a String to be filled from the body's file. */
struct file_fill {
    const struct input *input;
    VALUE string;
    size_t start, size;
    uint64_t offset;
};

static VALUE fill_from_file(VALUE memory)
{
    const struct file_fill *fill = (const struct file_fill *)memory;
    char *out = RSTRING_PTR(fill->string) + fill->start;
    size_t done = 0;

    while (done < fill->size) {
        struct file_read part = {fill->input->fd, out + done, fill->size - done,
                                 fill->offset + done, 0};

        if (!read_at_once(&part))
            rb_thread_call_without_gvl(read_without_gvl, &part, RUBY_UBF_IO, NULL);
        if (part.result == -EINTR)
            continue;
        if (part.result < 0)
            rb_syserr_fail((int)-part.result, "the request's body");
        if (part.result == 0)
            rb_raise(rb_eEOFError, "the request's body is shorter than it was");
        done += (size_t)part.result;
    }
    return Qnil;
}

/* Fills the String, which has room for it, from `start` with size bytes of the body at `offset`. The
 * string is locked while other threads may run. */
static void read_at(VALUE self, VALUE out, size_t start, size_t size, uint64_t offset)
{
    struct input *input = rb_check_typeddata(self, &input_type);
    struct file_fill fill = {input, out, start, size, offset};

    if (size == 0)
        return;
    if (input->is_file) {
        rb_str_locktmp(out);
        rb_ensure(fill_from_file, (VALUE)&fill, rb_str_unlocktmp, out);
    } else {
        memcpy(RSTRING_PTR(out) + start, input->inlined.data + offset, size);
    }
}

static uint64_t rest(const struct input *input)
{
    return input->at < input->size ? input->size - input->at : 0;
}

/* The buffer of `read(length, buffer)`, emptied and made binary, or a new one, with room for size. */
static VALUE take_buffer(VALUE buffer, size_t size)
{
    if (NIL_P(buffer)) {
        buffer = rb_str_new(NULL, (long)size);
    } else {
        StringValue(buffer);
        rb_str_modify(buffer);
        rb_str_resize(buffer, (long)size);
    }
    return rb_enc_associate_index(buffer, rb_ascii8bit_encindex());
}

/* read([length [, buffer]]) as IO#read does it. */
static VALUE input_read(int argc, VALUE *argv, VALUE self)
{
    struct input *input = input_open(self);
    VALUE length, buffer, out;
    uint64_t size = rest(input);

    rb_scan_args(argc, argv, "02", &length, &buffer);
    if (!NIL_P(length)) {
        long wanted = NUM2LONG(length);

        if (wanted < 0)
            rb_raise(rb_eArgError, "negative length %ld given", wanted);
        if (size == 0 && wanted > 0) {
            if (!NIL_P(buffer))
                take_buffer(buffer, 0);
            return Qnil;
        }
        if ((uint64_t)wanted < size)
            size = (uint64_t)wanted;
    }
    out = take_buffer(buffer, size);
    read_at(self, out, 0, size, input->at);
    input->at += size;
    return out;
}

static VALUE input_readpartial(int argc, VALUE *argv, VALUE self)
{
    VALUE part;

    rb_check_arity(argc, 1, 2);
    part = input_read(argc, argv, self);
    if (NIL_P(part))
        rb_raise(rb_eEOFError, "end of file reached");
    return part;
}

/* The bytes from the position up to the next newline, which is part of them. */
static VALUE next_line(VALUE self)
{
    struct input *input = input_open(self);
    uint64_t left = rest(input);
    VALUE line = rb_str_new(NULL, 0);

    if (left == 0)
        return Qnil;
    while (left > 0) {
        size_t had = (size_t)RSTRING_LEN(line), block = left < LINE_BLOCK ? left : LINE_BLOCK;
        const char *end;

        rb_str_resize(line, (long)(had + block));
        read_at(self, line, had, block, input->at);
        end = memchr(RSTRING_PTR(line) + had, '\n', block);
        if (end) {
            size_t used = (size_t)(end + 1 - RSTRING_PTR(line));

            input->at += used - had;
            return rb_str_resize(line, (long)used);
        }
        input->at += block;
        left -= block;
    }
    return line;
}

/* gets takes no argument by the SPEC; `nil` and a limit are understood as IO#gets does. */
static VALUE input_gets(int argc, VALUE *argv, VALUE self)
{
    if (argc > 0 && NIL_P(argv[0])) {
        struct input *input = input_open(self);

        return rest(input) == 0 ? Qnil : input_read(0, NULL, self);
    }
    return next_line(self);
}

static VALUE input_each(VALUE self)
{
    VALUE line;

    RETURN_ENUMERATOR(self, 0, 0);
    while (!NIL_P(line = next_line(self)))
        rb_yield(line);
    return self;
}

static VALUE input_getbyte(VALUE self)
{
    VALUE one = INT2FIX(1), byte = input_read(1, &one, self);

    return NIL_P(byte) ? Qnil : INT2FIX((uint8_t)RSTRING_PTR(byte)[0]);
}

static VALUE input_rewind(VALUE self)
{
    input_open(self)->at = 0;
    return INT2FIX(0);
}

static VALUE input_pos(VALUE self)
{
    return ULL2NUM(input_open(self)->at);
}

static VALUE seek_to(struct input *input, long long at)
{
    if (at < 0)
        rb_syserr_fail(EINVAL, "a position before the start");
    if (input->size > 0)
        input->at = (uint64_t)at;
    return INT2FIX(0);
}

static VALUE input_set_pos(VALUE self, VALUE at)
{
    seek_to(input_open(self), NUM2LL(at));
    return at;
}

static VALUE input_seek(int argc, VALUE *argv, VALUE self)
{
    struct input *input = input_open(self);
    VALUE offset, whence;
    long long from = 0;

    rb_scan_args(argc, argv, "11", &offset, &whence);
    if (whence == INT2FIX(SEEK_CUR) || whence == ID2SYM(rb_intern("CUR")))
        from = (long long)input->at;
    else if (whence == INT2FIX(SEEK_END) || whence == ID2SYM(rb_intern("END")))
        from = (long long)input->size;
    return seek_to(input, from + NUM2LL(offset));
}

static VALUE input_is_eof(VALUE self)
{
    return rest(input_open(self)) == 0 ? Qtrue : Qfalse;
}

static VALUE input_size(VALUE self)
{
    struct input *input = rb_check_typeddata(self, &input_type);

    return ULL2NUM(input->size);
}

static VALUE input_close(VALUE self)
{
    struct input *input = rb_check_typeddata(self, &input_type);

    input->is_closed = self != empty;
    return Qnil;
}

static VALUE input_is_closed(VALUE self)
{
    struct input *input = rb_check_typeddata(self, &input_type);

    return input->is_closed ? Qtrue : Qfalse;
}

static VALUE input_encoding(VALUE self)
{
    (void)self;
    return rb_enc_from_encoding(rb_ascii8bit_encoding());
}

static VALUE input_set_encoding(int argc, VALUE *argv, VALUE self)
{
    (void)argc;
    (void)argv;
    return self;
}

static VALUE input_self(VALUE self)
{
    return self;
}

static VALUE input_true(VALUE self)
{
    (void)self;
    return Qtrue;
}

void init_input(VALUE leat)
{
    struct input *input;

    input_class = rb_define_class_under(leat, "Input", rb_cObject);
    rb_undef_alloc_func(input_class);
    rb_include_module(input_class, rb_mEnumerable);
    rb_define_method(input_class, "read", input_read, -1);
    rb_define_method(input_class, "readpartial", input_readpartial, -1);
    rb_define_method(input_class, "gets", input_gets, -1);
    rb_define_method(input_class, "each", input_each, 0);
    rb_define_method(input_class, "each_line", input_each, 0);
    rb_define_method(input_class, "getbyte", input_getbyte, 0);
    rb_define_method(input_class, "rewind", input_rewind, 0);
    rb_define_method(input_class, "pos", input_pos, 0);
    rb_define_method(input_class, "tell", input_pos, 0);
    rb_define_method(input_class, "pos=", input_set_pos, 1);
    rb_define_method(input_class, "seek", input_seek, -1);
    rb_define_method(input_class, "eof?", input_is_eof, 0);
    rb_define_method(input_class, "eof", input_is_eof, 0);
    rb_define_method(input_class, "size", input_size, 0);
    rb_define_method(input_class, "length", input_size, 0);
    rb_define_method(input_class, "close", input_close, 0);
    rb_define_method(input_class, "closed?", input_is_closed, 0);
    rb_define_method(input_class, "external_encoding", input_encoding, 0);
    rb_define_method(input_class, "set_encoding", input_set_encoding, -1);
    rb_define_method(input_class, "binmode", input_self, 0);
    rb_define_method(input_class, "binmode?", input_true, 0);

    empty = input_make(&input);
    rb_gc_register_mark_object(empty);
}
