/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/options.c"

static void options_are_kept_when_their_memory_is_written_over(void **state)
{
    char port[] = "80", bind[] = "localhost", variable[] = "A=b";
    const char *binds[] = {bind};
    char *environ_list[] = {variable, NULL};
    struct config_options options = {.port = port,
                                     .binds = binds,
                                     .bind_size = 1,
                                     .environ = environ_list,
                                     .cwd = "/",
                                     .quiet = true};
    struct config_options *copy = config_options_copy(&options);
    (void)state;

    memset(port, 0, sizeof(port));
    memset(bind, 0, sizeof(bind));
    memset(variable, 0, sizeof(variable));
    assert_string_equal(copy->port, "80");
    assert_string_equal(copy->binds[0], "localhost");
    assert_string_equal(copy->environ[0], "A=b");
    assert_null(copy->environ[1]);
    assert_null(copy->file);
    assert_true(copy->quiet);
    config_options_free(copy);
    config_options_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_kept_when_their_memory_is_written_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
