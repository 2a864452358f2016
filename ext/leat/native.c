/* SPDX-License-Identifier: MIT */
#include "leat_ext.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"

#include <dirent.h>
#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <poll.h>
#include <pthread.h>
#include <ruby/io.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 65536, EXIT_WITHOUT_MASTER = 70, WATCH_STACK_BYTES = 65536 };

/* ---- messages with descriptors */

static VALUE fd_array(const int *fds, size_t count)
{
    VALUE list = rb_ary_new_capa((long)count);

    for (size_t i = 0; i < count; i++)
        rb_ary_push(list, INT2NUM(fds[i]));
    return list;
}

/* Native.receive(socket): waits for one message and returns it with its descriptors, [text, [fd, ...]],
 * or nil at the end of file. */
static VALUE native_receive(VALUE self, VALUE socket)
{
    int fds[FD_PASS_MAX];
    size_t count = 0;
    char *text;
    ssize_t size;
    VALUE result;

    (void)self;
    rb_thread_wait_fd(NUM2INT(socket));
    text = ALLOC_N(char, MESSAGE_BYTES);
    size = fd_receive(NUM2INT(socket), text, MESSAGE_BYTES, fds, FD_PASS_MAX, &count);
    result = size > 0 ? rb_ary_new_from_args(2, rb_utf8_str_new(text, size), fd_array(fds, count))
                      : Qnil;
    xfree(text);
    if (size < 0 && size != -ECONNRESET)
        rb_syserr_fail((int)-size, "control message");
    return result;
}

/* Native.send(socket, text, [fd, ...]): sends one message. */
static VALUE native_send(VALUE self, VALUE socket, VALUE text, VALUE list)
{
    int fds[FD_PASS_MAX], error;
    long count;

    (void)self;
    StringValue(text);
    Check_Type(list, T_ARRAY);
    count = RARRAY_LEN(list);
    if (count > FD_PASS_MAX)
        rb_raise(rb_eArgError, "too many descriptors");
    for (long i = 0; i < count; i++)
        fds[i] = NUM2INT(rb_ary_entry(list, i));
    error = fd_send(NUM2INT(socket), span_make(RSTRING_PTR(text), (size_t)RSTRING_LEN(text)), fds,
                    (size_t)count);
    if (error < 0)
        rb_syserr_fail(-error, "control message");
    return Qnil;
}

/* Native.offer(socket, text): sends one message if the socket takes it now; false when it does not. */
static VALUE native_offer(VALUE self, VALUE socket, VALUE text)
{
    ssize_t sent;

    (void)self;
    StringValue(text);
    do
        sent = send(NUM2INT(socket), RSTRING_PTR(text), (size_t)RSTRING_LEN(text),
                    MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent == -1 && errno == EINTR);
    if (sent == -1 && errno != EAGAIN)
        rb_sys_fail("message to the server");
    return sent == -1 ? Qfalse : Qtrue;
}

/* Native.identity(descriptor): what it leads to, as a pair of numbers that no other socket or file
 * has; nil when it is closed. */
static VALUE native_identity(VALUE self, VALUE fd)
{
    struct stat info;

    (void)self;
    if (fstat(NUM2INT(fd), &info) == -1)
        return Qnil;
    return rb_ary_new_from_args(2, ULL2NUM(info.st_dev), ULL2NUM(info.st_ino));
}

/* Native.pair: two connected SOCK_SEQPACKET sockets. */
static VALUE native_pair(VALUE self)
{
    int fds[2];

    (void)self;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1)
        rb_sys_fail("socketpair");
    return fd_array(fds, 2);
}

/* Native.close(descriptor, ...): closes what no IO object owns. */
static VALUE native_close(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    for (int i = 0; i < argc; i++)
        (void)close(NUM2INT(argv[i]));
    return Qnil;
}

/* Native.keep(descriptor, bool): whether the descriptor survives exec. */
static VALUE native_keep(VALUE self, VALUE fd, VALUE is_kept)
{
    (void)self;
    if (fd_set_cloexec(NUM2INT(fd), !RTEST(is_kept)) < 0)
        rb_sys_fail("fcntl");
    return Qnil;
}

/* ---- the life of master */

static void *watch_pipe(void *memory)
{
    struct pollfd pipe = {.fd = (int)(intptr_t)memory, .events = POLLIN};

    while (poll(&pipe, 1, -1) <= 0)
        ;
    _exit(EXIT_WITHOUT_MASTER);
}

/* Native.watch(pipe): a plain thread, which needs no GVL, ends this process when the pipe does. */
static VALUE native_watch(VALUE self, VALUE fd)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, former;
    int error;

    (void)self;
    (void)sigfillset(&all);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, WATCH_STACK_BYTES);
    (void)pthread_sigmask(SIG_SETMASK, &all, &former);
    error = pthread_create(&thread, &attributes, watch_pipe, (void *)(intptr_t)NUM2INT(fd));
    (void)pthread_sigmask(SIG_SETMASK, &former, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (error != 0)
        rb_syserr_fail(error, "the thread that watches the server");
    return Qnil;
}

/* Native.die_with_parent: the kernel kills this process when its parent ends. */
static VALUE native_die_with_parent(VALUE self)
{
    (void)self;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1)
        rb_sys_fail("prctl");
    return Qnil;
}

/* Native.private_bytes: of this process. */
static VALUE native_private_bytes(VALUE self)
{
    (void)self;
    return ULL2NUM(measure_private_bytes());
}

/* Native.trim: gives free memory of the allocator back to the system, where it can. */
static VALUE native_trim(VALUE self)
{
    (void)self;
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
    return Qnil;
}

/* ---- what an application left open */

static bool is_connected_stream(int fd)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    int type = 0;
    socklen_t type_size = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM &&
           getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
}

/* Native.streams: descriptors of this process's connected stream sockets. */
static VALUE native_streams(VALUE self)
{
    DIR *folder = opendir("/proc/self/fd");
    VALUE list = rb_ary_new();
    struct dirent *entry;
    uint64_t fd;

    (void)self;
    if (!folder)
        rb_sys_fail("/proc/self/fd");
    while ((entry = readdir(folder)))
        if (num_decimal(span_of(entry->d_name), &fd) && fd > 2 && is_connected_stream((int)fd))
            rb_ary_push(list, INT2FIX((int)fd));
    (void)closedir(folder);
    return list;
}

/* Native.gone?(descriptor): the other end of the stream was closed, or failed. */
static VALUE native_is_gone(VALUE self, VALUE fd)
{
    struct pollfd stream = {.fd = NUM2INT(fd)};

    (void)self;
    return poll(&stream, 1, 0) == 1 && (stream.revents & (POLLHUP | POLLERR | POLLNVAL)) ? Qtrue
                                                                                         : Qfalse;
}

void init_native(VALUE leat)
{
    VALUE native = rb_define_module_under(leat, "Native");

    rb_define_singleton_method(native, "receive", native_receive, 1);
    rb_define_singleton_method(native, "send", native_send, 3);
    rb_define_singleton_method(native, "offer", native_offer, 2);
    rb_define_singleton_method(native, "identity", native_identity, 1);
    rb_define_singleton_method(native, "pair", native_pair, 0);
    rb_define_singleton_method(native, "close", native_close, -1);
    rb_define_singleton_method(native, "keep", native_keep, 2);
    rb_define_singleton_method(native, "watch", native_watch, 1);
    rb_define_singleton_method(native, "die_with_parent", native_die_with_parent, 0);
    rb_define_singleton_method(native, "private_bytes", native_private_bytes, 0);
    rb_define_singleton_method(native, "trim", native_trim, 0);
    rb_define_singleton_method(native, "streams", native_streams, 0);
    rb_define_singleton_method(native, "gone?", native_is_gone, 1);
}
