/* SPDX-License-Identifier: MIT */
/*
 * The floor: one thread, epoll, one read and one write per request, always the same answer with the
 * bytes of one file. It understands no HTTP: what it reads up to an empty line is a request. Nothing
 * that parses, looks up or logs can be faster on the same system calls.
 *
 * usage: bare PORT FILE
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 256, READ_SIZE = 16 * 1024, BODY_MAX = 1024 * 1024 };

static char answer[BODY_MAX + 512];
static size_t answer_size;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void make_answer(const char *path)
{
    static char body[BODY_MAX];
    FILE *file = fopen(path, "rb");
    size_t size;

    if (!file)
        fail(path);
    size = fread(body, 1, sizeof(body), file);
    (void)fclose(file);
    answer_size = (size_t)snprintf(answer, sizeof(answer),
                                   "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
                                   "content-length: %zu\r\n"
                                   "date: Tue, 01 Dec 2026 10:00:00 GMT\r\n\r\n",
                                   size);
    memcpy(answer + answer_size, body, size);
    answer_size += size;
}

static int listen_on(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((unsigned short)strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

    if (fd == -1)
        fail("socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == -1 || listen(fd, 4096) == -1)
        fail("listen");
    return fd;
}

static void accept_all(int loop, int listener)
{
    int fd, on = 1;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) != -1) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) == -1)
            (void)close(fd);
    }
}

/* The answer fits into a socket's buffer; a client that does not read is not waited for. */
static int serve(int fd)
{
    char bytes[READ_SIZE];
    ssize_t got = read(fd, bytes, sizeof(bytes));

    if (got == -1)
        return errno == EAGAIN || errno == EINTR;
    if (got < 4 || memcmp(bytes + got - 4, "\r\n\r\n", 4) != 0)
        return 0;
    return write(fd, answer, answer_size) == (ssize_t)answer_size;
}

int main(int count, char **words)
{
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN};
    int loop, listener;

    if (count != 3) {
        (void)fprintf(stderr, "usage: bare PORT FILE\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    make_answer(words[2]);
    listener = listen_on(words[1]);
    loop = epoll_create1(EPOLL_CLOEXEC);
    event.data.fd = listener;
    if (loop == -1 || epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event) == -1)
        fail("epoll");
    for (;;) {
        int ready = epoll_wait(loop, events, EVENTS, -1);

        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == listener)
                accept_all(loop, listener);
            else if (!serve(events[i].data.fd))
                (void)close(events[i].data.fd);
        }
    }
}
