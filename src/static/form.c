/* SPDX-License-Identifier: MIT */
#include "static/form.h"

#include "base/base.h"

/* The smallest first: they were made ahead, so that only their size matters. */
static const enum coding codings[] = {CODING_BR, CODING_ZSTD, CODING_GZIP};

struct form form_plain(struct open_file *file)
{
    return (struct form){.file = file, .type = file->type, .immutable = file->immutable};
}

struct form form_coded(struct open_file *file, struct open_file *coded, enum coding coding)
{
    struct form form = form_plain(file);

    if (!coded)
        return form;
    form.file = coded;
    form.coding = coding;
    return form;
}

enum coding form_choose(unsigned set, const struct coding_wish *wish)
{
    enum coding offered[ARRAY_LEN(codings)];
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_LEN(codings); i++)
        if (set & 1u << codings[i])
            offered[count++] = codings[i];
    return coding_choose(wish, offered, count);
}

bool form_is_current(const struct resolve_identity *coded, const struct resolve_identity *file)
{
    const struct timespec *own = &coded->modified, *other = &file->modified;

    if (own->tv_sec != other->tv_sec)
        return own->tv_sec > other->tv_sec;
    return !own->tv_nsec || own->tv_nsec >= other->tv_nsec;
}

struct span form_set_ending(char *name, size_t size, enum coding coding)
{
    struct span ending = coding_ending(coding);

    CHECK(ending.size <= FORM_ENDING);
    memcpy(name + size, ending.data, ending.size);
    name[size + ending.size] = 0;
    return span_make(name, size + ending.size);
}

/* One neighbour of a file in the cache, as it is now. */
struct look {
    struct static_cache *cache;
    struct cache_root *root;
    char *name;
    size_t size;
    struct open_file *file;
};

/* RESOLVED_FILE, RESOLVED_LATER, or RESOLVED_MISSING for one that does not count. */
static enum resolved look_at(const struct look *look, enum coding coding,
                             struct open_file **ret_coded)
{
    struct open_file *coded = NULL;
    enum resolved answer = open_cache_look(look->cache, look->root,
                                           form_set_ending(look->name, look->size, coding), &coded);

    look->name[look->size] = 0;
    if (answer == RESOLVED_LATER)
        return answer;
    if (answer != RESOLVED_FILE || !form_is_current(&coded->identity, &look->file->identity))
        return RESOLVED_MISSING;
    *ret_coded = coded;
    return RESOLVED_FILE;
}

/* Brings the set of known forms up to date when it is time; RESOLVED_LATER when that could block. */
static enum resolved look_at_all(const struct look *look)
{
    uint64_t now_ms = loop_now_ms(look->cache->loop);
    struct open_file *file = look->file, *coded;
    unsigned set = 0;

    if (file->forms_looked_ms && now_ms - file->forms_looked_ms < FORM_LOOK_MS)
        return RESOLVED_FILE;
    for (size_t i = 0; i < ARRAY_LEN(codings); i++) {
        enum resolved answer = look_at(look, codings[i], &coded);

        if (answer == RESOLVED_LATER)
            return answer;
        if (answer == RESOLVED_FILE)
            set |= 1u << codings[i];
    }
    file->forms = set;
    file->forms_looked_ms = now_ms;
    return RESOLVED_FILE;
}

enum resolved form_look(struct static_cache *cache, struct cache_root *root, char *name,
                        size_t size, struct open_file *file, const struct coding_wish *wish,
                        struct form *ret_form)
{
    const struct look look = {cache, root, name, size, file};
    struct open_file *coded = NULL;
    enum coding coding = CODING_IDENTITY;

    if (look_at_all(&look) == RESOLVED_LATER)
        return RESOLVED_LATER;
    while ((coding = form_choose(file->forms, wish)) != CODING_IDENTITY) {
        enum resolved answer = look_at(&look, coding, &coded);

        if (answer == RESOLVED_LATER)
            return answer;
        if (answer == RESOLVED_FILE)
            break;
        file->forms &= ~(1u << coding);
    }
    *ret_form = form_coded(file, coded, coding);
    ret_form->varies = file->forms != 0;
    return RESOLVED_FILE;
}
