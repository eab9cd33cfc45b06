# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   make check-stm          validates transactions of both libraries, with as many threads as there are processors and with 16 times as many
#   make check-stm-tsan     the same under ThreadSanitizer
#
# OPERATIONS=N: transactions of each test, all threads together. SEED=N: 0 and up.

STM_VALIDATE_OPERATIONS = $(or $(OPERATIONS),50000)
STM_VALIDATE_SEED = $(or $(SEED),1)

STM_VALIDATE = validate_main.c validate_words.c validate_nesting.c validate_memory.c validate_locks.c \
	validate_interrupts.c litmus.c validate_host_$(HOST).c $(STM_VALIDATE_$(HOST))
STM_VALIDATE_user = validate_joining.c $(STM_VALIDATE_user_$(ARCH))
# Breakpoints, and the processor's trap flag, which a program can set for itself.
STM_VALIDATE_user_x86_64 = validate_stepping.c stepping_cases.c
STM_VALIDATE_OBJECTS = $(call objects,$(STM_VALIDATE:%=check/stm/%)) $(CHECK_HOST_OBJECTS)
STM_VALIDATE_PROGRAMS = $(foreach library,tl2 2pl,$(BUILD)/check/stm/validate-$(library)$(ELF))
CHECK_PROGRAMS += $(STM_VALIDATE_PROGRAMS)

# The program looks at what the library allocates, and at who waits.
comma = ,
STM_VALIDATE_WRAPPED = tm_port_allocate tm_port_free $(if $(filter validate_stepping.c,$(STM_VALIDATE)),tm_port_yield)
$(STM_VALIDATE_PROGRAMS): $(BUILD)/check/stm/validate-%$(ELF): $(STM_VALIDATE_OBJECTS) $(BUILD)/libtm-%.a
	$(CC) $(LDFLAGS) $(STM_VALIDATE_WRAPPED:%=-Wl$(comma)--wrap=%) $^ -o $@

# What many threads on few processors may bring out.
STM_CROWDED = words,nesting,freed_list,exclusion,litmus,interrupts
STM_CROWD = 16
STM_CROWDED_THREADS = $(shell echo $$(($(STM_CROWD) * $$(nproc))))

check-stm: check-stm-tl2 check-stm-2pl

check-stm-tl2 check-stm-2pl: check-stm-%: $(BUILD)/check/stm/validate-%$(ELF)
	$< operations=$(STM_VALIDATE_OPERATIONS) seed=$(STM_VALIDATE_SEED)
	$< operations=$(STM_VALIDATE_OPERATIONS) seed=$(STM_VALIDATE_SEED) threads=$(STM_CROWDED_THREADS) tests=$(STM_CROWDED)

# ThreadSanitizer knows neither functions that return twice, after which its stack of calls would hold some that are over (it is told of no
# calls), nor fences, which the library has besides accesses with orders.
check-stm-tsan:
	$(MAKE) BUILD=$(BUILD)/tsan OPERATIONS=$$(($(STM_VALIDATE_OPERATIONS) / 10)) STM_CROWD=4 LDFLAGS='$(LDFLAGS) -fsanitize=thread' \
		OPTIONS='$(OPTIONS) -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -Wno-tsan -DTM_HTM_OFF' check-stm

.PHONY: check-stm check-stm-tl2 check-stm-2pl check-stm-tsan
