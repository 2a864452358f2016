/* SPDX-License-Identifier: MIT */
/*
 * A main for fuzz targets, so that plain gcc builds them: runs the target on every file, and with
 * -seconds goes on with changed copies of them. The input that broke the target is kept in a file
 * beside the program. The targets' entry is that of libFuzzer, which can be linked instead.
 *
 * usage: x_fuzz [-seconds N] [-seed N] FILE...
 */
#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LARGEST = 256 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* Of the process, as the handlers of its death can be given nothing. */
static struct span input;
static char broken_path[4096];
static uint64_t random_state;

static void keep_input(void)
{
    int fd = open(broken_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd == -1)
        return;
    (void)fd_write_all(fd, input);
    (void)fd_write_all(STDERR_FILENO, span_of("the input is kept in "));
    (void)fd_write_all(STDERR_FILENO, span_of(broken_path));
    (void)fd_write_all(STDERR_FILENO, span_of("\n"));
}

/* What the sanitizers leave to the program; the alarm rings when one input takes too long. */
static const int deaths[] = {SIGABRT, SIGILL, SIGFPE, SIGBUS, SIGALRM};

enum { LONGEST_RUN_S = 20 };

static void on_death(int number)
{
    (void)signal(number, SIG_DFL);
    keep_input();
    (void)raise(number);
}

/* Runs the target on memory of exactly that size, so that reading past its end is seen. */
static void run(struct span bytes)
{
    char *copy = must_alloc(1, bytes.size);

    if (bytes.size)
        memcpy(copy, bytes.data, bytes.size);
    input = span_make(copy, bytes.size);
    (void)alarm(LONGEST_RUN_S);
    (void)LLVMFuzzerTestOneInput((const uint8_t *)copy, bytes.size);
    free(copy);
}

/* xorshift64: the same seed gives the same run. */
static size_t below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return limit ? random_state % limit : 0;
}

/* A piece of another input comes in. */
static size_t put_piece(char *bytes, size_t size, struct span other)
{
    size_t at = below(size + 1), from = below(other.size);
    struct span piece = span_first(span_skip(other, from), 1 + below(64));

    if (size + piece.size > LARGEST)
        return size;
    memmove(bytes + at + piece.size, bytes + at, size - at);
    if (piece.size)
        memcpy(bytes + at, piece.data, piece.size);
    return size + piece.size;
}

/* One change in place: a byte, a bit, a piece left out, doubled, or cut at the end. */
static size_t change(char *bytes, size_t size)
{
    static const char telling[] = "\0\r\n :;,%/.0\xff\x7f\x80";
    size_t at = below(size), length = 1 + below(size - at < 32 ? size - at : 32);

    if (size == 0)
        return 0;
    switch (below(5)) {
    case 0:
        bytes[at] = telling[below(sizeof(telling))];
        return size;
    case 1:
        bytes[at] = (char)(bytes[at] ^ 1 << below(8));
        return size;
    case 2:
        memmove(bytes + at, bytes + at + length, size - at - length);
        return size - length;
    case 3:
        if (size + length > LARGEST)
            return size;
        memmove(bytes + at + length, bytes + at, size - at);
        return size + length;
    default:
        return at;
    }
}

static void run_changed(struct span *files, size_t count, uint64_t until_ms)
{
    static char bytes[LARGEST];
    unsigned long runs = 0;

    for (; clock_ms() < until_ms; runs++) {
        struct span file =
            count ? files[below(count)] : (struct span)SPAN("GET / HTTP/1.1\r\n\r\n");
        size_t size = file.size < LARGEST ? file.size : LARGEST;

        memcpy(bytes, file.data, size);
        for (size_t changes = 1 + below(8); changes > 0; changes--)
            size = below(6) || !count ? change(bytes, size)
                                      : put_piece(bytes, size, files[below(count)]);
        run(span_make(bytes, size));
    }
    (void)printf("%lu changed inputs\n", runs);
}

static int read_inputs(char **paths, size_t count, struct span *files)
{
    for (size_t i = 0; i < count; i++) {
        char *text;
        size_t size;

        if (fd_read_file(paths[i], LARGEST, &text, &size) < 0) {
            (void)fprintf(stderr, "%s: cannot be read\n", paths[i]);
            return 1;
        }
        files[i] = span_make(text, size);
    }
    return 0;
}

int main(int count, char **words)
{
    uint64_t seconds = 0, seed = clock_us() | 1;
    struct span *files;
    int first = 1;

    for (; first + 1 < count && words[first][0] == '-'; first += 2)
        if (!num_decimal(span_of(words[first + 1]),
                         strcmp(words[first], "-seed") == 0 ? &seed : &seconds))
            return 2;
    (void)snprintf(broken_path, sizeof(broken_path), "%s.broken", words[0]);
    for (size_t i = 0; i < ARRAY_LEN(deaths); i++)
        (void)signal(deaths[i], on_death);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(keep_input);

    files = must_alloc((size_t)count, sizeof(*files));
    if (read_inputs(words + first, (size_t)(count - first), files))
        return 1;
    for (int i = 0; i < count - first; i++)
        run(files[i]);
    (void)printf("%s: %d files\n", words[0], count - first);
    if (seconds) {
        random_state = seed ? seed : 1;
        (void)printf("seed %lu\n", (unsigned long)random_state);
        (void)fflush(stdout);
        run_changed(files, (size_t)(count - first), clock_ms() + seconds * 1000);
    }
    for (int i = 0; i < count - first; i++)
        free((char *)files[i].data);
    free(files);
    return 0;
}
