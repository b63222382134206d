# Unit tests (cmocka, as TAP) and fuzz targets (libFuzzer); included by the Makefile.
#   make test                 all unit tests, with sanitizers; SANITIZE=thread chooses others
#   make fuzz [FUZZ_SECONDS=60]

FUZZ_SECONDS ?= 60
FUZZ_CC ?= clang

UNIT_TESTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/test_*.c))
FUZZERS := $(patsubst tests/%.c,build-fuzz/%,$(wildcard tests/fuzz_*.c))

ifeq ($(SANITIZE),)
test:
	$(Q)$(MAKE) --no-print-directory SANITIZE=address,undefined test
else
# One failing program must not hide those behind it; what the tests provoke on standard error shows only on failure.
test: $(UNIT_TESTS)
	$(Q)status=0; for t in $^; do CMOCKA_MESSAGE_OUTPUT=TAP $$t 2>$$t.log || { cat $$t.log; status=1; }; done; exit $$status
endif

# Everything but main() is linked to each test.
$(BUILD)/tests/%: tests/%.c $(filter-out $(BUILD)/main.o,$(OBJECTS)) $(BUILD)/flags
	$(Q)mkdir -p $(@D)
	$(Q)$(if $(V),,echo "  TEST $@" >&2;) $(CC) $(ALL_CFLAGS) -Isrc $(LDFLAGS) $(filter-out %/flags,$^) $(LIBS) -lcmocka -o $@

# The sources once, with coverage; then each fuzzer with its own main().
FUZZ_FLAGS = -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all $(DEFINES) $(INCLUDES) -Isrc
FUZZ_OBJECTS := $(patsubst src/%.c,build-fuzz/%.o,$(filter-out src/main.c,$(SOURCES)))

build-fuzz/%.o: src/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

build-fuzz/%: tests/%.c $(FUZZ_OBJECTS)
	$(Q)$(if $(V),,echo "  FUZZ $@" >&2;) $(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer $^ $(LIBS) -o $@

# What a fuzzer has found worth keeping stays in its corpus, so the next run begins there. Messages about each refused
# input would be all that one sees (close_fd_mask); providers keep what they allocate once (tests/leaks.supp).
fuzz: $(FUZZERS)
	$(Q)for f in $^; do mkdir -p $$f.corpus && LSAN_OPTIONS=suppressions=tests/leaks.supp $$f -max_total_time=$(FUZZ_SECONDS) \
		-max_len=4096 -timeout=10 -close_fd_mask=2 -print_final_stats=1 -artifact_prefix=$$f. $$f.corpus || exit 1; done

.SECONDARY: $(FUZZ_OBJECTS)
-include $(FUZZ_OBJECTS:.o=.d)

.PHONY: test fuzz
