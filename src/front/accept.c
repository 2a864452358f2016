/* SPDX-License-Identifier: MIT */
#include "front/accept.h"

#include "base/base.h"
#include "base/fd.h"
#include "base/log.h"
#include "front/drain.h"
#include "front/limits.h"
#include "front/proxy_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPT_MAX = 1024,   /* of one listener in a row; the rest is reported again */
    EMPTY_MAX = 65536,   /* of one that nobody new is let into: the largest backlog */
    PAUSE_MS = 100,      /* without descriptors */
    PAUSE_REFUSALS = 16, /* newcomers told so before each pause */
    EXHAUSTED_LOG_S = 60,
    PROXY_LOG_S = 60,
    HAND_OVER_GAP = 4 /* connections that another loop must have fewer of */
};

struct accept_listener {
    struct watch watch;
    struct front_loop *loop;
    const struct front_listener *listener;
    bool is_admin;
};

/* One connection in the loop's list, which is in order of use: the longest unused first. */
struct carrier {
    struct list link;
    struct front_loop *loop;
    struct h1_conn *conn;    /* NULL while it waits */
    struct proxy_wait *wait; /* for the PROXY header; NULL behind it */
    struct address *local;   /* that the header named, owned; else NULL */
    bool is_admin;
};

/* A socket on its way to another loop. */
struct handover {
    struct post_item item;
    struct front_loop *loop;
    const struct front_listener *listener;
    struct address peer;
    int fd;
};

/* ---- Connections ---- */

/* What asks the admin address is no client: it counts for the ceiling alone. */
static void count_open(struct front_loop *loop, bool is_admin)
{
    struct front *front = loop->front;
    uint32_t open = atomic_fetch_add_explicit(&loop->open, 1, memory_order_relaxed) + 1;

    trim_note(&loop->trim, open);
    front_count(&front->open, 1);
    if (is_admin)
        return;
    front_count(&front->options->counters->accepted, 1);
    front_count(&front_gauges(front)->open, 1);
    front_count(&front_gauges(front)->idle, 1);
}

static void count_closed(struct front_loop *loop, bool is_admin)
{
    struct front *front = loop->front;
    uint32_t open = atomic_fetch_sub_explicit(&loop->open, 1, memory_order_relaxed) - 1;

    trim_note(&loop->trim, open);
    front_uncount(&front->open, 1);
    if (is_admin)
        return;
    front_uncount(&front_gauges(front)->open, 1);
    front_uncount(&front_gauges(front)->idle, 1);
}

static void free_carrier(struct carrier *carrier)
{
    count_closed(carrier->loop, carrier->is_admin);
    list_remove(&carrier->link);
    free(carrier->local);
    free(carrier);
}

static void on_close(struct h1_conn *conn, void *owner)
{
    struct carrier *carrier = owner;
    struct front_loop *loop = carrier->loop;

    (void)conn;
    free_carrier(carrier);
    drain_check(loop);
}

static bool open_conn(struct carrier *carrier, const struct h1_options *options, int fd,
                      const struct address *peer, const struct address *local)
{
    struct front_loop *loop = carrier->loop;

    carrier->conn = h1_conn_open(options, loop->loop, fd, peer, local, on_close, carrier);
    /* One that was waiting in the backlog is owed an answer. */
    if (carrier->conn && (loop->draining || loop->leaving))
        h1_conn_drain(carrier->conn, true);
    return carrier->conn;
}

static void log_no_header(const struct address *peer)
{
    char text[INET6_ADDRSTRLEN + 8];
    unsigned suppressed = 0;

    (void)address_format_host(peer, text, sizeof(text));
    if (log_allow(span_of(text), PROXY_LOG_S, &suppressed))
        log_warn("proxy_protocol: %s began without a valid PROXY header, the connection is closed "
                 "(%u more since the last line)",
                 text, suppressed);
}

/* The header's addresses go with this call. */
static bool open_named(struct carrier *carrier, int fd, const struct address *peer,
                       const struct address *local)
{
    carrier->local = malloc(sizeof(*local));
    if (!carrier->local) {
        fd_close(&fd);
        return false;
    }
    *carrier->local = *local;
    return open_conn(carrier, &carrier->loop->h1, fd, peer, carrier->local);
}

static void on_header(void *data, enum proxy_wait_end end, int fd, const struct address *peer,
                      const struct address *local)
{
    struct carrier *carrier = data;
    struct front_loop *loop = carrier->loop;
    _Atomic uint64_t *refusals = loop->front->options->counters->refusals;

    carrier->wait = NULL;
    if (end == PROXY_WAIT_DONE && open_named(carrier, fd, peer, local))
        return;
    if (end == PROXY_WAIT_REFUSED) {
        log_no_header(peer);
        front_count(&refusals[REFUSAL_PROXY_HEADER], 1);
    } else if (end == PROXY_WAIT_LATE) {
        front_count(&refusals[REFUSAL_HEADER_TIMEOUT], 1);
    }
    free_carrier(carrier);
    drain_check(loop);
}

/* Unless the list of trusted proxies is set, the listener's key is trust in its peers. */
static bool open_wait(struct carrier *carrier, int fd, const struct address *peer,
                      const struct address *local)
{
    struct front_loop *loop = carrier->loop;
    const struct front *front = loop->front;
    struct proxy_wait_options options = {
        .peer = *peer,
        .local = local,
        .believed = !front->trust_named || forwarded_is_trusted(&front->trust, peer),
        .limit_ms = loop->h1.header_ms,
        .on_end = on_header,
        .data = carrier,
    };

    carrier->wait = proxy_wait_open(loop->loop, fd, &options);
    return carrier->wait;
}

static void open_client(struct front_loop *loop, const struct front_listener *listener, int fd,
                        const struct address *peer, bool is_admin)
{
    struct carrier *carrier = malloc(sizeof(*carrier));
    const struct h1_options *options = is_admin ? &loop->admin_h1 : &loop->h1;
    bool has_header = !is_admin && listener->config && listener->config->proxy_protocol;

    if (!carrier) {
        fd_close(&fd);
        return;
    }
    *carrier = (struct carrier){.loop = loop, .is_admin = is_admin};
    list_init(&carrier->link);
    list_push_back(&loop->connections, &carrier->link);
    count_open(loop, is_admin);
    if (!(has_header ? open_wait(carrier, fd, peer, &listener->address)
                     : open_conn(carrier, options, fd, peer, &listener->address)))
        free_carrier(carrier);
}

void accept_note_use(struct exchange *exchange)
{
    struct front_loop *loop = exchange->service_data;
    struct carrier *carrier = exchange->carrier;

    if (!carrier)
        return;
    list_remove(&carrier->link);
    list_push_back(&loop->connections, &carrier->link);
}

/* A connection that waits has no request to lose. */
static void close_wait(struct carrier *carrier)
{
    proxy_wait_close(carrier->wait);
    free_carrier(carrier);
}

void accept_each(struct front_loop *loop,
                 void (*visit)(struct front_loop *loop, struct h1_conn *conn))
{
    list_for_each_safe (link, &loop->connections) {
        struct carrier *carrier = CONTAINER_OF(link, struct carrier, link);

        if (carrier->conn)
            visit(loop, carrier->conn);
        else
            close_wait(carrier);
    }
}

/* ---- The ceiling ---- */

/* The longest idle ones go. Returns how many went. */
static uint64_t close_idle(struct front_loop *loop, uint64_t count)
{
    uint64_t closed = 0;

    list_for_each_safe (link, &loop->connections) {
        struct carrier *carrier = CONTAINER_OF(link, struct carrier, link);

        if (closed == count)
            break;
        if (carrier->conn && !h1_conn_is_idle(carrier->conn))
            continue;
        if (carrier->conn)
            h1_conn_close(carrier->conn, REFUSAL_OVERLOAD);
        else
            close_wait(carrier);
        closed++;
    }
    return closed;
}

/* Tells a newcomer that there is no room. What it has sent is read first: closing with unread bytes
 * would take the answer away again. */
static void refuse_socket(struct front_loop *loop, int fd)
{
    static const struct span answer =
        SPAN("HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n"
             "content-length: 0\r\n\r\n");
    char dropped[4096];
    ssize_t size;

    front_count(&loop->front->options->counters->refusals[REFUSAL_OVERLOAD], 1);
    do
        size = recv(fd, dropped, sizeof(dropped), MSG_DONTWAIT);
    while (size == (ssize_t)sizeof(dropped));
    (void)send(fd, answer.data, answer.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    fd_close(&fd);
}

static void log_ceiling(uint64_t limit)
{
    if (log_allow(span_of("connections"), EXHAUSTED_LOG_S, NULL))
        log_warn("limits.connections=%llu reached: idle connections are closed, then newcomers "
                 "get 503",
                 (unsigned long long)limit);
}

/* Whether one more connection may come, after making room when that is possible. */
static bool make_room(struct front_loop *loop)
{
    uint64_t limit = loop->front->options->config->limits.connections;
    uint64_t open = atomic_load_explicit(&loop->front->open, memory_order_relaxed);

    if (limits_judge(open, limit, false) == LIMITS_TAKE)
        return true;
    log_ceiling(limit);
    return close_idle(loop, limits_room(limit)) > 0;
}

/* ---- Which loop ---- */

static struct front_loop *find_emptiest(struct front_loop *loop)
{
    struct front *front = loop->front;
    uint32_t own = atomic_load_explicit(&loop->open, memory_order_relaxed), least = own;
    struct front_loop *best = loop;

    for (uint32_t i = 0; i < front->options->loops; i++) {
        struct front_loop *other = front->loops[i];
        uint32_t open = atomic_load_explicit(&other->open, memory_order_relaxed);

        if (open + HAND_OVER_GAP <= own && open < least) {
            least = open;
            best = other;
        }
    }
    return best;
}

static void take_handover(struct post_item *item)
{
    struct handover *handover = CONTAINER_OF(item, struct handover, item);

    open_client(handover->loop, handover->listener, handover->fd, &handover->peer, false);
    free(handover);
}

static bool hand_over(struct front_loop *to, const struct front_listener *listener, int fd,
                      const struct address *peer)
{
    struct handover *handover = malloc(sizeof(*handover));

    if (!handover)
        return false;
    *handover = (struct handover){
        .item = {.run = take_handover}, .loop = to, .listener = listener, .peer = *peer, .fd = fd};
    post_send(to->post, &handover->item);
    return true;
}

static void place(struct accept_listener *from, int fd, const struct address *peer)
{
    struct front_loop *loop = from->loop;
    struct front_loop *best = loop;

    if (from->is_admin) {
        open_client(loop, from->listener, fd, peer, true);
        return;
    }
    if (!make_room(loop)) {
        refuse_socket(loop, fd);
        return;
    }
    if (loop->front->options->loops > 1 && !loop->draining)
        best = find_emptiest(loop);
    if (best == loop || !hand_over(best, from->listener, fd, peer))
        open_client(loop, from->listener, fd, peer, false);
}

/* ---- Without descriptors ---- */

static void watch_all(struct front_loop *loop);

static void unwatch_all(struct front_loop *loop)
{
    for (uint32_t i = 0; i < loop->front->options->listener_size; i++)
        loop_unwatch(&loop->listeners[i].watch);
}

static void on_pause_over(struct timer *timer)
{
    struct front_loop *loop = CONTAINER_OF(timer, struct front_loop, accept_timer);

    if (!loop->draining)
        watch_all(loop);
}

static void open_reserve(struct front_loop *loop)
{
    if (loop->reserve_fd == -1)
        loop->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Takes newcomers one by one through the reserved descriptor. */
static void refuse_some(struct front_loop *loop, int listener)
{
    for (int i = 0; i < PAUSE_REFUSALS && loop->reserve_fd != -1; i++) {
        int fd;

        fd_close(&loop->reserve_fd);
        fd = listen_accept(listener, NULL);
        if (fd >= 0)
            refuse_socket(loop, fd);
        open_reserve(loop);
        if (fd < 0)
            return;
    }
}

/* Returns whether accepting can go on at once. */
static bool run_out(struct front_loop *loop, int listener, int error)
{
    uint64_t limit = loop->front->options->config->limits.connections;
    unsigned suppressed = 0;

    if (log_allow(span_of("descriptors"), EXHAUSTED_LOG_S, &suppressed))
        log_warn("accept: %s: idle connections are closed, then newcomers get 503 (%u more since "
                 "the last line)",
                 strerror(-error), suppressed);
    if (close_idle(loop, limits_room(limit)))
        return true;
    refuse_some(loop, listener);
    unwatch_all(loop);
    timer_set(loop->loop, &loop->accept_timer, PAUSE_MS, on_pause_over);
    return false;
}

/* ---- Listeners ---- */

static void take_all(struct accept_listener *from, int max)
{
    struct front_loop *loop = from->loop;
    struct address peer;

    open_reserve(loop);
    for (int i = 0; i < max; i++) {
        int fd = listen_accept(from->listener->fd, &peer);

        if (fd >= 0)
            place(from, fd, &peer);
        else if (fd == -EAGAIN || !run_out(loop, from->listener->fd, fd))
            return;
    }
}

static void on_connect(struct watch *watch, uint32_t events)
{
    (void)events;
    take_all(CONTAINER_OF(watch, struct accept_listener, watch), ACCEPT_MAX);
}

/* Only loop 0 has the admin address: what it shows comes from there. */
static bool is_wanted(const struct front_loop *loop, const struct accept_listener *listener)
{
    return !listener->is_admin || loop->number == 0;
}

static int watch_one(struct front_loop *loop, struct accept_listener *listener)
{
    uint32_t events = EPOLLIN;

    if (listener->watch.loop || !is_wanted(loop, listener))
        return 0;
    if (loop->front->options->loops > 1 && !listener->is_admin)
        events |= EPOLLEXCLUSIVE;
    return loop_watch(loop->loop, &listener->watch, listener->listener->fd, events, on_connect);
}

static void watch_all(struct front_loop *loop)
{
    for (uint32_t i = 0; i < loop->front->options->listener_size; i++) {
        int error = watch_one(loop, &loop->listeners[i]);

        if (error) {
            log_error("accept: watching a listener: %s, trying again", strerror(-error));
            timer_set(loop->loop, &loop->accept_timer, PAUSE_MS, on_pause_over);
        }
    }
}

int accept_start(struct front_loop *loop)
{
    const struct front_options *options = loop->front->options;

    loop->listeners = must_alloc(options->listener_size + 1, sizeof(*loop->listeners));
    for (uint32_t i = 0; i < options->listener_size; i++) {
        struct accept_listener *listener = &loop->listeners[i];
        int error;

        listener->loop = loop;
        listener->listener = &options->listeners[i];
        listener->is_admin = options->admin_listener >= 0 && i == (uint32_t)options->admin_listener;
        error = watch_one(loop, listener);
        if (error)
            return error;
    }
    open_reserve(loop);
    return 0;
}

/* When no loop takes connections any more, new ones are refused instead of waiting for nobody. A front that
 * stops shows its state at the admin address to the end; of one that retires another does. */
static void close_listeners(struct front *front)
{
    const struct front_options *options = front->options;
    struct front_message message = {.kind = FRONT_RELEASED};

    for (uint32_t i = 0; i < options->listener_size; i++)
        if (front->retiring || (int)i != options->admin_listener)
            (void)close(options->listeners[i].fd);
    if (front->retiring)
        front_tell(front, &message);
}

/* What waits in a backlog that others go on with is theirs. */
static bool is_to_be_emptied(const struct front_loop *loop, uint32_t listener)
{
    const struct front *front = loop->front;

    return front->retiring ? front->given_up[listener] : !loop->listeners[listener].is_admin;
}

void accept_stop(struct front_loop *loop)
{
    for (uint32_t i = 0; i < loop->front->options->listener_size; i++) {
        if (is_wanted(loop, &loop->listeners[i]) && is_to_be_emptied(loop, i))
            take_all(&loop->listeners[i], EMPTY_MAX);
        loop_unwatch(&loop->listeners[i].watch);
    }
    timer_stop(&loop->accept_timer);
    if (atomic_fetch_sub_explicit(&loop->front->loops_accepting, 1, memory_order_acq_rel) == 1)
        close_listeners(loop->front);
}

void accept_done(struct front_loop *loop)
{
    if (loop->listeners)
        unwatch_all(loop);
    timer_stop(&loop->accept_timer);
    fd_close(&loop->reserve_fd);
    free(loop->listeners);
    loop->listeners = NULL;
}
