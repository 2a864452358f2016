/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include "base/ascii.h"
#include "base/fd.h"
#include "cli/options.h"
#include "cli/takeover.h"
#include "cli/verbs.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVE  "Serve"
#define LOOK   "Look"
#define SET_UP "Set up"

enum { HOW = CLI_TAKES_CONFIG | CLI_TAKES_PLACE };

static const struct cli_verb verbs[] = {
    {.name = "start",
     .run = cli_start,
     .takes = HOW,
     .words_max = 1,
     .has_target = true,
     .group = SERVE,
     .usage = "[DIR|FILE.ru]",
     .summary = "serve in the foreground; with -d detach once it serves",
     .text =
         "Serves the application of a folder (the current one unless named): its config.ru, or\n"
         "config/environment.rb, or else the files in public/. No verb means start.\n"
         "Exit status: 0 a stop that ended well, 1 the start failed, 2 a wrong command line,\n"
         "4 a stop that cut requests."},
    {.name = "stop",
     .run = cli_stop,
     .takes = CLI_TAKES_PLACE | CLI_TAKES_NOW,
     .words_max = 1,
     .has_target = true,
     .group = SERVE,
     .usage = "[DIR]",
     .summary = "stop gracefully: accepted requests are answered first",
     .text = "When nothing is running it says so, and that is success."},
    {.name = "restart",
     .run = cli_restart,
     .takes = HOW | CLI_TAKES_POOL,
     .words_max = 1,
     .has_target = true,
     .group = SERVE,
     .usage = "[DIR]",
     .summary = "load the application anew, new workers before old, and wait for the outcome",
     .text =
         "A release that does not load leaves the old one serving; the exception is printed and\n"
         "the exit status is 1. When nothing is running it starts, as start -d does."},
    {.name = "reload",
     .run = cli_reload,
     .takes = CLI_TAKES_PLACE,
     .words_max = 1,
     .has_target = true,
     .group = SERVE,
     .usage = "[DIR]",
     .summary = "read the configuration again, with the options of the start",
     .text =
         "A file with mistakes changes nothing: all of them are printed and the exit status is 1.\n"
         "Pools that have not changed keep their processes, requests and streams go on."},
    {.name = "reopen",
     .run = cli_reopen,
     .takes = CLI_TAKES_PLACE,
     .words_max = 1,
     .has_target = true,
     .group = SERVE,
     .usage = "[DIR]",
     .summary = "reopen the log files"},
    {.name = "upgrade",
     .run = cli_upgrade,
     .takes = CLI_TAKES_PLACE,
     .words_max = 1,
     .has_target = true,
     .group = SERVE,
     .usage = "[DIR]",
     .summary = "exchange the running program for this one, and lose nothing",
     .text =
         "The server becomes the program that is called here, under its PID, with its sockets and\n"
         "workers. One that cannot go on from there leaves the old one serving; its words are\n"
         "printed and the exit status is 1."},
    {.name = "status",
     .run = cli_status,
     .takes = CLI_TAKES_PLACE | CLI_TAKES_JSON,
     .words_max = 1,
     .has_target = true,
     .group = LOOK,
     .usage = "[DIR]",
     .summary = "pools, workers, queues and listeners",
     .text = "Exit status: 0 it runs, 3 it does not."},
    {.name = "top",
     .run = cli_top,
     .takes = CLI_TAKES_PLACE | CLI_TAKES_TIMES,
     .words_max = 1,
     .has_target = true,
     .group = LOOK,
     .usage = "[DIR]",
     .summary = "the same, live: pools, workers, queues, rates per second; q ends it",
     .text =
         "Looks once a second. Where the output is no terminal it prints one look, or -n of them.\n"
         "Exit status: 0 it runs, 3 it does not."},
    {.name = "memory",
     .run = cli_memory,
     .takes = CLI_TAKES_PLACE | CLI_TAKES_JSON,
     .words_max = 1,
     .has_target = true,
     .group = LOOK,
     .usage = "[DIR]",
     .summary = "memory of each process and each pool",
     .text =
         "Private dirty memory is what would come back if that process ended; PSS divides what is\n"
         "shared among those who share it. Exit status: 0 it runs, 3 it does not."},
    {.name = "requests",
     .run = cli_requests,
     .takes = CLI_TAKES_PLACE | CLI_TAKES_JSON,
     .words_max = 3,
     .group = LOOK,
     .usage = "[kill ID] [DIR]",
     .summary = "what runs and waits now, the oldest first; `requests kill ID` ends one",
     .text =
         "A request that waits is answered 503, one that runs 502, and is never run again; its\n"
         "worker is replaced after its other requests.\n"
         "Exit status: 0 done, 1 no request with that id, 3 the server does not run."},
    {.name = "backtrace",
     .run = cli_backtrace,
     .takes = CLI_TAKES_PLACE,
     .words_max = 1,
     .group = LOOK,
     .usage = "PID",
     .summary = "Ruby backtraces of a worker's threads",
     .text =
         "Each thread with its state, the id of the request it runs, and its frames. The worker\n"
         "goes on as if nothing had happened. One that does not answer within two seconds,\n"
         "stopped or stuck in C, is described by what the kernel says of its threads.\n"
         "Exit status: 0 printed, 1 there is no such worker, 3 nothing is running."},
    {.name = "healthcheck",
     .run = cli_healthcheck,
     .takes = CLI_TAKES_PLACE,
     .words_max = 1,
     .has_target = true,
     .group = LOOK,
     .usage = "[DIR]",
     .summary = "is it ready? for probes in images without curl",
     .text = "Exit status: 0 ready, 1 not."},
    {.name = "check",
     .run = cli_check,
     .takes = HOW,
     .words_max = 1,
     .has_target = true,
     .group = SET_UP,
     .usage = "[DIR|FILE.ru]",
     .summary = "look for mistakes in the configuration and the folders; start nothing",
     .text = "Prints every mistake as file:line:column: key: reason. Exit status: 0 none,\n"
             "1 some."},
    {.name = "print",
     .run = cli_print,
     .takes = HOW | CLI_TAKES_REFERENCE,
     .words_max = 1,
     .has_target = true,
     .group = SET_UP,
     .usage = "[DIR|FILE.ru]",
     .summary = "the settings in effect and where each came from"},
    {.name = "install",
     .run = cli_install,
     .takes = HOW | CLI_TAKES_PRINT | CLI_TAKES_UNIT,
     .words_max = 1,
     .has_target = true,
     .group = SET_UP,
     .usage = "[DIR|FILE.ru]",
     .summary = "write and enable a systemd unit, leat-NAME, with its sockets",
     .text = "The options are those that the unit shall start with; the environment is production\n"
             "unless one is named. Running it again rewrites what has changed. As root the unit is "
             "the\n"
             "system's, else one of this user. Its variables stand in /etc/leat/NAME.env."},
    {.name = "uninstall",
     .run = cli_uninstall,
     .takes = CLI_TAKES_PLACE | CLI_TAKES_UNIT,
     .words_max = 1,
     .has_target = true,
     .group = SET_UP,
     .usage = "[DIR]",
     .summary = "stop it and remove what install wrote, and nothing else"},
    {.name = "import",
     .run = cli_not_yet,
     .words_max = 1,
     .group = SET_UP,
     .usage = "FILE",
     .summary = "turn Thin's or mongrel_cluster's file into leat.yml (not yet)"},
    {.name = "apps",
     .run = cli_not_yet,
     .takes = HOW,
     .words_max = 1,
     .group = SET_UP,
     .usage = "DIR",
     .summary = "serve a folder of applications (not yet)"},
    {.name = "version", .run = cli_version, .group = SET_UP, .summary = "the version"},
    {.name = "help",
     .run = cli_help,
     .words_max = 1,
     .group = SET_UP,
     .usage = "[VERB]",
     .summary = "this list, or a verb with its options"},
};

const struct cli_verb *cli_verbs(size_t *ret_size)
{
    *ret_size = ARRAY_LEN(verbs);
    return verbs;
}

const struct cli_verb *cli_find_verb(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

const struct cli_verb *cli_nearest_verb(const char *name)
{
    const struct cli_verb *nearest = verbs;
    unsigned least = UINT_MAX;

    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        unsigned distance = ascii_distance(span_of(name), span_of(verbs[i].name));

        if (distance >= least)
            continue;
        nearest = &verbs[i];
        least = distance;
    }
    return nearest;
}

void cli_complain(const char *format, ...)
{
    va_list arguments;
    char *text;
    int size;

    va_start(arguments, format);
    size = vasprintf(&text, format, arguments);
    va_end(arguments);
    CHECK(size >= 0);
    (void)fprintf(stderr, "leat: %s\n", text);
    free(text);
}

void cli_print_faults(struct faults *faults)
{
    faults_print(faults, STDERR_FILENO, "leat: ");
    faults_done(faults);
}

struct config *cli_load(const struct cli_call *call)
{
    struct faults faults = {0};
    struct config *config = config_load(&call->options, &faults);

    cli_print_faults(&faults);
    if (config)
        faults_print(&config->warnings, STDERR_FILENO, "leat: ");
    return config;
}

/* A first word that is no verb has to be something to serve. */
static bool is_target(const char *word)
{
    return strchr(word, '/') || access(word, F_OK) == 0 || strcmp(word, "..") == 0;
}

/* Takes the verb out of the words. */
static bool find_verb(struct cli_call *call)
{
    const char *word = call->argc ? call->argv[0] : NULL;

    call->verb = word ? cli_find_verb(word) : NULL;
    if (call->verb) {
        call->argv++;
        call->argc--;
        return true;
    }
    call->verb = cli_find_verb("start");
    call->is_implied = true;
    if (!word || is_target(word))
        return true;
    cli_complain("there is no verb and no folder \"%s\"; the nearest verb is \"%s\"", word,
                 cli_nearest_verb(word)->name);
    return false;
}

/* The current folder as its user sees it: PWD keeps a symlink that leads here. The result is the
 * caller's. */
static char *current_folder(void)
{
    const char *seen = getenv("PWD");
    struct stat by_name, real;

    if (seen && seen[0] == '/' && stat(seen, &by_name) == 0 && stat(".", &real) == 0 &&
        by_name.st_dev == real.st_dev && by_name.st_ino == real.st_ino)
        return must_copy(seen);
    return getcwd(NULL, 0);
}

static bool check_words(const struct cli_call *call)
{
    if (call->argc <= call->verb->words_max)
        return true;
    cli_complain("%s cannot do with \"%s\"; `leat help %s` says what it takes", call->verb->name,
                 call->argv[call->verb->words_max], call->verb->name);
    return false;
}

/* --help and --version hold for whatever else was said. */
static int run_verb(struct cli_call *call)
{
    struct faults faults = {0};

    if (call->help)
        return cli_help(call);
    if (call->version)
        return cli_version(call);
    if (!options_check(call, &faults) || !check_words(call)) {
        cli_print_faults(&faults);
        return CLI_USAGE;
    }
    if (call->verb->has_target && call->argc)
        call->options.target = call->argv[0];
    return call->verb->run(call);
}

int cli_run(int argc, char **argv, char **environ)
{
    /* What `rails server` and `rackup` say when their user says nothing: weaker than the file. */
    struct cli_call call = {.all = argv,
                            .options = {.environ = environ,
                                        .default_port = getenv("LEAT_DEFAULT_PORT"),
                                        .default_environment = getenv("LEAT_DEFAULT_ENVIRONMENT"),
                                        .default_pid = getenv("LEAT_DEFAULT_PID")}};
    char *folder = current_folder();
    struct faults faults = {0};
    int status = CLI_USAGE;

    call.options.cwd = folder ? folder : "/";
    if (!options_read(argc - 1, argv + 1, &call, &faults))
        cli_print_faults(&faults);
    else if (cli_is_takeover())
        status = find_verb(&call) ? cli_take_over(&call) : CLI_USAGE;
    else if (find_verb(&call))
        status = run_verb(&call);
    options_done(&call);
    free(folder);
    return status;
}
