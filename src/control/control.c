/* SPDX-License-Identifier: MIT */
#include "control/control.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "loop/listen.h"
#include "loop/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE_BYTES = 1024, CALLS_MAX = 64 };

struct control {
    struct control_options options;
    struct watch watch;
    struct list calls;
    unsigned size;
};

/* One connection. `asked`: the owner holds it until it answers; `gone`: the caller has hung up. */
struct control_call {
    struct list link;
    struct control *control;
    struct watch watch;
    int fd;
    uid_t uid;
    char line[LINE_BYTES];
    size_t used;
    bool asked;
    bool gone;
    bool answered;
    bool hold;
    struct buf answer;
};

static const char *const words[] = {
#define ROW(constant, word, text) [CONTROL_##constant] = word,
#include "control/command.def"
#undef ROW
};

static void close_call(struct control_call *call)
{
    if (call->fd == -1)
        return;
    loop_unwatch(&call->watch);
    fd_close(&call->fd);
    call->control->size--;
}

static void free_call(struct control_call *call)
{
    close_call(call);
    list_remove(&call->link);
    buf_done(&call->answer);
    free(call);
}

/* The caller is gone, or has all it gets. Whoever still owes an answer may give it; then it ends. */
static void end_call(struct control_call *call)
{
    if (call->asked && !call->answered) {
        call->gone = true;
        close_call(call);
    } else {
        free_call(call);
    }
}

static void send_answer(struct control_call *call)
{
    while (call->answer.size) {
        struct span rest = buf_span(&call->answer);
        ssize_t sent = send(call->fd, rest.data, rest.size, MSG_NOSIGNAL);
        if (sent == -1 && errno == EINTR)
            continue;
        if (sent == -1 && errno == EAGAIN) {
            (void)loop_rewatch(&call->watch, EPOLLOUT);
            return;
        }
        if (sent == -1) {
            free_call(call);
            return;
        }
        buf_consume(&call->answer, (size_t)sent);
    }
    if (call->hold)
        (void)loop_rewatch(&call->watch, 0);
    else
        free_call(call);
}

void control_answer(struct control_call *call, bool ok, struct span text, bool hold)
{
    call->answered = true;
    call->hold = hold;
    if (call->gone) {
        free_call(call);
        return;
    }
    if (buf_append(&call->answer, ok ? span_of("ok\n") : span_of("failed\n")) != 0 ||
        buf_append(&call->answer, text) != 0) {
        free_call(call);
        return;
    }
    send_answer(call);
}

static void run_line(struct control_call *call, struct span line)
{
    struct span word = span_split(&line, ' ');
    const struct control_options *options = &call->control->options;

    call->asked = true;
    for (unsigned i = 0; i < CONTROL_COMMANDS; i++) {
        if (!span_is(word, words[i]))
            continue;
        options->on_command(options->context, (enum control_command)i, span_trim(line), call);
        return;
    }
    control_answer(call, false, span_of("unknown command\n"), false);
}

static void on_call(struct watch *watch, uint32_t events)
{
    struct control_call *call = CONTAINER_OF(watch, struct control_call, watch);
    ssize_t size;
    size_t end;

    if (call->answered || call->asked) {
        if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP))
            end_call(call);
        else if (call->answered && (events & EPOLLOUT))
            send_answer(call);
        return;
    }
    size = read(call->fd, call->line + call->used, sizeof call->line - call->used);
    if (size == -1 && (errno == EINTR || errno == EAGAIN))
        return;
    if (size <= 0) {
        end_call(call);
        return;
    }
    call->used += (size_t)size;
    end = span_find(span_make(call->line, call->used), '\n');
    if (end < call->used) {
        /* From now on only a hang-up is of interest. */
        (void)loop_rewatch(&call->watch, EPOLLRDHUP);
        run_line(call, span_make(call->line, end));
    } else if (call->used == sizeof call->line) {
        end_call(call);
    }
}

static bool may_call(const struct control *control, int fd, uid_t *ret_uid)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == -1)
        return false;
    *ret_uid = peer.uid;
    return peer.uid == 0 || peer.uid == geteuid() || peer.uid == control->options.also;
}

static struct control_call *add_call(struct control *control, int fd, uid_t uid, uint32_t events)
{
    struct control_call *call = must_alloc(1, sizeof *call);

    *call = (struct control_call){.control = control, .fd = fd, .uid = uid};
    list_init(&call->link);
    list_push_back(&control->calls, &call->link);
    control->size++;
    if (loop_watch(control->options.loop, &call->watch, fd, events, on_call) == 0)
        return call;
    free_call(call);
    return NULL;
}

static void on_listener(struct watch *watch, uint32_t events)
{
    struct control *control = CONTAINER_OF(watch, struct control, watch);
    uid_t uid;
    int fd;

    (void)events;
    while ((fd = listen_accept(control->options.listener, NULL)) >= 0) {
        if (control->size >= CALLS_MAX || !may_call(control, fd, &uid)) {
            if (log_allow(span_of("control-refused"), 60, NULL))
                log_warn("control: a caller was refused (wrong user, or too many at once)");
            (void)close(fd);
            continue;
        }
        (void)add_call(control, fd, uid, EPOLLIN | EPOLLRDHUP);
    }
}

struct control *control_new(const struct control_options *options)
{
    struct control *control = must_alloc(1, sizeof *control);

    *control = (struct control){.options = *options};
    list_init(&control->calls);
    if (loop_watch(options->loop, &control->watch, options->listener, EPOLLIN, on_listener) != 0) {
        free(control);
        return NULL;
    }
    return control;
}

void control_free(struct control *control)
{
    if (!control)
        return;
    loop_unwatch(&control->watch);
    list_for_each_safe (link, &control->calls) {
        struct control_call *call = CONTAINER_OF(link, struct control_call, link);
        /* One that is held is closed by the end of the process, which is what its caller waits for. */
        if (call->answered && call->hold) {
            loop_unwatch(&call->watch);
            call->fd = -1;
        }
        free_call(call);
    }
    free(control);
}

uid_t control_caller(const struct control_call *call)
{
    return call->uid;
}

unsigned control_waiting(const struct control *control)
{
    unsigned count = 0;

    list_for_each (link, &control->calls) {
        const struct control_call *call = CONTAINER_OF(link, struct control_call, link);
        count += call->asked && !call->answered;
    }
    return count;
}

bool control_is_busy(const struct control *control)
{
    list_for_each (link, &control->calls)
        if (CONTAINER_OF(link, struct control_call, link)->answer.size)
            return true;
    return false;
}

/* A caller sends its line whole, so what was read of one that has not ended is not worth keeping. */
void control_save(const struct control *control, const struct saved_out *out)
{
    uint32_t number = 0;

    list_for_each (link, &control->calls) {
        const struct control_call *call = CONTAINER_OF(link, struct control_call, link);
        struct saved_out item = saved_out_item(out, "call", number);
        if (call->fd == -1 || call->answered || (!call->asked && call->used))
            continue;
        saved_put_fd(&item, "fd", call->fd);
        saved_put_number(&item, "uid", call->uid);
        saved_put_number(&item, "asked", call->asked);
        number++;
    }
}

void control_adopt(struct control *control, const struct saved_in *in,
                   void (*on_asked)(void *context, struct control_call *call))
{
    for (uint32_t number = 0; number < CALLS_MAX; number++) {
        struct saved_in item = saved_item(in, "call", number);
        bool asked = saved_number(&item, "asked", 1, 0) == 1;
        uid_t uid = (uid_t)saved_number(&item, "uid", UINT32_MAX, UINT32_MAX);
        int fd = saved_fd(&item, "fd");
        struct control_call *call;
        if (fd == -1)
            return;
        call = add_call(control, fd, uid, asked ? EPOLLRDHUP : EPOLLIN | EPOLLRDHUP);
        if (!call || !asked)
            continue;
        call->asked = true;
        on_asked(control->options.context, call);
    }
}
