/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

/* The only file that there is. One per program, as the function that is replaced is. */
static const char *installed;

static int fake_access(const char *path, int mode)
{
    (void)mode;
    return installed && strcmp(path, installed) == 0 ? 0 : -1;
}

#define access fake_access
#include "config/allocator.c"
#undef access

static void the_library_is_found_where_distributions_keep_it(void **state)
{
    static const char *const places[] = {"/usr/lib/" MULTIARCH "/" NAME, "/usr/lib64/" NAME,
                                         "/usr/lib/" NAME, "/usr/local/lib/" NAME};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        installed = places[i];
        assert_string_equal(allocator_find(), places[i]);
    }
}

static void a_missing_library_is_named_with_the_remedy(void **state)
{
    (void)state;
    installed = NULL;
    assert_null(allocator_find());
    assert_non_null(strstr(allocator_missing(), NAME));
    assert_non_null(strstr(allocator_missing(), "apt-get install libjemalloc2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_is_found_where_distributions_keep_it),
        cmocka_unit_test(a_missing_library_is_named_with_the_remedy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
