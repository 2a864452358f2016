/* SPDX-License-Identifier: MIT */
#include "pool/ruby.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/span.h"
#include "pool/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef LEAT_PREFIX
#define LEAT_PREFIX "/usr/local"
#endif

enum { ANSWER_MS = 20000, ANSWER_BYTES = 4096, VERSION_BYTES_MAX = 65536 };

/* Prints path, version and ABI, one a line. No gems, no RUBYOPT: it must not load the application's. */
static const char question[] =
    "require 'rbconfig'; puts RbConfig.ruby, RUBY_VERSION, RbConfig::CONFIG['ruby_version']";

void ruby_done(struct ruby *ruby)
{
    free(ruby->program);
    free(ruby->path);
    free(ruby->version);
    free(ruby->abi);
    *ruby = (struct ruby){.program = NULL};
}

/* Reads until end of file; the rest of a child that says nothing for too long is not waited for. */
static size_t read_answer(int fd, char *out, size_t room)
{
    uint64_t end_ms = clock_ms() + ANSWER_MS;
    size_t size = 0;

    while (size < room && clock_ms() < end_ms) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t got;
        if (poll(&ready, 1, (int)(end_ms - clock_ms())) == -1 && errno != EINTR)
            break;
        if (!ready.revents)
            continue;
        got = read(fd, out + size, room - size);
        if (got == -1 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    return size;
}

static int end_child(pid_t pid)
{
    int status = 0;

    (void)spawn_signal(pid, SIGKILL);
    while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
        ;
    return status;
}

static bool take_line(struct span *rest, char **ret_line)
{
    struct span line = span_split(rest, '\n');

    if (line.size == 0)
        return false;
    *ret_line = strndup(line.data, line.size);
    return *ret_line != NULL;
}

static bool read_lines(struct span answer, struct ruby *ruby)
{
    return take_line(&answer, &ruby->path) && take_line(&answer, &ruby->version) &&
           take_line(&answer, &ruby->abi);
}

static const char *find_variable(char *const *list, const char *name)
{
    size_t length = strlen(name);

    for (; list && *list; list++)
        if (strncmp(*list, name, length) == 0 && (*list)[length] == '=' && (*list)[length + 1])
            return *list + length + 1;
    return NULL;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat first;
    struct stat second;

    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* Ruby tells its own name; when the way it was found is another name of the same file (and not a version
 * manager's shim), that is the one the operator knows. */
static void prefer_known_path(struct ruby *ruby, char *const *list)
{
    struct span rest = span_of(find_variable(list, "PATH"));
    char path[PATH_MAX];

    if (strchr(ruby->program, '/'))
        rest = span_of("");
    (void)snprintf(path, sizeof path, "%s", ruby->program);
    do {
        struct span folder = span_split(&rest, ':');
        if (folder.size)
            (void)snprintf(path, sizeof path, "%.*s/%s", SPAN_ARG(folder), ruby->program);
    } while (access(path, X_OK) == -1 && rest.data);
    if (*path != '/' || !is_same_file(path, ruby->path))
        return;
    free(ruby->path);
    ruby->path = must_copy(path);
}

/* Asks one candidate; false with the reason in words. */
static bool ask(const struct ruby_options *options, const char *program, struct ruby *ret_ruby,
                char *reason, size_t room)
{
    char *argv[] = {must_copy(program), "--disable=gems,did_you_mean,rubyopt", "-e",
                    (char *)(uintptr_t)question, NULL};
    struct ruby ruby = {.program = argv[0]};
    struct spawn spawn = {.argv = argv,
                          .environ = options->environ,
                          .folder = options->folder,
                          .account = options->account,
                          .files = options->files,
                          .in = -1,
                          .err = -1,
                          .umask = UINT32_MAX};
    char answer[ANSWER_BYTES];
    const char *step = "";
    int pipes[2];
    size_t size;
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC) == -1) {
        (void)snprintf(reason, room, "%s", strerror(errno));
        ruby_done(&ruby);
        return false;
    }
    spawn.out = pipes[1];
    pid = spawn_start(&spawn, &step);
    fd_close(&pipes[1]);
    size = pid > 0 ? read_answer(pipes[0], answer, sizeof answer) : 0;
    fd_close(&pipes[0]);
    if (pid < 0)
        (void)snprintf(reason, room, "%s: %s", step, strerror(-pid));
    else
        (void)end_child(pid);
    if (pid > 0 && read_lines(span_make(answer, size), &ruby)) {
        prefer_known_path(&ruby, options->environ);
        *ret_ruby = ruby;
        return true;
    }
    if (pid > 0)
        (void)snprintf(reason, room, "it does not run here (see its message on standard error)");
    ruby_done(&ruby);
    return false;
}

/* Where RubyGems keeps what it has compiled, for a library that is a gem's; native.rb knows both places. */
static bool is_in_gem(const char *library, const char *abi)
{
    struct span gem = span_first(span_of(library), span_find_last(span_of(library), '/'));
    struct span gems = span_first(gem, span_find_last(gem, '/'));
    char pattern[PATH_MAX];
    glob_t found = {.gl_pathc = 0};
    bool is_found;

    (void)snprintf(pattern, sizeof pattern, "%.*s/../extensions/*/%s%.*s/leat/%s/leat_ext.so",
                   SPAN_ARG(gems), abi, SPAN_ARG(span_skip(gem, gems.size)), abi);
    is_found = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    return is_found;
}

static int check_extension(const struct ruby *ruby, const char *library, struct faults *faults)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/leat/%s/leat_ext.so", library, ruby->abi);
    if (access(path, R_OK) == 0 || is_in_gem(library, ruby->abi))
        return 0;
    faults_add(faults, NULL, 0, 0, "ruby",
               "%s (%s) has no extension of this server at %s; build it: make extension RUBY=%s, "
               "or with that Ruby: gem install leat",
               ruby->path, ruby->version, path, ruby->path);
    return -1;
}

int ruby_find(const struct ruby_options *options, struct ruby *ret_ruby, struct faults *faults)
{
    const char *chosen = options->configured;
    struct ruby ruby;
    char reason[200];

    if (!chosen)
        chosen = find_variable(options->environ, "LEAT_RUBY");
    if (chosen) {
        if (!ask(options, chosen, &ruby, reason, sizeof reason)) {
            faults_add(faults, NULL, 0, 0, "ruby", "%s: %s", chosen, reason);
            return -1;
        }
    } else if (!ask(options, "ruby", &ruby, reason, sizeof reason)) {
        char other[200];
        if (!ask(options, "/usr/bin/ruby", &ruby, other, sizeof other)) {
            faults_add(faults, NULL, 0, 0, "ruby",
                       "no Ruby: `ruby` from PATH: %s; /usr/bin/ruby: %s", reason, other);
            return -1;
        }
    }
    if (check_extension(&ruby, options->library, faults) != 0) {
        ruby_done(&ruby);
        return -1;
    }
    *ret_ruby = ruby;
    return 0;
}

/* `folder`/`below` as an absolute path when it holds leat/boot.rb, else NULL. */
static char *try_library(struct span folder, const char *below)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%.*s%s/leat/boot.rb", SPAN_ARG(folder), below) >=
            (int)sizeof path ||
        access(path, R_OK) == -1)
        return NULL;
    path[strlen(path) - strlen("/leat/boot.rb")] = '\0';
    return realpath(path, NULL);
}

char *ruby_find_library(const char *named, const char *binary, struct faults *faults)
{
    struct span folder = span_first(span_of(binary), span_find_last(span_of(binary), '/'));
    char *found = NULL;

    if (named && *named) {
        found = try_library(span_of(named), "");
        if (!found) {
            faults_add(faults, NULL, 0, 0, "LEAT_LIB", "there is no leat/boot.rb below %s", named);
            return NULL;
        }
        return found;
    }
    found = try_library(folder, "/../lib");
    if (!found)
        found = try_library(folder, "/../../lib");
    if (!found)
        found = try_library(span_of(LEAT_PREFIX), "/lib");
    if (!found)
        faults_add(faults, NULL, 0, 0, NULL,
                   "the Ruby files of this server (leat/boot.rb) are neither beside %s nor "
                   "below " LEAT_PREFIX "/lib; LEAT_LIB names their folder",
                   binary);
    return found;
}

char *ruby_library_version(const char *library)
{
    static const char before[] = "VERSION = \"";
    char path[PATH_MAX];
    char *version = NULL;
    const char *start;
    char *text;
    size_t size;

    (void)snprintf(path, sizeof path, "%s/leat/version.rb", library);
    if (fd_read_file(path, VERSION_BYTES_MAX, &text, &size) != 0)
        return NULL;
    start = strstr(text, before);
    if (start && strchr(start + strlen(before), '"')) {
        version = must_copy(start + strlen(before));
        *strchr(version, '"') = '\0';
    }
    free(text);
    return version;
}
