# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   make check-locks        validates every lock
#   make check-locks-tsan   the same under ThreadSanitizer
#   make bench-locks        measures them, beside those of pthreads and of Concurrency Kit where that is installed

# Validation and measurement of locks: validate.c and benchmark.c are compiled for each adapter. The comparators are
# other libraries', and only measured.
ADAPTER_FOLDER = check/locks/adapters
ADAPTERS = $(basename $(notdir $(wildcard $(ADAPTER_FOLDER)/*.h)))
COMPARATORS_user = $(wildcard $(ADAPTER_FOLDER)/pthread/*.h) $(if $(HAS_CK),$(wildcard $(ADAPTER_FOLDER)/ck/*.h))
COMPARATORS = $(basename $(notdir $(COMPARATORS_$(HOST))))
HAS_CK = $(shell echo '\#include <ck_spinlock.h>' | $(CC) -E - >/dev/null 2>&1 && echo yes)
# each,NAMES: X(name) for each, as the programs have their lists.
each = '-DLOCKS=$(foreach name,$(1),X($(name)))'
CHECK_HOST_OBJECTS = $(call objects,check/host_$(HOST).c check/output.c check/words.c) $(CHECK_HOST_$(HOST))
VALIDATE = $(BUILD)/check/locks/validate$(ELF)
BENCHMARK = $(BUILD)/check/locks/benchmark$(ELF)
CHECK_PROGRAMS += $(VALIDATE) $(BENCHMARK)
vpath %.h $(ADAPTER_FOLDER) $(ADAPTER_FOLDER)/pthread $(ADAPTER_FOLDER)/ck

$(BUILD)/check/locks/validate-%.o: check/locks/validate.c %.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -include $(word 2,$^) -c $< -o $@

$(BUILD)/check/locks/benchmark-%.o: check/locks/benchmark.c %.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -include $(word 2,$^) -c $< -o $@

$(BUILD)/check/locks/validate_main.o: CFLAGS += $(call each,$(ADAPTERS))
$(BUILD)/check/locks/validate_main.o $(BUILD)/check/locks/benchmark_main.o: $(wildcard $(ADAPTER_FOLDER)/*.h)
$(VALIDATE): $(ADAPTERS:%=$(BUILD)/check/locks/validate-%.o) \
		$(call objects,check/locks/validate_main.c) $(CHECK_HOST_OBJECTS) $(BUILD)/libtm-lock.a
	$(CC) $(LDFLAGS) $^ -o $@

$(BUILD)/check/locks/benchmark_main.o: CFLAGS += $(call each,$(ADAPTERS) $(COMPARATORS))
$(BENCHMARK): $(patsubst %,$(BUILD)/check/locks/benchmark-%.o,$(ADAPTERS) $(COMPARATORS)) \
		$(call objects,check/locks/benchmark_main.c) $(CHECK_HOST_OBJECTS) $(BUILD)/libtm-lock.a
	$(CC) $(LDFLAGS) $^ -o $@

check-locks: $(VALIDATE)
	$<
	$(MAKE) BUILD=$(BUILD)/checking OPTIONS='$(OPTIONS) $(OPTIONS_CHECKING)' check-locks-checking

# With holders and counters compiled in, and with steals from everywhere in the queue.
OPTIONS_CHECKING = -DTM_CHECKING=1 -DTM_STATISTICS=1 -DTM_UNFAIR_LOCK_STEAL_TURNS_MIN=1 -DTM_UNFAIR_LOCK_STEAL_TURNS_MAX=1
check-locks-checking: $(VALIDATE)
	$< sections=10000

# ThreadSanitizer knows no hardware transactions.
check-locks-tsan:
	$(MAKE) BUILD=$(BUILD)/tsan OPTIONS='$(OPTIONS) -fsanitize=thread -DTM_HTM_OFF' \
		LDFLAGS='$(LDFLAGS) -fsanitize=thread' check-locks-checking

# The loop of a million, and who steals in it, is of the locks that may be stolen: it takes the fair ones hours.
LOOP = tests=loop locks=byte,test-and-set,unfair,paravirtualized,pthread_spin,pthread_mutex,ck_fas threads=4,8,16,32 runs=5

bench-locks: $(BENCHMARK)
	$< tests=uncontended runs=31 > $(BUILD)/locks.jsonl
	$< tests=throughput runs=5 >> $(BUILD)/locks.jsonl
	$< $(LOOP) >> $(BUILD)/locks.jsonl
	awk -f check/table.awk $(BUILD)/locks.jsonl
	$(MAKE) BUILD=$(BUILD)/statistics OPTIONS='$(OPTIONS) -DTM_STATISTICS=1' bench-locks-steals

bench-locks-steals: $(BENCHMARK)
	$< tests=loop locks=byte,test-and-set,unfair,paravirtualized threads=4,8,16,32 runs=1 > $(BUILD)/steals.jsonl
	awk -f check/table.awk $(BUILD)/steals.jsonl

.PHONY: check-locks check-locks-checking check-locks-tsan bench-locks bench-locks-steals
