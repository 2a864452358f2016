/* SPDX-License-Identifier: MIT */
/*
 * What the kernel says of the threads of a process that does not say anything itself: stopped, looping in
 * C, or stuck in a call that holds Ruby's lock. Read from /proc, as far as the reader may: a file that
 * cannot be read leaves its words out. Reading takes no lock that a stuck process could hold, and is bounded
 * in threads and bytes. The parsing is pure. Master's only thread.
 */
#pragma once

#include "base/buf.h"
#include "base/span.h"

#include <stdint.h>
#include <sys/types.h>

enum { AUTOPSY_THREADS = 32, AUTOPSY_NAME = 64, AUTOPSY_WCHAN = 64 };

/* What a thread was doing when it was looked at. */
enum autopsy_call {
    AUTOPSY_UNKNOWN, /* may not be read, or makes no sense */
    AUTOPSY_RUNNING, /* on a processor, or waiting for one */
    AUTOPSY_OUTSIDE, /* blocked outside of a system call: stopped, or in a page fault */
    AUTOPSY_INSIDE   /* blocked in a system call */
};

struct autopsy_thread {
    char name[AUTOPSY_NAME];
    char state; /* as in /proc: R S D T t Z X; '?' = not known */
    char wchan[AUTOPSY_WCHAN];
    enum autopsy_call call;
    uint32_t number;   /* of the system call, with AUTOPSY_INSIDE */
    uint64_t argument; /* its first one */
};

/* Reads a line of /proc/PID/task/TID/stat: name and state. False when it is none. */
bool autopsy_parse_stat(struct span text, struct autopsy_thread *thread);

/* Reads the text of /proc/PID/task/TID/syscall. */
void autopsy_parse_call(struct span text, struct autopsy_thread *thread);

/* The name of a system call of this processor and whether its first argument is a descriptor; NULL when
 * the name is not known. */
const char *autopsy_call_name(uint32_t number, bool *ret_takes_file);

/* The state of a process, '?' when it cannot be read. */
char autopsy_state(const char *proc, pid_t pid);

/* Adds a line about each thread of the process: "thread NAME: state, wchan, system call". proc is "/proc".
 * Returns the number of threads, 0 when the process is gone. */
unsigned autopsy_write(const char *proc, pid_t pid, struct buf *out);
