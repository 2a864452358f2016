/* SPDX-License-Identifier: MIT */
#include "front/error_page.h"

#include "base/ascii.h"
#include "base/base.h"
#include "base/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 1000, FILE_MAX = 1024 * 1024 };

/* The statuses that a site may have a page for. */
static const unsigned file_statuses[] = {404, 500, 502, 503};

enum { FILES = ARRAY_LEN(file_statuses) };

/* One file's bytes, NULL when there is none. */
struct page_file {
    char *bytes;
    size_t size;
};

struct site_pages {
    struct offload_job job;
    struct error_pages *owner;
    const char *root;
    uint64_t looked_ms;
    bool looking;
    struct page_file files[FILES];
    struct page_file found[FILES]; /* what the job has read */
};

struct error_pages {
    struct loop *loop;
    struct offload *offload;
    struct post *post;
    uint32_t size;
    struct site_pages sites[];
};

/* ---- Files ---- */

static void read_page(const char *root, unsigned status, struct page_file *ret_file)
{
    char path[PATH_MAX];
    struct page_file file = {0};

    *ret_file = file;
    if ((size_t)snprintf(path, sizeof(path), "%s/%u.html", root, status) >= sizeof(path))
        return;
    if (fd_read_file(path, FILE_MAX, &file.bytes, &file.size) == 0)
        *ret_file = file;
}

static void read_pages(struct offload_job *job)
{
    struct site_pages *site = CONTAINER_OF(job, struct site_pages, job);

    for (unsigned i = 0; i < FILES; i++)
        read_page(site->root, file_statuses[i], &site->found[i]);
}

static void take_found(struct site_pages *site)
{
    for (unsigned i = 0; i < FILES; i++) {
        free(site->files[i].bytes);
        site->files[i] = site->found[i];
        site->found[i] = (struct page_file){0};
    }
}

static void on_read(struct offload_job *job)
{
    struct site_pages *site = CONTAINER_OF(job, struct site_pages, job);

    take_found(site);
    site->looking = false;
}

/* What is there now is used; whether it changed is found out behind this answer. */
static void look_behind(struct site_pages *site)
{
    struct error_pages *pages = site->owner;
    uint64_t now_ms = loop_now_ms(pages->loop);

    if (site->looking || now_ms - site->looked_ms < LOOK_EVERY_MS)
        return;
    site->looking = true;
    site->looked_ms = now_ms;
    site->job = (struct offload_job){.post = pages->post, .work = read_pages, .on_done = on_read};
    offload_send(pages->offload, &site->job);
}

static const struct page_file *find_file(struct error_pages *pages, uint32_t site, unsigned status)
{
    if (!pages || site >= pages->size || !pages->sites[site].root)
        return NULL;
    for (unsigned i = 0; i < FILES; i++) {
        if (file_statuses[i] != status)
            continue;
        look_behind(&pages->sites[site]);
        return pages->sites[site].files[i].bytes ? &pages->sites[site].files[i] : NULL;
    }
    return NULL;
}

/* ---- Accept ---- */

/* The quality of one element in thousandths; 1000 without q, 0 for what cannot be read. */
static unsigned quality(struct span parameters)
{
    while (parameters.data) {
        struct span parameter = span_trim(span_split(&parameters, ';'));
        unsigned value = 0, scale = 1000;

        if (parameter.size < 3 || ascii_lower(parameter.data[0]) != 'q' || parameter.data[1] != '=')
            continue;
        for (size_t i = 2; i < parameter.size && scale; i++) {
            if (parameter.data[i] == '.')
                continue;
            if (!ascii_is(parameter.data[i], ASCII_DIGIT))
                return 0;
            value += (unsigned)(parameter.data[i] - '0') * scale;
            scale /= 10;
        }
        return value;
    }
    return 1000;
}

bool error_page_prefers_json(struct span accept)
{
    unsigned json = 0, html = 0;

    while (accept.data) {
        struct span element = span_split(&accept, ',');
        struct span type = span_trim(span_split(&element, ';'));
        unsigned value = quality(element);

        if (ascii_equal_fold(type, span_of("application/json")) ||
            (type.size > 5 && ascii_equal_fold(span_skip(type, type.size - 5), span_of("+json"))))
            json = value > json ? value : json;
        else if (ascii_equal_fold(type, span_of("text/html")) ||
                 ascii_equal_fold(type, span_of("application/xhtml+xml")))
            html = value > html ? value : html;
    }
    return json > html;
}

/* ---- Pages ---- */

static const char *reason_of(const struct exchange *exchange, unsigned status)
{
    if (exchange->refusal != REFUSAL_NONE)
        return http_refusal_text(exchange->refusal);
    return http_status_phrase(status);
}

/* The id is safe in both forms: letters, digits, '-', '_', '@'. */
static struct span make_json(struct exchange *exchange, unsigned status)
{
    return arena_printf(
        &exchange->arena,
        "{\"status\":%u,\"error\":\"%s\",\"reason\":\"%s\",\"request_id\":\"%.*s\"}\n", status,
        http_status_phrase(status), reason_of(exchange, status), SPAN_ARG(exchange->id));
}

static struct span make_html(struct exchange *exchange, unsigned status)
{
    const char *phrase = http_status_phrase(status);

    return arena_printf(
        &exchange->arena,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%u %s</title>\n"
        "<style>body{font:16px/1.5 sans-serif;margin:15vh auto;max-width:32em;padding:0 1em}"
        "small{color:#777}</style></head>\n<body><h1>%u %s</h1><p>%s</p>"
        "<p><small>Request %.*s</small></p></body></html>\n",
        status, phrase, status, phrase, reason_of(exchange, status), SPAN_ARG(exchange->id));
}

static void add(struct exchange *exchange, const char *name, const char *value)
{
    exchange_add_field(exchange, span_of(name), span_of(value));
}

enum { RETRY_S = 5 }; /* when nobody knows better */

static void add_retry(struct exchange *exchange)
{
    exchange_add_field(
        exchange, http_field_name(FIELD_ID_RETRY_AFTER),
        arena_printf(&exchange->arena, "%u", exchange->retry_s ? exchange->retry_s : RETRY_S));
}

static struct span choose_body(struct error_pages *pages, struct exchange *exchange, uint32_t site,
                               unsigned status)
{
    const struct page_file *file;
    struct span accept = fields_value(&exchange->request.fields, FIELD_ID_ACCEPT);

    if (error_page_prefers_json(accept)) {
        add(exchange, "content-type", "application/json");
        return make_json(exchange, status);
    }
    add(exchange, "content-type", "text/html; charset=utf-8");
    file = find_file(pages, site, status);
    return file ? span_make(file->bytes, file->size) : make_html(exchange, status);
}

void error_page_send(struct error_pages *pages, struct exchange *exchange, uint32_t site,
                     unsigned status)
{
    struct span body;

    if (exchange->refusal != REFUSAL_NONE)
        status = http_refusal_status(exchange->refusal);
    body = choose_body(pages, exchange, site, status);
    add(exchange, "cache-control", "no-store");
    if (status == 503)
        add_retry(exchange);
    if (status == 405)
        add(exchange, "allow", "GET, HEAD");
    exchange_head(exchange, status, (int64_t)body.size);
    exchange_write(exchange, body);
    exchange_end(exchange, false);
}

/* ---- Life ---- */

struct error_pages *error_pages_new(struct loop *loop, struct offload *offload, struct post *post,
                                    const char *const *roots, uint32_t size)
{
    struct error_pages *pages = must_alloc(1, sizeof(*pages) + size * sizeof(struct site_pages));

    pages->loop = loop;
    pages->offload = offload;
    pages->post = post;
    pages->size = size;
    for (uint32_t i = 0; i < size; i++) {
        struct site_pages *site = &pages->sites[i];

        site->owner = pages;
        site->root = roots[i];
        if (!site->root)
            continue;
        read_pages(&site->job);
        take_found(site);
        site->looked_ms = loop_now_ms(loop);
    }
    return pages;
}

static void free_files(struct page_file *files)
{
    for (unsigned i = 0; i < FILES; i++)
        free(files[i].bytes);
}

void error_pages_free(struct error_pages *pages)
{
    if (!pages)
        return;
    for (uint32_t i = 0; i < pages->size; i++) {
        free_files(pages->sites[i].files);
        free_files(pages->sites[i].found);
    }
    free(pages);
}
