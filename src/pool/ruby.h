/* SPDX-License-Identifier: MIT */
/*
 * The Ruby of a pool: which program it is, its version, and where our Ruby files and the extension for
 * its ABI are. Starts a short-lived child to ask; master's only thread.
 */
#pragma once

#include "base/fault.h"
#include "pool/account.h"

#include <stdbool.h>
#include <sys/resource.h>

struct ruby {
    char *program; /* owned; as it is exec'd, a path or a name found through PATH */
    char *path;    /* owned; where that Ruby says it is */
    char *version; /* owned; "3.1.2" */
    char *abi;     /* owned; "3.1.0" */
};

struct ruby_options {
    const char *configured; /* `ruby:` or NULL */
    const char *folder;     /* of the application */
    char *const *environ;   /* what the application will get */
    const struct account *account;
    const struct rlimit *files;
    const char *library; /* folder that holds leat/boot.rb */
};

/* Finds the Ruby and checks that the extension for it is there. 0, or -1 with a fault that says the
 * remedy. */
int ruby_find(const struct ruby_options *options, struct ruby *ret_ruby, struct faults *faults);

/* Frees what it owns. */
void ruby_done(struct ruby *ruby);

/* The version that the Ruby files in that folder say they have; the caller frees it, NULL when they say
 * none. */
char *ruby_library_version(const char *library);

/* The folder that holds leat/boot.rb: `named` (LEAT_LIB) if not NULL, else beside the binary's folder,
 * else where it was installed. The caller frees it; NULL with a fault. */
char *ruby_find_library(const char *named, const char *binary, struct faults *faults);
