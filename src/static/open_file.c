/* SPDX-License-Identifier: MIT */
#include "static/open_file.h"

#include "base/ascii.h"
#include "base/clock.h"
#include "base/fd.h"
#include "static/mime.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DIGEST_MIN = 8,          /* hexadecimal digits that may be a digest */
    DIGEST_SURE = 16,        /* so many are one even without a letter; fewer may be a date */
    FIRST_PART = 512 * 1024, /* of a large file, read when it is opened */
    SCRATCH = 64 * 1024
};

static bool is_digest(struct span text)
{
    bool has_letter = false;

    if (text.size < DIGEST_MIN || !ascii_all(text, ASCII_HEX))
        return false;
    for (size_t i = 0; i < text.size; i++)
        has_letter |= ascii_is(text.data[i], ASCII_ALPHA);
    return has_letter || text.size >= DIGEST_SURE;
}

static bool is_asset_folder(struct span segment)
{
    return span_is(segment, "assets") || span_is(segment, "packs");
}

bool open_file_is_fingerprinted(struct span name)
{
    bool in_assets = false;
    struct span rest = name, segment = {0};
    size_t dash;

    while (rest.data) {
        in_assets |= is_asset_folder(segment);
        segment = span_split(&rest, '/');
    }
    dash = span_find_last(segment, '-');
    segment = span_skip(segment, dash + 1);
    return in_assets && is_digest(span_first(segment, span_find(segment, '.')));
}

static void describe(struct open_file *file, struct span name)
{
    const struct resolve_identity *identity = &file->identity;
    uint64_t modified_ns =
        (uint64_t)identity->modified.tv_sec * 1000000000u + (uint64_t)identity->modified.tv_nsec;
    int size = snprintf(file->etag, sizeof(file->etag), "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"",
                        modified_ns, identity->size, identity->inode);

    CHECK(size > 0 && (size_t)size < sizeof(file->etag));
    file->etag_size = (size_t)size;
    clock_http_date(identity->modified.tv_sec, file->modified);
    file->type = mime_find(name);
    file->immutable = open_file_is_fingerprinted(name);
}

struct open_file *open_file_new(int fd, const struct resolve_identity *identity, struct span name)
{
    struct open_file *file = calloc(1, sizeof(*file));

    if (!file) {
        fd_close(&fd);
        return NULL;
    }
    file->references = 1;
    file->fd = fd;
    file->identity = *identity;
    list_init(&file->link);
    describe(file, name);
    return file;
}

static ssize_t read_at(int fd, char *out, size_t room, uint64_t offset)
{
    ssize_t got;

    do
        got = pread(fd, out, room, (off_t)offset);
    while (got == -1 && errno == EINTR);
    return got;
}

static bool read_whole(int fd, char *out, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = read_at(fd, out + done, size - done, done);

        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static void keep_content(struct open_file *file)
{
    size_t size = (size_t)file->identity.size;
    struct resolve_identity after;
    char *content = malloc(size ? size : 1);

    if (!content)
        return;
    if (read_whole(file->fd, content, size) && resolve_identify(file->fd, &after) &&
        resolve_is_same(&file->identity, &after))
        file->content = content;
    else
        free(content);
}

/* Spread over the file, the last at its end: there whoever writes it anew is last. */
static void take_samples(struct open_file *file)
{
    uint64_t last = file->identity.size - OPEN_FILE_SAMPLE;

    for (unsigned i = 0; i < OPEN_FILE_SAMPLES; i++) {
        struct open_file_sample *sample = &file->samples[i];
        ssize_t got;

        sample->offset = last / (OPEN_FILE_SAMPLES - 1) * i;
        if (i == OPEN_FILE_SAMPLES - 1)
            sample->offset = last;
        got = read_at(file->fd, sample->bytes, sizeof(sample->bytes), sample->offset);
        sample->size = got > 0 ? (size_t)got : 0;
    }
}

static bool has_samples(const struct open_file *file)
{
    for (unsigned i = 0; i < OPEN_FILE_SAMPLES; i++) {
        const struct open_file_sample *sample = &file->samples[i];
        char now[OPEN_FILE_SAMPLE];

        if (sample->size &&
            (read_at(file->fd, now, sample->size, sample->offset) != (ssize_t)sample->size ||
             memcmp(now, sample->bytes, sample->size) != 0))
            return false;
    }
    return true;
}

bool open_file_is_intact(const struct open_file *file)
{
    struct resolve_identity now;
    const struct timespec *before = &file->identity.modified;

    if (!resolve_identify(file->fd, &now) || now.size < file->identity.size)
        return false;
    if (now.size == file->identity.size)
        return now.modified.tv_sec == before->tv_sec && now.modified.tv_nsec == before->tv_nsec;
    return has_samples(file);
}

/* What is read is thrown away: the pages stay in the system's cache for the loop that sends them. */
static void warm(int fd)
{
    char scratch[SCRATCH];

    for (uint64_t offset = 0; offset < FIRST_PART; offset += sizeof(scratch))
        if (read_at(fd, scratch, sizeof(scratch), offset) < (ssize_t)sizeof(scratch))
            return;
}

void open_file_load(struct open_file *file, size_t keep_bytes)
{
    if (file->identity.size <= keep_bytes) {
        keep_content(file);
        return;
    }
    warm(file->fd);
    take_samples(file);
}

struct open_file *open_file_ref(struct open_file *file)
{
    file->references++;
    return file;
}

void open_file_unref(struct open_file *file)
{
    if (!file || --file->references)
        return;
    fd_close(&file->fd);
    free(file->content);
    free(file->name);
    free(file);
}
