/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/error_page.c"

#include <fcntl.h>

static void on_update(struct exchange *exchange)
{
    (void)exchange;
}

static const struct conn conn = {.update = on_update};

static struct exchange *make(struct loop *loop, enum refusal refusal, const char *accept)
{
    static struct exchange exchange;

    exchange_init(&exchange, loop, &conn, NULL, NULL);
    exchange.refusal = refusal;
    exchange.id = span_of("id-7");
    if (accept)
        fields_add(&exchange.request.fields, span_of("accept"), span_of(accept));
    return &exchange;
}

static struct span body_of(const struct exchange *exchange)
{
    struct piece *piece = CONTAINER_OF(exchange->response.pieces.next, struct piece, link);

    return span_make(piece->data, piece->size);
}

static bool has(struct span text, const char *words)
{
    return memmem(text.data, text.size, words, strlen(words));
}

static void a_page_says_status_reason_and_request(void **state)
{
    struct loop *loop = loop_new();
    struct exchange *exchange = make(loop, REFUSAL_QUEUE_FULL, "text/html,*/*;q=0.8");
    (void)state;

    error_page_send(NULL, exchange, UINT32_MAX, 500);
    assert_int_equal(exchange->response.status, 503);
    assert_true(has(body_of(exchange), "503 Service Unavailable"));
    assert_true(has(body_of(exchange), "Too many requests are waiting"));
    assert_true(has(body_of(exchange), "id-7"));
    assert_non_null(fields_find(&exchange->response.fields, FIELD_ID_RETRY_AFTER));
    assert_int_equal(exchange->response.length, exchange->response.written);
    exchange_done(exchange);
    loop_free(loop);
}

static void assert_retry(enum refusal refusal, unsigned retry_s, const char *expected)
{
    struct loop *loop = loop_new();
    struct exchange *exchange = make(loop, refusal, NULL);

    exchange->retry_s = retry_s;
    error_page_send(NULL, exchange, UINT32_MAX, 500);
    assert_true(span_is(fields_value(&exchange->response.fields, FIELD_ID_RETRY_AFTER), expected));
    exchange_done(exchange);
    loop_free(loop);
}

static void a_503_says_when_it_may_go_better(void **state)
{
    (void)state;

    assert_retry(REFUSAL_QUEUE_LONG, 31, "31");
    assert_retry(REFUSAL_NO_WORKER, 0, "5");
    assert_retry(REFUSAL_WORKER_DIED, 31, "");
}

static void who_prefers_json_gets_json(void **state)
{
    struct loop *loop = loop_new();
    struct exchange *exchange = make(loop, REFUSAL_NOT_FOUND, "application/json");
    (void)state;

    error_page_send(NULL, exchange, UINT32_MAX, 500);
    assert_true(span_is(body_of(exchange),
                        "{\"status\":404,\"error\":\"Not Found\",\"reason\":\"There is nothing at "
                        "this address.\",\"request_id\":\"id-7\"}\n"));
    assert_null(fields_find(&exchange->response.fields, FIELD_ID_RETRY_AFTER));
    exchange_done(exchange);
    loop_free(loop);
}

static void a_refused_method_names_those_allowed(void **state)
{
    struct loop *loop = loop_new();
    struct exchange *exchange = make(loop, REFUSAL_NOT_ALLOWED, NULL);
    (void)state;

    error_page_send(NULL, exchange, UINT32_MAX, 500);
    assert_int_equal(exchange->response.status, 405);
    assert_true(span_is(fields_value(&exchange->response.fields, FIELD_ID_ALLOW), "GET, HEAD"));
    exchange_done(exchange);
    loop_free(loop);
}

static void json_is_preferred_by_quality_and_html_wins_a_tie(void **state)
{
    static const struct {
        const char *accept;
        bool json;
    } rows[] = {
        {"", false},
        {"*/*", false},
        {"text/html", false},
        {"application/json", true},
        {"Application/JSON; charset=utf-8", true},
        {"application/json, text/html", false},
        {"application/json, text/html;q=0.9", true},
        {"application/json;q=0.5, text/html;q=0.51", false},
        {"application/vnd.api+json", true},
        {"application/json;q=0", false},
        {"application/json;q=x", false},
        {"application/json;q=", true},
        {",;,", false},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(error_page_prefers_json(span_of(rows[i].accept)), rows[i].json);
}

static void write_page(const char *folder, const char *text)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/503.html", folder);
    (void)unlink(path);
    if (!text)
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_int_equal(fd_write_all(fd, span_of(text)), 0);
    close(fd);
}

static void a_sites_own_page_replaces_ours_and_changes_are_noticed(void **state)
{
    char folder[] = "/tmp/leat-pages-XXXXXX";
    const char *roots[] = {NULL, folder};
    struct loop *loop = loop_new();
    struct offload *offload = offload_new(1);
    struct post *post = post_new(loop);
    struct error_pages *pages;
    struct exchange *exchange;
    (void)state;

    assert_non_null(mkdtemp(folder));
    write_page(folder, "own page");
    pages = error_pages_new(loop, offload, post, roots, 2);
    exchange = make(loop, REFUSAL_DRAINING, NULL);
    error_page_send(pages, exchange, 1, 500);
    assert_true(span_is(body_of(exchange), "own page"));
    exchange_done(exchange);
    exchange = make(loop, REFUSAL_DRAINING, NULL);
    error_page_send(pages, exchange, 0, 500);
    assert_true(has(body_of(exchange), "503 Service Unavailable"));
    exchange_done(exchange);

    write_page(folder, NULL);
    pages->sites[1].looked_ms -= LOOK_EVERY_MS;
    look_behind(&pages->sites[1]);
    while (pages->sites[1].looking)
        loop_step(loop, 1000);
    exchange = make(loop, REFUSAL_DRAINING, NULL);
    error_page_send(pages, exchange, 1, 500);
    assert_true(has(body_of(exchange), "503 Service Unavailable"));
    exchange_done(exchange);
    (void)rmdir(folder);
    offload_free(offload);
    post_free(post);
    error_pages_free(pages);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_says_status_reason_and_request),
        cmocka_unit_test(a_503_says_when_it_may_go_better),
        cmocka_unit_test(who_prefers_json_gets_json),
        cmocka_unit_test(a_refused_method_names_those_allowed),
        cmocka_unit_test(json_is_preferred_by_quality_and_html_wins_a_tie),
        cmocka_unit_test(a_sites_own_page_replaces_ours_and_changes_are_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
