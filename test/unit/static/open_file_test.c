/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "static/open_file.c"

#include <sys/stat.h>

static int temporary(size_t size)
{
    int fd = fd_temporary("/tmp");

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    return fd;
}

static struct open_file *open_temporary(size_t size, const char *name)
{
    struct resolve_identity identity;
    int fd = temporary(size);
    struct open_file *file;

    assert_true(resolve_identify(fd, &identity));
    file = open_file_new(fd, &identity, span_of(name));
    assert_non_null(file);
    return file;
}

static void tells_versions_apart_by_nanoseconds_size_and_inode(void **state)
{
    struct resolve_identity identity = {.inode = 0xabc, .size = 0x10, .modified = {1, 2}};
    struct open_file *file = open_file_new(temporary(1), &identity, span_of("a.txt"));
    (void)state;

    assert_string_equal(file->etag, "\"3b9aca02-10-abc\"");
    assert_int_equal(file->etag_size, strlen(file->etag));
    assert_memory_equal(file->modified, "Thu, 01 Jan 1970 00:00:01 GMT", OPEN_FILE_DATE);
    open_file_unref(file);
}

static void keeps_small_files_in_memory_and_large_ones_not(void **state)
{
    struct open_file *small = open_temporary(OPEN_FILE_SMALL, "a");
    struct open_file *large = open_temporary(OPEN_FILE_SMALL + 1, "a");
    struct open_file *empty = open_temporary(0, "a");
    (void)state;

    open_file_load(small, OPEN_FILE_SMALL);
    open_file_load(large, OPEN_FILE_SMALL);
    open_file_load(empty, OPEN_FILE_SMALL);
    assert_non_null(small->content);
    assert_int_equal(small->content[OPEN_FILE_SMALL - 1], 0);
    assert_null(large->content);
    assert_non_null(empty->content);
    open_file_unref(small);
    open_file_unref(large);
    open_file_unref(empty);
}

static void put_at(int fd, const char *text, off_t offset)
{
    assert_int_equal(pwrite(fd, text, strlen(text), offset), (ssize_t)strlen(text));
}

static void tells_whether_its_bytes_are_still_the_same(void **state)
{
    enum { SIZE = 100000 };
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    struct open_file *file;
    (void)state;

    file = open_temporary(SIZE, "a");
    open_file_load(file, OPEN_FILE_SMALL);
    assert_true(open_file_is_intact(file));
    assert_int_equal(fchmod(file->fd, 0600), 0);
    assert_true(open_file_is_intact(file));
    put_at(file->fd, "appended", SIZE);
    assert_true(open_file_is_intact(file));
    put_at(file->fd, "written over", SIZE - 20);
    assert_false(open_file_is_intact(file));
    open_file_unref(file);
    file = open_temporary(SIZE, "a");
    assert_int_equal(futimens(file->fd, times), 0);
    assert_false(open_file_is_intact(file));
    assert_int_equal(ftruncate(file->fd, SIZE - 1), 0);
    assert_false(open_file_is_intact(file));
    open_file_unref(file);
}

static void keeps_nothing_of_a_file_that_changed_after_it_was_looked_at(void **state)
{
    struct open_file *shorter = open_temporary(100, "a"), *rewritten = open_temporary(100, "a");
    struct timespec times[2] = {{1, 0}, {1, 0}};
    (void)state;

    assert_int_equal(ftruncate(shorter->fd, 50), 0);
    open_file_load(shorter, OPEN_FILE_SMALL);
    assert_null(shorter->content);
    assert_int_equal(futimens(rewritten->fd, times), 0);
    open_file_load(rewritten, OPEN_FILE_SMALL);
    assert_null(rewritten->content);
    open_file_unref(shorter);
    open_file_unref(rewritten);
}

static void lives_until_the_last_reference_is_gone(void **state)
{
    struct open_file *file = open_temporary(1, "a");
    int fd = file->fd;
    struct stat found;
    (void)state;

    open_file_ref(file);
    open_file_unref(file);
    assert_int_equal(fstat(fd, &found), 0);
    open_file_unref(file);
    assert_int_equal(fstat(fd, &found), -1);
    open_file_unref(NULL);
}

static bool is_fingerprinted(const char *name)
{
    return open_file_is_fingerprinted(span_of(name));
}

static void digests_of_assets_are_fingerprints(void **state)
{
    (void)state;
    assert_true(is_fingerprinted("assets/app-0123456789abcdef0123456789abcdef.js"));
    assert_true(is_fingerprinted("assets/icons/logo-1a2b3c4d.png"));
    assert_true(is_fingerprinted("blog/assets/app-1a2b3c4d.css.map"));
    assert_true(is_fingerprinted("packs/js/application-0a1b2c3d4e5f60718293.js"));
    assert_true(is_fingerprinted("assets/app-1234567890123456.js"));
}

static void other_names_are_not(void **state)
{
    static const char *const names[] = {"app-0123456789abcdef0123456789abcdef.js",
                                        "assets/app.js",
                                        "assets/app-style.css",
                                        "assets/report-20261201.pdf",
                                        "assets/app-1a2b3c4.js",
                                        "assets-1a2b3c4d",
                                        "images/assets-1a2b3c4d.png",
                                        "assets/1a2b3c4d-app.js",
                                        ""};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_false(is_fingerprinted(names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_versions_apart_by_nanoseconds_size_and_inode),
        cmocka_unit_test(keeps_small_files_in_memory_and_large_ones_not),
        cmocka_unit_test(tells_whether_its_bytes_are_still_the_same),
        cmocka_unit_test(keeps_nothing_of_a_file_that_changed_after_it_was_looked_at),
        cmocka_unit_test(lives_until_the_last_reference_is_gone),
        cmocka_unit_test(digests_of_assets_are_fingerprints),
        cmocka_unit_test(other_names_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
