/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/title.c"

#include <stdlib.h>

/* The memory of a process that was started as `leat start -q` with two variables, as the kernel lays it
 * out: one string behind the other. */
static char memory[] = "leat\0start\0-q\0HOME=/root\0LANG=C";

static void the_environment_outlives_the_title_that_takes_its_place(void **state)
{
    static char *argv[] = {memory, memory + 5, memory + 11, NULL};
    static char *variables[] = {memory + 14, memory + 25, NULL};
    char **former = environ;
    char longest[200];

    (void)state;
    title_set("nobody has given us room");
    assert_string_equal(memory, "leat");
    title_init(argv, variables);
    title_set("leat: master");
    assert_string_equal(memory, "leat: master");
    assert_string_equal(environ[0], "HOME=/root");
    assert_string_equal(environ[1], "LANG=C");
    assert_null(environ[2]);
    /* Nothing of a longer one stays behind a shorter one. */
    title_set("x");
    for (size_t i = 1; i < sizeof memory; i++)
        assert_int_equal(memory[i], 0);
    memset(longest, 'y', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    title_set(longest);
    assert_int_equal(strlen(memory), sizeof memory - 1);
    for (char **item = environ; *item; item++)
        free(*item);
    free(environ);
    environ = former;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_outlives_the_title_that_takes_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
