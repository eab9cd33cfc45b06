# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   make bench-stm      measures transactions of both libraries and of GCC's own, and a spinlock in their place (run.sh)

BENCH_WORKLOADS = words list hash_table tree main
BENCH_FOLDER = $(BUILD)/check/stm
BENCHES = spinlock itm-tl2 itm-2pl plain-tl2 plain-2pl $(BENCHES_$(HOST))
BENCH_PROGRAMS = $(BENCHES:%=$(BENCH_FOLDER)/bench-%$(ELF))
CHECK_PROGRAMS += $(BENCH_PROGRAMS)
BENCHES_user = $(if $(HAS_LIBITM),itm-libitm)
HAS_LIBITM = $(shell echo 'int main(void) { return 0; }' | $(CC) -x c - -litm -o /dev/null 2>/dev/null && echo yes)

# bench_backend,NAME
define bench_backend
BENCH_OBJECTS_$(1) = $$(BENCH_WORKLOADS:%=$$(BUILD)/check/stm/bench/$(1)-%.o) $$(CHECK_HOST_OBJECTS) \
	$$(CHECK_LIBC_$$(HOST))

$$(BUILD)/check/stm/bench/$(1)-%.o: check/stm/bench/%.c check/stm/bench/backend_$(1).h
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) -fbuiltin -Wno-clobbered $$(BENCH_CFLAGS_$(1)) -include check/stm/bench/backend_$(1).h -c $$< -o $$@
endef
$(foreach backend,itm plain spinlock,$(eval $(call bench_backend,$(backend))))

BENCH_CFLAGS_itm = $(CFLAGS_GNU_TM)

$(BENCH_FOLDER)/bench-itm-%$(ELF): $(BENCH_OBJECTS_itm) $(BUILD)/libtm-%.a
	$(CC) $(LDFLAGS) $^ -o $@

$(BENCH_FOLDER)/bench-plain-%$(ELF): $(BENCH_OBJECTS_plain) $(BUILD)/libtm-%.a
	$(CC) $(LDFLAGS) $^ -o $@

# Of the library only the lock, and on bare harts memory.
$(BENCH_FOLDER)/bench-spinlock$(ELF): $(BENCH_OBJECTS_spinlock) $(BUILD)/libtm-2pl.a
	$(CC) $(LDFLAGS) $^ -o $@

# The port and the locks are those of the host part.
$(BENCH_FOLDER)/bench-itm-libitm: $(BENCH_OBJECTS_itm) $(BUILD)/libtm-lock.a
	$(CC) $(LDFLAGS) $^ -litm -o $@

bench-stm: $(BENCH_PROGRAMS)
	check/stm/bench/run.sh $(BENCH_FOLDER) $(BUILD)/stm.jsonl

.PHONY: bench-stm
