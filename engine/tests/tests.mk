# Unit tests (cmocka, as TAP) and fuzz targets (libFuzzer); included by the Makefile.
#   make test                 all unit tests, with sanitizers; SANITIZE=thread chooses others
#   make fuzz [FUZZ_SECONDS=60]
#   make analyze (or lint)    gcc's analyzer and clang-tidy over the sources
#   make tested               every build that a test uses

FUZZ_SECONDS ?= 60
FUZZ_CC ?= clang

UNIT_TESTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/test_*.c))
FUZZERS := $(patsubst tests/%.c,build-fuzz/%,$(wildcard tests/fuzz_*.c))

# Tests of the verbs backend have fakes in the place of libibverbs and librdmacm, which are not linked: a call that a fake lacks is
# an error of the linker, and none reaches a device.
FAKE_VERBS := $(wildcard tests/fake_verbs*.c)
FAKE_LIBS = $(filter-out -libverbs -lrdmacm,$(LIBS))
ifeq ($(VERBS),)
UNIT_TESTS := $(filter-out $(BUILD)/tests/test_verbs_%,$(UNIT_TESTS))
FUZZERS := $(filter-out %/fuzz_verbs_address,$(FUZZERS))
endif

# They look into the backend's own files.
ifeq ($(OFI),)
UNIT_TESTS := $(filter-out %/test_cxi $(BUILD)/tests/test_ofi_%,$(UNIT_TESTS))
endif

ifeq ($(SANITIZE),)
# The fuzzers only for a moment: what they found before lies in their corpora.
test:
	$(Q)status=0; $(MAKE) --no-print-directory SANITIZE=address,undefined test || status=1; \
	if command -v $(FUZZ_CC) >/dev/null; then $(MAKE) --no-print-directory FUZZ_SECONDS=3 fuzz || status=1; \
	else echo "1..1"; echo "ok - the fuzzers # SKIP no $(FUZZ_CC) here"; fi; exit $$status
else
# One failing program must not hide those behind it; what the tests provoke on standard error shows only on failure.
test: $(UNIT_TESTS)
	$(Q)status=0; for t in $^; do CMOCKA_MESSAGE_OUTPUT=TAP $$t 2>$$t.log || { cat $$t.log; status=1; }; done; exit $$status
endif

# Tests that run side by side find these done, and do not build them at the same time.
tested: all hooks check-tool sanitized-address,undefined sanitized-thread
sanitized-address,undefined sanitized-thread: sanitized-%:
	$(Q)$(MAKE) HOOKS= SANITIZE=$* all

# Everything but main() is linked to each test.
$(BUILD)/tests/%: tests/%.c $(filter-out $(BUILD)/main.o,$(OBJECTS)) $(BUILD)/flags $(wildcard tests/*.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(if $(V),,echo "  TEST $@" >&2;) $(CC) $(ALL_CFLAGS) $(DEFINES) $(LDFLAGS) $(filter-out %/flags %.h %/perch $(DOUBLES),$^) $(LIBS) -lcmocka -o $@

$(BUILD)/tests/test_verbs_%: tests/test_verbs_%.c $(FAKE_VERBS) $(filter-out $(BUILD)/main.o,$(OBJECTS)) $(BUILD)/flags $(wildcard tests/*.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(if $(V),,echo "  TEST $@" >&2;) $(CC) $(ALL_CFLAGS) $(DEFINES) $(LDFLAGS) $(filter-out %/flags %.h %.so.1 $(DOUBLES),$^) $(FAKE_LIBS) -lcmocka -o $@

# For tests/bench/run: optimised as the program is.
$(BUILD)/own_cost: ../tests/bench/own_cost.c $(filter-out $(BUILD)/main.o,$(OBJECTS)) $(BUILD)/flags
	$(Q)$(CC) $(ALL_CFLAGS) $(HARDENING) $(LDFLAGS) $(filter-out %/flags,$^) $(LIBS) -o $@

# Test doubles of the GPU runtimes, under the names that the real ones have; never sanitized, as those are not.
DOUBLES := $(addprefix $(BUILD)/doubles/,libcuda.so.1 libamdhip64.so libhsa-runtime64.so.1 libze_loader.so.1)

doubles: $(DOUBLES)

$(BUILD)/doubles/libcuda.so.1: tests/doubles/fake_cuda.c
$(BUILD)/doubles/libamdhip64.so: tests/doubles/fake_rocm.c
$(BUILD)/doubles/libze_loader.so.1: tests/doubles/fake_ze.c
$(filter-out %/libhsa-runtime64.so.1,$(DOUBLES)): tests/doubles/fake_gpu.c tests/doubles/fake_gpu.h
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) -O1 -g -fPIC -shared -fvisibility=hidden -Wl,-soname,$(@F) $(filter %.c,$^) -o $@

# HSA lies beneath HIP, and must be the same library here: it exports what the other has allocated.
$(BUILD)/doubles/libhsa-runtime64.so.1: $(BUILD)/doubles/libamdhip64.so
	$(Q)ln -sf $(<F) $@

$(BUILD)/tests/test_gpu $(BUILD)/tests/test_gpu_near $(BUILD)/tests/test_verbs_gpu: $(DOUBLES)

# libmlx5 registers as the test's own libibverbs does.
$(BUILD)/doubles/libmlx5.so.1: tests/doubles/fake_mlx5.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) -O1 -g -fPIC -shared -fvisibility=hidden -Wl,-soname,$(@F) $< -o $@

$(BUILD)/tests/test_verbs_gpu: private LDFLAGS += -Wl,--export-dynamic-symbol=ibv_reg_dmabuf_mr
$(BUILD)/tests/test_verbs_gpu: $(BUILD)/doubles/libmlx5.so.1
$(BUILD)/tests/test_verbs_rate: private LDFLAGS += -Wl,--wrap=job_rate_places

# It plays hosts with other pages, and sees what the kernel is asked.
$(BUILD)/tests/test_memory: private LDFLAGS += -Wl,--wrap=sysconf,--wrap=madvise

# It starts the program that lies a folder above it.
$(BUILD)/tests/test_meet_lines: $(BUILD)/perch

# The sources once, with coverage; then each fuzzer with its own main().
FUZZ_FLAGS = -std=c11 -D_GNU_SOURCE -g1 -O1 -fsanitize=address,undefined -fno-sanitize-recover=all $(DEFINES) $(INCLUDES)
FUZZ_OBJECTS := $(patsubst src/%.c,build-fuzz/%.o,$(filter-out src/main.c,$(SOURCES)))

build-fuzz/%.o: src/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

build-fuzz/%: tests/%.c $(FUZZ_OBJECTS) $(wildcard tests/*.h)
	$(Q)$(if $(V),,echo "  FUZZ $@" >&2;) $(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer $(filter-out %.h,$^) $(LIBS) -o $@

build-fuzz/fuzz_verbs_%: tests/fuzz_verbs_%.c $(FAKE_VERBS) $(FUZZ_OBJECTS) $(wildcard tests/*.h)
	$(Q)$(if $(V),,echo "  FUZZ $@" >&2;) $(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer $(filter-out %.h,$^) $(FAKE_LIBS) -o $@

# What a fuzzer has found worth keeping stays in its corpus, so the next run begins there. Each is one test of TAP; what it
# says, and the input that ended it, lie beside it.
fuzz: $(FUZZERS)
	$(Q)echo "1..$(words $^)"; status=0; for f in $^; do name=$${f##*/}; mkdir -p $$f.corpus; \
	if $$f -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -rss_limit_mb=1024 -close_fd_mask=2 -artifact_prefix=$$f. \
		$$f.corpus >$$f.log 2>&1; then echo "ok - $$name: $$(grep ^Done $$f.log)"; \
	else status=1; echo "not ok - $$name"; tail -n 60 $$f.log | sed 's/^/# /'; fi; done; exit $$status

.SECONDARY: $(FUZZ_OBJECTS)
-include $(FUZZ_OBJECTS:.o=.d)

# gcc's analyzer without its search for leaks: gcc 12 loses sight of what is handed out by its first member (sessions), kept
# in a library's structure, or closed by a cleanup function that makes exceptions; the sanitizer's own search runs with
# every test. Errors only with the version that this list was made for: others find other things.
ANALYZE_FLAGS := -std=c11 -D_GNU_SOURCE -O1 $(WARNINGS) -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-file-leak
ANALYZE_FLAGS += $(if $(filter 12,$(shell gcc -dumpversion)),,-Wno-error)

build-analyze/%.o: src/%.c
	$(Q)mkdir -p $(@D)
	$(Q)gcc $(ANALYZE_FLAGS) $(DEFINES) $(INCLUDES) -MMD -MP -c $< -o $@

# .clang-tidy says what is looked for
build-analyze/%.tidy: build-analyze/%.o .clang-tidy
	$(Q)clang-tidy --quiet src/$*.c -- -std=c11 -D_GNU_SOURCE $(DEFINES) $(INCLUDES) 2>/dev/null
	$(Q)touch $@

ANALYZED := $(SOURCES:src/%.c=build-analyze/%.o)
analyze: $(ANALYZED:.o=.tidy)
lint: analyze

.SECONDARY: $(ANALYZED)
-include $(ANALYZED:.o=.d)

.PHONY: test doubles fuzz analyze lint tested sanitized-address,undefined sanitized-thread
