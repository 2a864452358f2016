/* SPDX-License-Identifier: MIT */
#include "base/saved.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct saved *read_back(const struct saved_text *text)
{
    unsigned line;
    struct saved *saved = saved_read(buf_span(&text->buf), &line);

    assert_int_equal(text->error, 0);
    assert_non_null(saved);
    return saved;
}

static void what_is_written_in_sections_is_found_there(void **state)
{
    struct saved_text text = {.error = 0};
    struct saved_out out = saved_begin(&text);
    struct saved_out pool = saved_out_item(&out, "pool", 1);
    struct saved_out worker = saved_out_item(&pool, "worker", 7);
    (void)state;

    saved_put(&out, "version", "0.1.0");
    saved_put(&pool, "name", "shop");
    saved_put_number(&worker, "pid", 42);
    saved_put(&worker, "nothing", NULL);
    saved_put_fd(&worker, "control_fd", -1);
    assert_true(span_is(buf_span(&text.buf),
                        "version = 0.1.0\npool.1.name = shop\npool.1.worker.7.pid = 42\n"));

    struct saved *saved = read_back(&text);
    struct saved_in root = saved_root(saved);
    struct saved_in its_pool = saved_item(&root, "pool", 1);
    struct saved_in its_worker = saved_item(&its_pool, "worker", 7);
    assert_string_equal(saved_get(&root, "version"), "0.1.0");
    assert_string_equal(saved_get(&its_pool, "name"), "shop");
    assert_int_equal(saved_number(&its_worker, "pid", 100, 0), 42);
    assert_null(saved_get(&its_worker, "nothing"));
    assert_null(saved_get(&its_worker, "control_fd"));
    assert_null(saved_get(&root, "name"));
    saved_free(saved);
    saved_text_done(&text);
}

static void any_value_comes_back_as_it_was(void **state)
{
    static const char *const values[] = {"",    " ",  "a = b",        "two\nlines\n",
                                         "\\n", "\\", "\xc3\xa4 \x01"};
    struct saved_text text = {.error = 0};
    struct saved_out out = saved_begin(&text);
    (void)state;

    for (uint32_t i = 0; i < ARRAY_LEN(values); i++) {
        struct saved_out item = saved_out_item(&out, "value", i);
        saved_put(&item, "text", values[i]);
    }
    struct saved *saved = read_back(&text);
    struct saved_in root = saved_root(saved);
    for (uint32_t i = 0; i < ARRAY_LEN(values); i++) {
        struct saved_in item = saved_item(&root, "value", i);
        assert_string_equal(saved_get(&item, "text"), values[i]);
    }
    saved_free(saved);
    saved_text_done(&text);
}

static struct saved *read_text(const char *text, unsigned *ret_line)
{
    return saved_read(span_of(text), ret_line);
}

static void keys_that_nobody_asks_for_do_no_harm(void **state)
{
    unsigned line;
    struct saved *saved = read_text("of-a-later.build.3.x = 1\nversion = 2\n", &line);
    struct saved_in root = saved_root(saved);
    (void)state;

    assert_non_null(saved);
    assert_string_equal(saved_get(&root, "version"), "2");
    saved_free(saved);
}

static void what_is_no_number_or_too_large_is_the_default(void **state)
{
    unsigned line;
    struct saved *saved =
        read_text("a = 12\nb = 12x\nc = -1\nd = 99999999999999999999\ne = \n", &line);
    struct saved_in root = saved_root(saved);
    (void)state;

    assert_int_equal(saved_number(&root, "a", 12, 5), 12);
    assert_int_equal(saved_number(&root, "a", 11, 5), 5);
    assert_int_equal(saved_number(&root, "b", 100, 5), 5);
    assert_int_equal(saved_number(&root, "c", 100, 5), 5);
    assert_int_equal(saved_number(&root, "d", UINT64_MAX, 5), 5);
    assert_int_equal(saved_number(&root, "e", 100, 5), 5);
    assert_int_equal(saved_number(&root, "f", 100, 5), 5);
    saved_free(saved);
}

static void words_are_found_by_name_and_not_by_place(void **state)
{
    static const char *const words[] = {"idle", NULL, "busy"};
    unsigned line;
    struct saved *saved = read_text("a = busy\nb = lazy\n", &line);
    struct saved_in root = saved_root(saved);
    (void)state;

    assert_int_equal(saved_word(&root, "a", words, 3), 2);
    assert_int_equal(saved_word(&root, "b", words, 3), 3);
    assert_int_equal(saved_word(&root, "c", words, 3), 3);
    saved_free(saved);
}

static void a_text_that_is_none_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text;
        unsigned line;
    } wrong[] = {{"", 1},        {"a = 1", 1},        {"a = 1\nb\n", 2},
                 {"a=1\n", 1},   {" = 1\n", 1},       {"a = 1\n\nb = 2\n", 2},
                 {"A = 1\n", 1}, {"a = \\x\n", 1},    {"a = b\\\n", 1},
                 {"a =1\n", 1},  {"a = 1\nb =\n", 2}, {"\n", 1}};
    unsigned line;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_null(read_text(wrong[i].text, &line));
        assert_int_equal(line, wrong[i].line);
    }
    assert_null(saved_read(span_make("a = x\0y\n", 8), &line));
    assert_null(saved_read(span_make("a\0 = x\n", 7), &line));
}

static void no_bytes_at_all_lead_astray(void **state)
{
    static const char bytes[] = "a.fd = \\\n\0 1=";
    char text[64];
    unsigned seed = 1;
    unsigned line;
    (void)state;

    for (int round = 0; round < 20000; round++) {
        size_t size = (size_t)(rand_r(&seed) % (int)sizeof text);
        for (size_t i = 0; i < size; i++)
            text[i] = bytes[rand_r(&seed) % (int)sizeof bytes];
        struct saved *saved = saved_read(span_make(text, size), &line);
        if (saved) {
            struct saved_in root = saved_root(saved);
            (void)saved_get(&root, "a");
            (void)saved_number(&root, "fd", 9, 0);
        }
        saved_free(saved);
    }
}

static int open_handed(void)
{
    int fd = open("/dev/null", O_RDONLY);

    assert_true(fd > STDERR_FILENO);
    return fd;
}

static void a_descriptor_has_one_owner_and_is_closed_with_the_next_program(void **state)
{
    struct saved_text text = {.error = 0};
    struct saved_out out = saved_begin(&text);
    int fd = open_handed();
    (void)state;

    saved_put_fd(&out, "log_fd", fd);
    saved_put_number(&out, "same_fd", (uint64_t)fd);
    assert_int_equal(text.fd_count, 1);
    assert_int_equal(text.fds[0], fd);
    struct saved *saved = read_back(&text);
    struct saved_in root = saved_root(saved);
    assert_int_equal(saved_fd(&root, "log_fd"), fd);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(saved_fd(&root, "same_fd"), -1);
    assert_int_equal(saved_fd(&root, "log_fd"), -1);
    saved_close_rest(saved);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    (void)close(fd);
    saved_free(saved);
    saved_text_done(&text);
}

static void descriptors_that_nobody_takes_are_closed(void **state)
{
    struct saved_text text = {.error = 0};
    struct saved_out out = saved_begin(&text);
    struct saved_out later = saved_out_section(&out, "later");
    int a = open_handed();
    int b = open_handed();
    int number = open_handed();
    (void)state;

    saved_put_fd(&later, "fd", a);
    saved_put_fd(&out, "unknown_fd", b);
    saved_put_number(&out, "a_number", (uint64_t)number);
    struct saved *saved = read_back(&text);
    saved_close_rest(saved);
    assert_int_equal(fcntl(a, F_GETFD), -1);
    assert_int_equal(fcntl(b, F_GETFD), -1);
    assert_int_equal(fcntl(number, F_GETFD), 0);
    (void)close(number);
    saved_free(saved);
    saved_text_done(&text);
}

static void a_descriptor_that_is_not_open_or_a_standard_one_is_none(void **state)
{
    unsigned line;
    struct saved *saved =
        read_text("a_fd = 1000000\nb_fd = 1\nc_fd = 99999999999\nd_fd = x\n", &line);
    struct saved_in root = saved_root(saved);
    (void)state;

    assert_int_equal(saved_fd(&root, "a_fd"), -1);
    assert_int_equal(saved_fd(&root, "b_fd"), -1);
    assert_int_equal(saved_fd(&root, "c_fd"), -1);
    assert_int_equal(saved_fd(&root, "d_fd"), -1);
    assert_int_equal(saved_fd(&root, "e_fd"), -1);
    saved_close_rest(saved);
    assert_true(fcntl(1, F_GETFD) >= 0);
    saved_free(saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_in_sections_is_found_there),
        cmocka_unit_test(any_value_comes_back_as_it_was),
        cmocka_unit_test(keys_that_nobody_asks_for_do_no_harm),
        cmocka_unit_test(what_is_no_number_or_too_large_is_the_default),
        cmocka_unit_test(words_are_found_by_name_and_not_by_place),
        cmocka_unit_test(a_text_that_is_none_is_refused_with_its_line),
        cmocka_unit_test(no_bytes_at_all_lead_astray),
        cmocka_unit_test(a_descriptor_has_one_owner_and_is_closed_with_the_next_program),
        cmocka_unit_test(descriptors_that_nobody_takes_are_closed),
        cmocka_unit_test(a_descriptor_that_is_not_open_or_a_standard_one_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
