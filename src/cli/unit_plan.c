/* SPDX-License-Identifier: MIT */
#include "cli/unit_plan.h"

#include "base/fd.h"
#include "base/num.h"
#include "cli/options.h"
#include "cli/which_ruby.h"
#include "config/keep.h"
#include "config/origin.h"
#include "loop/address.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Behind the times that the server itself keeps to. */
enum { START_MARGIN_S = 30, STOP_MARGIN_S = 30, SOCKET_PATH_MAX = 107, BACKLOG = 1024 };

static const char *const kept[] = {
#define ROW(name) name,
#include "cli/unit_variable.def"
#undef ROW
};

/* These decide once, here; the unit names the outcome. */
static const char *const environments[] = {"APP_ENV", "RACK_ENV", "RAILS_ENV"};

/* A growing list of strings. */
struct words {
    struct arena *arena;
    const char **items;
    size_t size;
};

static void add_word(struct words *words, const char *word)
{
    words->items = keep_grow(words->arena, words->items, words->size, sizeof *words->items);
    words->items[words->size++] = word;
}

/* The list with its NULL. */
static const char *const *finish(const struct words *words)
{
    return keep_grow(words->arena, words->items, words->size, sizeof *words->items);
}

bool unit_plan_name(const struct cli_call *call, const char *folder, char out[UNIT_NAME])
{
    if (!call->name) {
        unit_name(folder, out);
        return true;
    }
    if (!unit_is_name(call->name)) {
        cli_complain("--name is letters, digits, '_', '.' and '-': %s", call->name);
        return false;
    }
    (void)snprintf(out, UNIT_NAME, "%s", call->name);
    return true;
}

/* ---- Variables ---- */

static void keep(struct unit_plan *plan, const struct environment *shell, const char *name)
{
    const char *value = environment_get(shell, name);

    /* A line break has no place in a unit, nor anything else that systemd would leave out. */
    if (value && *value && !unit_refuse_path(value))
        environment_set(&plan->variables, name, value);
}

/* A system's services have no HOME, without which Bundler looks for one. */
static void keep_home(struct unit_plan *plan)
{
    const struct passwd *own = getpwuid(geteuid());

    if (!plan->unit.for_user && own && own->pw_dir && *own->pw_dir == '/')
        environment_set(&plan->variables, "HOME", own->pw_dir);
}

static void read_file(struct unit_plan *plan, const char *path, struct faults *faults)
{
    if (access(path, F_OK) == 0)
        (void)environment_read_file(&plan->variables, path, faults);
}

static bool find_variables(const struct cli_call *call, struct unit_plan *plan)
{
    struct environment shell = {.size = 0};
    struct faults faults = {.size = 0};
    const char *root = call->root ? call->root : "";
    const char *home = getenv("HOME");
    bool good;

    environment_copy(&shell, call->options.environ);
    environment_clean(&shell);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        keep(plan, &shell, kept[i]);
    keep_home(plan);
    plan->kept = plan->variables.size;
    for (size_t i = 0; i < ARRAY_LEN(environments); i++)
        keep(plan, &shell, environments[i]);
    read_file(plan, keep_printf(&plan->arena, "%s/etc/leat/%s.env", root, plan->name), &faults);
    if (plan->unit.for_user && home)
        read_file(plan, keep_printf(&plan->arena, "%s/.config/leat/%s.env", home, plan->name),
                  &faults);
    good = faults.size == 0;
    cli_print_faults(&faults);
    environment_done(&shell);
    return good;
}

/* The unit gets the kept ones as they were in the shell: what its file says wins at the start. */
static void list_variables(const struct cli_call *call, struct unit_plan *plan)
{
    struct unit_variable *list =
        keep_zero(&plan->arena, (plan->kept + 1) * sizeof *plan->unit.variables);
    struct environment shell = {.size = 0};

    environment_copy(&shell, call->options.environ);
    environment_clean(&shell);
    for (size_t i = 0; i < plan->kept; i++) {
        const char *item = plan->variables.items[i];
        size_t size = span_find(span_of(item), '=');
        const char *name = keep_text(&plan->arena, span_make(item, size));
        const char *value = strcmp(name, "HOME") ? environment_get(&shell, name) : item + size + 1;
        list[plan->unit.variable_size++] =
            (struct unit_variable){name, keep_text(&plan->arena, span_of(value))};
    }
    if (plan->ruby && !environment_get(&shell, "LEAT_RUBY"))
        list[plan->unit.variable_size++] = (struct unit_variable){"LEAT_RUBY", plan->ruby};
    plan->unit.variables = list;
    environment_done(&shell);
}

/* ---- The command ---- */

static const char *find_binary(struct unit_plan *plan)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);

    return keep_text(&plan->arena, span_make(path, size > 0 ? (size_t)size : 0));
}

/* What the first word of the command line meant: the folder, or a file in it. */
static const char *find_target(const struct cli_call *call, struct unit_plan *plan)
{
    const char *target = call->options.target;
    struct stat status;

    if (!target || !span_ends_with(span_of(target), span_of(".ru")) ||
        (stat(target, &status) == 0 && S_ISDIR(status.st_mode)))
        return plan->config->folder;
    target = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
    return keep_printf(&plan->arena, "%s/%s", plan->config->folder, target);
}

/* An option as it was given; a configuration file by its whole path. */
static void add_option(const struct cli_call *call, struct unit_plan *plan,
                       const struct option_row *row, struct words *words)
{
    const char *flag = keep_printf(&plan->arena, "--%s", row->name);
    const char *value = *(const char *const *)((const char *)call + row->offset);

    if (row->offset == offsetof(struct cli_call, options.binds)) {
        for (uint32_t i = 0; i < call->options.bind_size; i++) {
            add_word(words, flag);
            add_word(words, call->options.binds[i]);
        }
        return;
    }
    add_word(words, flag);
    if (row->offset == offsetof(struct cli_call, options.file) && plan->config->file)
        value = plan->config->file;
    if (row->value)
        add_word(words, value);
}

/* The given options of these groups; the environment stands there always. */
static void add_options(const struct cli_call *call, struct unit_plan *plan, unsigned groups,
                        struct words *words)
{
    size_t size;
    const struct option_row *table = options_table(&size);

    for (size_t i = 0; i < size; i++) {
        bool is_environment = table[i].offset == offsetof(struct cli_call, options.environment);
        if (call->given & 1u << i && table[i].groups & groups && !is_environment)
            add_option(call, plan, &table[i], words);
    }
}

static const char *const *make_command(const struct cli_call *call, struct unit_plan *plan,
                                       const char *verb, unsigned groups)
{
    struct words words = {.arena = &plan->arena};

    add_word(&words, find_binary(plan));
    add_word(&words, verb);
    add_word(&words, "-e");
    add_word(&words, plan->config->environment);
    add_options(call, plan, groups, &words);
    add_word(&words, find_target(call, plan));
    return finish(&words);
}

/* ---- Sockets ---- */

static bool has_ipv6(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && access("/proc/net/if_inet6", F_OK) == 0;

    fd_close(&fd);
    return has;
}

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A socket unit has one mode and one owner: Unix sockets of another one are master's to open. */
static bool fits_unit(const struct unit *unit, const struct config_listener *listener,
                      const char *path)
{
    if (strlen(path) > SOCKET_PATH_MAX)
        return false;
    return !unit->has_file ||
           (unit->mode == listener->mode && is_same_text(unit->owner, listener->user) &&
            is_same_text(unit->group, listener->group));
}

static void add_socket(struct unit_plan *plan, const struct config_listener *listener,
                       struct words *words)
{
    struct unit *unit = &plan->unit;
    struct address address;

    if (listener->optional && !has_ipv6())
        return;
    if (!address_parse(span_of(listener->address), &address))
        return;
    if (!address_is_unix(&address)) {
        add_word(words, listener->address);
    } else if (fits_unit(unit, listener, address.path)) {
        unit->has_file = true;
        unit->mode = listener->mode;
        unit->owner = listener->user;
        unit->group = listener->group;
        add_word(words, keep_text(&plan->arena, span_of(address.path)));
    }
    if (listener->backlog > unit->backlog)
        unit->backlog = listener->backlog;
}

static void list_sockets(struct unit_plan *plan)
{
    const struct config *config = plan->config;
    struct words words = {.arena = &plan->arena};

    plan->unit.backlog = BACKLOG;
    for (uint32_t i = 0; i < config->listener_size; i++)
        add_socket(plan, &config->listeners[i], &words);
    plan->unit.sockets = finish(&words);
}

/* ---- What the paths allow ---- */

static bool lies_below(const char *path, const char *const *folders)
{
    for (; path && *folders; folders++) {
        struct span folder = span_of(*folders);
        if (span_starts_with(span_of(path), folder) &&
            (path[folder.size] == '/' || path[folder.size] == '\0'))
            return true;
    }
    return false;
}

static void note_path(struct unit *unit, const char *path)
{
    static const char *const temporary[] = {"/tmp", "/var/tmp", NULL};
    static const char *const system[] = {"/usr", "/boot", "/efi", "/etc", NULL};

    unit->keeps_temporary |= lies_below(path, temporary);
    unit->writes_system |= lies_below(path, system);
}

static void note_paths(struct unit_plan *plan)
{
    const struct config *config = plan->config;
    struct unit *unit = &plan->unit;

    note_path(unit, config->folder);
    note_path(unit, config->log);
    note_path(unit, config->access_log.file);
    note_path(unit, config->control);
    if (config->pid_named)
        note_path(unit, config->pid);
    if (origin_find(config, "spool"))
        note_path(unit, config->spool);
    for (uint32_t i = 0; i < config->pool_size; i++) {
        note_path(unit, config->pools[i]->app);
        note_path(unit, config->pools[i]->log);
    }
    for (uint32_t i = 0; i < config->site_size; i++)
        note_path(unit, config->sites[i].root);
    for (uint32_t i = 0; i < config->listener_size; i++)
        if (strncmp(config->listeners[i].address, "unix:/", 6) == 0)
            note_path(unit, config->listeners[i].address + 5);
}

static void find_times(struct unit_plan *plan)
{
    const struct config_timeouts *timeouts = &plan->config->timeouts;
    uint64_t start_ms = 0;

    for (uint32_t i = 0; i < plan->config->pool_size; i++)
        if (plan->config->pools[i]->start_timeout_ms > start_ms)
            start_ms = plan->config->pools[i]->start_timeout_ms;
    plan->unit.start_s = (start_ms + 999) / 1000 + START_MARGIN_S;
    plan->unit.stop_s =
        (timeouts->drain_delay_ms + timeouts->drain_ms + timeouts->stream_drain_ms + 999) / 1000 +
        STOP_MARGIN_S;
}

/* ---- What cannot work ---- */

static bool check_words(const char *const *words)
{
    bool good = true;

    for (; *words; words++) {
        const char *reason = unit_refuse_path(*words);
        if (reason)
            cli_complain("cannot stand in a unit: \"%s\" %s", *words, reason);
        good &= !reason;
    }
    return good;
}

/* Below this only root may listen. */
static uint64_t first_free_port(void)
{
    uint64_t port = 1024;
    size_t size;
    char *text;

    if (fd_read_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", 64, &text, &size) == 0) {
        (void)num_decimal(span_first(span_make(text, size), span_find(span_of(text), '\n')), &port);
        free(text);
    }
    return port;
}

static bool check_ports(const struct unit_plan *plan)
{
    const struct config *config = plan->config;
    bool good = true;

    for (uint32_t i = 0; i < config->listener_size && plan->unit.for_user; i++) {
        struct address address;
        if (!address_parse(span_of(config->listeners[i].address), &address) ||
            address_is_unix(&address) || address_port(&address) >= first_free_port())
            continue;
        cli_complain("%s needs root: install as root, or choose a port from %u",
                     config->listeners[i].address, (unsigned)first_free_port());
        good = false;
    }
    return good;
}

/* A pool without a Ruby of its own gets the one of now, unless the pools differ. */
static bool find_rubies(struct unit_plan *plan)
{
    struct faults faults = {.size = 0};
    bool differ = false;
    bool good;

    for (uint32_t i = 0; i < plan->config->pool_size; i++) {
        struct ruby ruby = {.program = NULL};
        if (which_ruby(plan->variables.items, plan->config, plan->config->pools[i], &ruby,
                       &faults) != 0)
            continue;
        if (!plan->config->pools[i]->ruby) {
            differ |= plan->ruby && strcmp(plan->ruby, ruby.path) != 0;
            plan->ruby = keep_text(&plan->arena, span_of(ruby.path));
        }
        ruby_done(&ruby);
    }
    if (differ || (plan->ruby && unit_refuse_path(plan->ruby)))
        plan->ruby = NULL;
    good = faults.size == 0;
    cli_print_faults(&faults);
    return good;
}

/* What is missing at the start of a unit is missing now, though this shell may have it. */
static void hint_at_file(const struct unit_plan *plan, const struct faults *faults)
{
    for (size_t i = 0; i < faults->size; i++)
        if (strstr(faults->items[i].reason, "environment variable")) {
            cli_complain("the unit has its variables from %s/%s.env, not from this shell",
                         plan->unit.for_user ? "~/.config/leat" : "/etc/leat", plan->name);
            return;
        }
}

static bool load(const struct cli_call *call, struct unit_plan *plan)
{
    struct config_options options = call->options;
    struct faults faults = {.size = 0};

    options.environ = plan->variables.items;
    /* What is installed is for service: that has to be said for anything else only. */
    if (!options.default_environment)
        options.default_environment = "production";
    plan->config = config_load(&options, &faults);
    faults_print(&faults, STDERR_FILENO, "leat: ");
    hint_at_file(plan, &faults);
    faults_done(&faults);
    if (!plan->config)
        return false;
    faults_print(&plan->config->warnings, STDERR_FILENO, "leat: ");
    if (plan->config->development)
        cli_complain("a unit is for service, and the environment is development: -e production "
                     "names another");
    return !plan->config->development;
}

static void fill(const struct cli_call *call, struct unit_plan *plan)
{
    struct unit *unit = &plan->unit;

    unit->name = plan->name;
    unit->folder = plan->config->folder;
    unit->start = make_command(call, plan, "start", CLI_TAKES_CONFIG);
    unit->reload = make_command(call, plan, "reload", CLI_TAKES_PLACE);
    list_sockets(plan);
    note_paths(plan);
    find_times(plan);
}

bool unit_plan_make(const struct cli_call *call, bool for_user, struct unit_plan *ret_plan)
{
    struct faults faults = {.size = 0};
    char *folder = config_find_folder(&call->options, &faults);
    bool good;

    *ret_plan = (struct unit_plan){.unit = {.for_user = for_user}};
    faults_done(&faults);
    if (call->options.daemonize)
        cli_complain("-d has no place in a unit: systemd wants the server in the foreground");
    good = !call->options.daemonize && folder && unit_plan_name(call, folder, ret_plan->name);
    free(folder);
    if (!good || !find_variables(call, ret_plan) || !load(call, ret_plan))
        return false;
    fill(call, ret_plan);
    good = check_words(ret_plan->unit.start) & check_words(ret_plan->unit.sockets) &
           check_ports(ret_plan);
    if (!good || !find_rubies(ret_plan))
        return false;
    list_variables(call, ret_plan);
    return true;
}

void unit_plan_done(struct unit_plan *plan)
{
    environment_done(&plan->variables);
    config_free(plan->config);
    arena_done(&plan->arena);
}
