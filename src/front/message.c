/* SPDX-License-Identifier: MIT */
#include "front/message.h"

#include "base/fd.h"

#include <errno.h>
#include <string.h>

static const char *const words[] = {
    [FRONT_NOTHING] = "nothing",
#define ROW(constant, word) [FRONT_##constant] = word,
#include "front/message.def"
#undef ROW
};

int front_message_send(int channel, const struct front_message *message, const int *fds,
                       size_t count)
{
    return fd_send(channel, span_make((const char *)message, sizeof(*message)), fds, count);
}

static void close_both(int fds[2])
{
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

int front_message_receive(int channel, struct front_message *ret_message, int ret_fds[2])
{
    struct front_message message;
    int fds[2] = {-1, -1};
    size_t count = 0;
    ssize_t size = fd_receive(channel, (char *)&message, sizeof(message), fds, 2, &count);

    for (size_t i = count; i < 2; i++)
        fds[i] = -1;
    if (size <= 0) {
        close_both(fds);
        return (int)size;
    }
    if (size != sizeof(message) || message.kind >= FRONT_MESSAGE_KINDS) {
        close_both(fds);
        return -EPROTO;
    }
    message.text[sizeof(message.text) - 1] = '\0';
    *ret_message = message;
    memcpy(ret_fds, fds, sizeof(fds));
    return 1;
}

const char *front_message_word(uint32_t kind)
{
    return kind < FRONT_MESSAGE_KINDS ? words[kind] : "unknown";
}

/* FNV-1a over the words in their order and the size of a message. */
uint32_t front_message_dialect(void)
{
    uint32_t value = UINT32_C(0x811c9dc5) ^ (uint32_t)sizeof(struct front_message);

    for (uint32_t kind = 0; kind < FRONT_MESSAGE_KINDS; kind++)
        for (const char *byte = words[kind]; *byte; byte++)
            value = (value ^ (unsigned char)*byte) * UINT32_C(0x01000193);
    return value;
}
