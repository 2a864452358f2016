/* SPDX-License-Identifier: MIT */
#include "leat_ext.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <ruby/io.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The seat's connection to the descriptor socket of the front whose request it holds; board/descriptor.h
 * has the protocol. */

/* The address of a socket whose path may be too long for sun_path: through its folder's descriptor,
 * which is returned and must stay open until connect has been called. */
static int make_address(const char *path, struct sockaddr_un *ret_address)
{
    const char *name = strrchr(path, '/');
    char folder[BOARD_RUNTIME_BYTES + 16];
    int fd, size;

    if (!name)
        return -ENOENT;
    (void)snprintf(folder, sizeof(folder), "%.*s/", (int)(name - path), path);
    fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd == -1)
        return -errno;
    ret_address->sun_family = AF_UNIX;
    size = snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "/proc/self/fd/%d/%s", fd,
                    name + 1);
    if (size < (int)sizeof(ret_address->sun_path))
        return fd;
    (void)close(fd);
    return -ENAMETOOLONG;
}

static int connect_to(const struct board *board, uint32_t front)
{
    struct sockaddr_un address = {0};
    char path[BOARD_RUNTIME_BYTES + 16];
    int folder, fd, error = 0;

    (void)snprintf(path, sizeof(path), "%.*s.%u", BOARD_RUNTIME_BYTES - 1, board->header->runtime,
                   front);
    folder = make_address(path, &address);
    if (folder < 0)
        return folder;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd == -1 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) == -1)
        error = -errno;
    (void)close(folder);
    if (error < 0)
        fd_close(&fd);
    return error < 0 ? error : fd;
}

static int read_answer(int socket, bool wants_descriptor)
{
    struct descriptor_answer answer;
    int fd = -1;
    size_t count = 0;
    ssize_t size = fd_receive(socket, (char *)&answer, sizeof(answer), &fd, 1, &count);

    if (size < 0)
        return (int)size;
    if (size == sizeof(answer) && answer.status == 0 && count == (wants_descriptor ? 1 : 0))
        return wants_descriptor ? fd : 0;
    if (count > 0)
        fd_close(&fd);
    if (size == sizeof(answer) && answer.status > 0)
        return -answer.status;
    return -EPIPE;
}

static int open_connection(struct seat *seat)
{
    if (seat->socket != -1 && seat->socket_front != seat->front)
        fd_close(&seat->socket);
    if (seat->socket == -1) {
        int fd = connect_to(&seat->place->board, seat->front);

        if (fd < 0)
            return fd;
        seat->socket = fd;
        seat->socket_front = seat->front;
    }
    return 0;
}

/* After these the connection is still in step. */
static bool is_refusal(int error)
{
    return error == -ESTALE || error == -EACCES || error == -EBADF || error == -ENOENT ||
           error == -EINVAL || error == -ENOTSUP || error == -EMFILE || error == -ENFILE ||
           error == -ENOMEM;
}

/* Asks and waits; other Ruby threads run meanwhile. An interrupt may raise while the answer is still to
 * come: is_asking then stays set, and the connection is not used again. */
static int ask_once(struct seat *seat, uint32_t kind, int file)
{
    struct descriptor_question question = {kind, (uint32_t)seat->slot, seat->turn, seat->thread};
    bool is_file = kind == DESCRIPTOR_FILE;
    int result;

    seat->is_asking = true;
    result = fd_send(seat->socket, span_make((const char *)&question, sizeof(question)), &file,
                     is_file ? 1 : 0);
    if (result == 0) {
        rb_thread_wait_fd(seat->socket);
        result = read_answer(seat->socket, !is_file);
    }
    seat->is_asking = false;
    if (result < 0 && !is_refusal(result))
        fd_close(&seat->socket);
    return result;
}

int descriptor_ask(struct seat *seat, uint32_t kind, int file)
{
    bool was_open;
    int result;

    if (seat->is_asking)
        fd_close(&seat->socket);
    was_open = seat->socket != -1 && seat->socket_front == seat->front;
    result = open_connection(seat);
    if (result == 0)
        result = ask_once(seat, kind, file);
    /* A connection from before may have ended with its front; its successor has another. */
    if (result < 0 && was_open && seat->socket == -1) {
        result = open_connection(seat);
        if (result == 0)
            result = ask_once(seat, kind, file);
    }
    return result;
}
