# SPDX-License-Identifier: MIT
#
# One file, no configure step. `make` builds the server and the Ruby extension, `make test` and
# `make demo` install what they need first (tools/deps.sh says what) and then run.

VERSION := $(shell sed -n 's/.*VERSION = "\(.*\)".*/\1/p' lib/leat/version.rb 2>/dev/null)
PREFIX ?= /usr/local
RUBY ?= ruby
CC = gcc
RAGEL = ragel

# Libraries of the server, by their pkg-config names.
PACKAGES = yaml-0.1 libbrotlienc libzstd zlib

# Without -j on the command line all processors are used.
ifeq ($(MAKELEVEL),0)
ifeq ($(filter -j% --jobs%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif
endif
MAKEFLAGS += --no-print-directory --no-builtin-rules
.DELETE_ON_ERROR:

WARNINGS = -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
# Ragel's output has tables that not every machine uses, and falls through on purpose.
GENERATED_WARNINGS = -Wno-unused-const-variable -Wno-implicit-fallthrough
INCLUDES = -Isrc -Ibuild/gen
PACKAGE_CFLAGS := $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
PACKAGE_LIBS := $(shell pkg-config --libs $(PACKAGES) 2>/dev/null)
BASE_CFLAGS = -std=gnu11 -D_GNU_SOURCE -g -pthread -MMD -MP $(WARNINGS) $(INCLUDES) $(PACKAGE_CFLAGS) $(EXTRA_CFLAGS)
BASE_LDFLAGS = -pthread -Wl,--as-needed $(EXTRA_LDFLAGS)
LIBS = $(PACKAGE_LIBS)

# The variants: folder, flags of the compiler, flags of the linker.
plain_DIR = build
# Small functions of other files are called for every request: a tenth of the instructions.
plain_CFLAGS = -O2 -flto -fPIE -D_FORTIFY_SOURCE=2 -fstack-protector-strong
plain_LDFLAGS = -O2 -flto=auto -pie -Wl,-z,relro,-z,now
asan_DIR = build/asan
asan_CFLAGS = -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
asan_LDFLAGS = -fsanitize=address,undefined
tsan_DIR = build/tsan
tsan_CFLAGS = -O1 -fno-omit-frame-pointer -fsanitize=thread
tsan_LDFLAGS = -fsanitize=thread

SOURCES := $(sort $(shell find src -name '*.c'))
# A grammar that others include writes no code of its own.
MACHINES := $(sort $(shell grep -ls '^[[:space:]]*%% *write' `find src -name '*.rl'` /dev/null))
GENERATED := $(MACHINES:src/%.rl=build/gen/%.c)
OBJECT_NAMES := $(SOURCES:src/%.c=%.o) $(MACHINES:src/%.rl=gen/%.o)
UNIT_SOURCES := $(sort $(shell find test/unit -name '*_test.c' 2>/dev/null))
FUZZ_SOURCES := $(sort $(shell find test/fuzz -name '*_fuzz.c' 2>/dev/null))
SYSTEM_TESTS := $(sort $(wildcard test/system/*_test.rb test/crash/*_test.rb))

# TEST=words narrows test-unit and test-system to the files whose path holds the words.
ifdef TEST
UNIT_SOURCES := $(foreach file,$(UNIT_SOURCES),$(if $(findstring $(TEST),$(file)),$(file)))
SYSTEM_TESTS := $(foreach file,$(SYSTEM_TESTS),$(if $(findstring $(TEST),$(file)),$(file)))
FUZZ_SOURCES := $(foreach file,$(FUZZ_SOURCES),$(if $(findstring $(TEST),$(file)),$(file)))
endif

.PHONY: all extension test test-unit test-fuzz test-system lint asan tsan fuzz bench gem install demo clean
.PHONY: libraries-are-there tsan-unit
all: build/leat extension

# One short line per step; V=1 shows the commands.
quiet = $(if $(filter-out 0,$(V)),,@echo '  $(1) $@';)

# ---- Building: $(call variant,name) makes the rules of one variant ----

libraries-are-there:
	@pkg-config --exists $(PACKAGES) || { echo 'libraries are missing: run tools/deps.sh build' >&2; exit 1; }

build/gen/%.c: src/%.rl $(wildcard src/*/*.rl)
	@mkdir -p $(@D)
	$(call quiet,ragel)$(RAGEL) -C -G2 -I $(<D) -o $@ $<

define variant
$(1)_OBJECTS := $$(addprefix $$($(1)_DIR)/obj/,$$(OBJECT_NAMES))
$(1)_TESTS := $$(UNIT_SOURCES:test/unit/%.c=$$($(1)_DIR)/unit/%)
$(1)_FUZZERS := $$(FUZZ_SOURCES:test/fuzz/%.c=$$($(1)_DIR)/fuzz/%)

$$($(1)_DIR)/obj/%.o: src/%.c Makefile | libraries-are-there $$(GENERATED)
	@mkdir -p $$(@D)
	$$(call quiet,cc)$$(CC) $$(BASE_CFLAGS) $$($(1)_CFLAGS) -c -o $$@ $$<

$$($(1)_DIR)/obj/gen/%.o: build/gen/%.c Makefile | libraries-are-there
	@mkdir -p $$(@D)
	$$(call quiet,cc)$$(CC) $$(BASE_CFLAGS) $$(GENERATED_WARNINGS) $$($(1)_CFLAGS) -c -o $$@ $$<

$$($(1)_DIR)/leat: $$($(1)_OBJECTS)
	$$(call quiet,ld)$$(CC) $$(BASE_LDFLAGS) $$($(1)_LDFLAGS) -o $$@ $$^ $$(LIBS)

# All but main, for programs that bring their own.
$$($(1)_DIR)/libleat.a: $$(filter-out %/cli/main.o,$$($(1)_OBJECTS))
	@rm -f $$@
	$$(call quiet,ar)ar rcs $$@ $$^

# A test includes the file under test, so it holds that file's symbols already; what else it needs
# comes from the archive. Its own definitions win, which lets it put others in their place.
$$($(1)_DIR)/unit/%_test: test/unit/%_test.c Makefile $$($(1)_DIR)/libleat.a | $$(GENERATED)
	@mkdir -p $$(@D)
	$$(call quiet,cc)$$(CC) $$(BASE_CFLAGS) $$(GENERATED_WARNINGS) $$($(1)_CFLAGS) -MF $$@.d $$(BASE_LDFLAGS) \
		$$($(1)_LDFLAGS) -Wl,-z,muldefs -o $$@ $$< $$($(1)_DIR)/libleat.a -lcmocka -lbrotlidec $$(LIBS)

# Fuzz targets with a main of ours that replays files and changes them: no other compiler needed.
$$($(1)_DIR)/fuzz/%: test/fuzz/%.c test/fuzz/replay.c $$(wildcard test/fuzz/*.h test/unit/http/*.h) Makefile $$($(1)_DIR)/libleat.a | $$(GENERATED)
	@mkdir -p $$(@D)
	$$(call quiet,cc)$$(CC) $$(filter-out -MMD -MP,$$(BASE_CFLAGS)) -Wno-missing-prototypes $$(GENERATED_WARNINGS) \
		$$($(1)_CFLAGS) $$(BASE_LDFLAGS) $$($(1)_LDFLAGS) -Wl,-z,muldefs -o $$@ $$< \
		test/fuzz/replay.c $$($(1)_DIR)/libleat.a $$(LIBS)

-include $$($(1)_OBJECTS:.o=.d) $$($(1)_TESTS:=.d)
endef
$(eval $(call variant,plain))
$(eval $(call variant,asan))
$(eval $(call variant,tsan))

# ---- The Ruby extension, one per ABI ----

ifneq ($(wildcard ext/leat/extconf.rb),)
ABI := $(shell $(RUBY) -e 'print RbConfig::CONFIG["ruby_version"]' 2>/dev/null)
EXTENSION := lib/leat/$(ABI)/leat_ext.so
EXTENSION_SOURCES := $(wildcard ext/leat/* src/base/*.[ch] src/board/*.[ch])

$(EXTENSION): $(EXTENSION_SOURCES)
	@mkdir -p build/ext/$(ABI) $(@D)
	cd build/ext/$(ABI) && $(RUBY) $(CURDIR)/ext/leat/extconf.rb >extconf.log || { cat extconf.log; exit 1; }
# All of it: its rules do not know the headers.
	$(MAKE) -B -C build/ext/$(ABI) V=0
# Moved into place: a running worker may have the former file mapped.
	cp `find build/ext/$(ABI) -name leat_ext.so | head -n 1` $@.new
	mv -f $@.new $@
extension: $(EXTENSION)
endif

# ---- Tests ----

SANITIZER_OPTIONS = ASAN_OPTIONS=detect_leaks=1:$(1) UBSAN_OPTIONS=print_stacktrace=1:$(1) TSAN_OPTIONS=$(1)
# Thread sanitizer wants its addresses where this kernel may put other things at random.
FIXED_ADDRESSES := $(shell setarch -R true 2>/dev/null && echo setarch -R)

test:
	tools/deps.sh build test
	$(MAKE) all
	$(MAKE) test-unit
	$(MAKE) test-fuzz
	$(MAKE) test-system

# Runs every program, also behind a failing one, and names those that failed.
define run_units
	@failed=''; for program in $(2); do \
		$(call SANITIZER_OPTIONS,) timeout 300 $(1) $$program || failed="$$failed $$program"; \
	done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi
endef

test-unit: $(asan_TESTS)
	$(call run_units,,$(asan_TESTS))

tsan-unit: $(tsan_TESTS)
	$(call run_units,$(FIXED_ADDRESSES),$(tsan_TESTS))

# In three processes: the tests mostly wait. TEST_JOBS=1 runs all of them in one.
RUN_SYSTEM = $(RUBY) tools/system_tests.rb $(SYSTEM_TESTS)

test-system: all
	LEAT_BINARY=$(CURDIR)/build/leat $(RUN_SYSTEM)

# Reports of the sanitized server go to files: a crash that the server heals from must not pass.
define system_with_reports
	@rm -f $(1)/report.*
	@failed=0; \
	$(call SANITIZER_OPTIONS,log_path=$(CURDIR)/$(1)/report) LEAT_BINARY=$(CURDIR)/$(1)/leat $(2) \
		$(RUN_SYSTEM) || failed=1; \
	if ls $(1)/report.* >/dev/null 2>&1; then \
		cat $(1)/report.*; echo 'the sanitizer found something'; failed=1; \
	fi; \
	exit $$failed
endef

asan: all build/asan/leat
	$(MAKE) test-unit
	$(call system_with_reports,build/asan,)

tsan: all build/tsan/leat
	$(MAKE) tsan-unit
	$(call system_with_reports,build/tsan,$(FIXED_ADDRESSES))

# Seconds of all fuzzers together. A run says its seed, and the same seed makes the same inputs again:
# make fuzz FUZZ_SEED=N. TEST=words narrows it to fuzzers with the words in their name.
FUZZ_SECONDS = 600
FUZZ_SEED = $(shell date +%s)
# The seconds of one fuzzer, at least one.
fuzz_share = $$(( ($(1) + $(words $(asan_FUZZERS)) - 1) / $(words $(asan_FUZZERS)) ))

# The given seconds and seed: first the files of test/corpus and those made of the raw cases as they are,
# then changed ones.
define run_fuzzers
	@for program in $(asan_FUZZERS); do \
		name=`basename $$program _fuzz`; \
		find test/corpus/$$name build/corpus/$$name -type f 2>/dev/null | sort | \
			$(call SANITIZER_OPTIONS,) xargs $$program -seconds $(call fuzz_share,$(1)) -seed $(2) || exit 1; \
	done
endef

build/corpus: test/corpus/http1.yml test/corpus/http1-more.yml tools/corpus.rb
	$(RUBY) tools/corpus.rb $@

test-fuzz: $(asan_FUZZERS) build/corpus
	$(call run_fuzzers,60,1)

fuzz: $(asan_FUZZERS) build/corpus
	$(call run_fuzzers,$(FUZZ_SECONDS),$(FUZZ_SEED))

lint: $(GENERATED)
	tools/deps.sh build lint
	$(RUBY) tools/lint.rb

# ---- Use ----

bench:
	tools/deps.sh build bench
	$(MAKE) all
	bench/run

demo:
	tools/deps.sh build demo
	$(MAKE) all
	tools/demo.sh

gem:
	@mkdir -p build
	gem build leat.gemspec -o build/leat-$(VERSION).gem

# The binary finds lib/ beside the folder it lies in, here as there.
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib
	install build/leat $(DESTDIR)$(PREFIX)/bin/leat
	cd lib && find . -type f | while read -r file; do \
		install -D -m 644 "$$file" "$(DESTDIR)$(PREFIX)/lib/$$file" || exit 1; \
	done

clean:
	rm -rf build lib/leat/[0-9]*
