/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/cli.c"

#include <fcntl.h>

/* The verbs note that they were called, and with what. */
static struct {
    const char *verb;
    char target[256];
    char cwd[256];
    int argc;
    bool daemonize, help;
} called;

static int note(const struct cli_call *call)
{
    called.verb = call->verb->name;
    (void)snprintf(called.target, sizeof(called.target), "%s",
                   call->options.target ? call->options.target : "none");
    (void)snprintf(called.cwd, sizeof(called.cwd), "%s", call->options.cwd);
    called.argc = call->argc;
    called.daemonize = call->options.daemonize;
    called.help = call->help;
    return 42;
}

#define NOTED(name)                       \
    int name(const struct cli_call *call) \
    {                                     \
        return note(call);                \
    }
NOTED(cli_start)
NOTED(cli_stop)
NOTED(cli_restart)
NOTED(cli_reopen)
NOTED(cli_status)
NOTED(cli_top)
NOTED(cli_memory)
NOTED(cli_install)
NOTED(cli_uninstall)
NOTED(cli_healthcheck)
NOTED(cli_check)
NOTED(cli_print)
NOTED(cli_version)
NOTED(cli_help)
NOTED(cli_not_yet)

static char said[4096];

/* Runs a command line that ends in NULL and keeps what it says on standard error. */
static int run_line(char **words)
{
    int size = 0, status, real = dup(STDERR_FILENO);
    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    ssize_t length;

    while (words[size])
        size++;
    memset(&called, 0, sizeof(called));
    assert_true(file != -1 && dup2(file, STDERR_FILENO) != -1);
    status = cli_run(size, words, NULL);
    assert_int_not_equal(dup2(real, STDERR_FILENO), -1);
    length = pread(file, said, sizeof(said) - 1, 0);
    said[length > 0 ? length : 0] = '\0';
    (void)close(file);
    (void)close(real);
    return status;
}

#define RUN(...) run_line((char *[]){"leat", __VA_ARGS__, NULL})

static void no_verb_means_start(void **state)
{
    (void)state;

    assert_int_equal(run_line((char *[]){"leat", NULL}), 42);
    assert_string_equal(called.verb, "start");
    assert_string_equal(called.target, "none");
    assert_int_equal(RUN("-d", "/tmp"), 42);
    assert_string_equal(called.verb, "start");
    assert_string_equal(called.target, "/tmp");
    assert_true(called.daemonize);
}

static void every_verb_is_found_wherever_its_options_stand(void **state)
{
    (void)state;

    assert_int_equal(RUN("status", "--json", "/srv"), 42);
    assert_string_equal(called.verb, "status");
    assert_string_equal(called.target, "/srv");
    assert_int_equal(RUN("-C", "x.yml", "stop", "--now"), 42);
    assert_string_equal(called.verb, "stop");
    assert_int_equal(RUN("top"), 42);
    assert_string_equal(called.verb, "top");
}

static void a_verb_wins_over_a_folder_of_its_name(void **state)
{
    char folder[] = "/tmp/leat-cli-XXXXXX";
    int here = open(".", O_RDONLY | O_DIRECTORY);
    (void)state;

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir("stop", 0700), 0);
    assert_int_equal(mkdir("shop", 0700), 0);
    assert_int_equal(RUN("stop"), 42);
    assert_string_equal(called.verb, "stop");
    assert_int_equal(RUN("shop"), 42);
    assert_string_equal(called.verb, "start");
    assert_string_equal(called.target, "shop");
    assert_int_equal(RUN("start", "stop"), 42);
    assert_string_equal(called.target, "stop");
    assert_int_equal(rmdir("stop") | rmdir("shop") | fchdir(here) | rmdir(folder), 0);
    (void)close(here);
}

static void an_unknown_word_names_the_nearest_verb(void **state)
{
    (void)state;

    assert_int_equal(RUN("satus"), CLI_USAGE);
    assert_null(called.verb);
    assert_string_equal(said, "leat: there is no verb and no folder \"satus\"; the nearest verb is "
                              "\"status\"\n");
}

static void a_path_that_is_not_there_is_for_the_verb_to_judge(void **state)
{
    (void)state;

    assert_int_equal(RUN("./nowhere"), 42);
    assert_string_equal(called.target, "./nowhere");
}

static void a_wrong_command_line_is_a_usage_error(void **state)
{
    (void)state;

    assert_int_equal(RUN("--prot"), CLI_USAGE);
    assert_string_equal(said, "leat: unknown option --prot; the nearest is --port\n");
    assert_int_equal(RUN("stop", "--json"), CLI_USAGE);
    assert_string_equal(said, "leat: stop takes no --json\n");
    assert_int_equal(RUN("stop", "a", "b"), CLI_USAGE);
    assert_string_equal(said, "leat: stop cannot do with \"b\"; `leat help stop` says what it "
                              "takes\n");
    assert_int_equal(RUN("version", "x"), CLI_USAGE);
    assert_null(called.verb);
}

static void help_and_version_are_options_too(void **state)
{
    (void)state;

    assert_int_equal(RUN("stop", "--help", "--json"), 42);
    assert_true(called.help);
    assert_string_equal(called.verb, "stop");
    assert_int_equal(RUN("-V"), 42);
    assert_string_equal(called.verb, "start");
}

static void the_current_folder_keeps_the_link_that_led_here(void **state)
{
    char folder[] = "/tmp/leat-cli-XXXXXX", link[64], former[4096];
    int here = open(".", O_RDONLY | O_DIRECTORY);
    (void)state;

    (void)snprintf(former, sizeof(former), "%s", getenv("PWD") ? getenv("PWD") : "");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(link, sizeof(link), "%s-link", folder);
    assert_int_equal(symlink(folder, link), 0);
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(setenv("PWD", link, 1), 0);
    assert_int_equal(run_line((char *[]){"leat", NULL}), 42);
    assert_string_equal(called.cwd, link);
    assert_int_equal(setenv("PWD", "/usr", 1), 0);
    assert_int_equal(run_line((char *[]){"leat", NULL}), 42);
    assert_string_equal(called.cwd, folder);
    assert_int_equal(setenv("PWD", former, 1) | fchdir(here) | unlink(link) | rmdir(folder), 0);
    (void)close(here);
}

static void every_verb_has_its_words(void **state)
{
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        assert_ptr_equal(cli_find_verb(verbs[i].name), &verbs[i]);
        assert_non_null(verbs[i].run);
        assert_non_null(verbs[i].summary);
        assert_non_null(verbs[i].group);
    }
    assert_null(cli_find_verb("stat"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_verb_means_start),
        cmocka_unit_test(every_verb_is_found_wherever_its_options_stand),
        cmocka_unit_test(a_verb_wins_over_a_folder_of_its_name),
        cmocka_unit_test(an_unknown_word_names_the_nearest_verb),
        cmocka_unit_test(a_path_that_is_not_there_is_for_the_verb_to_judge),
        cmocka_unit_test(a_wrong_command_line_is_a_usage_error),
        cmocka_unit_test(help_and_version_are_options_too),
        cmocka_unit_test(the_current_folder_keeps_the_link_that_led_here),
        cmocka_unit_test(every_verb_has_its_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
