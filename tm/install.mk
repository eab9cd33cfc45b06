# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Installation; included by the Makefile.
#
#   make install           libraries, headers, files for pkg-config and manual pages, below $(DESTDIR)$(PREFIX)
#   make check-install     uses an installation as the README says
#   make check-man         holds the manual pages to the headers
#   make check-width       compiles for processors of 32 bits
#   make check-alone       builds a copy of this folder, to which nothing else of the repository belongs
#
# Variables: DESTDIR, PREFIX, LIBDIR, INCLUDEDIR, MANDIR. <tm/port.h> is the host's, so each HOST, and each processor's
# user programs, want a PREFIX of their own.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
INSTALL ?= install

VERSION = 0.1.0

INSTALLED_LIBRARIES = libtm-tl2.a libtm-2pl.a libtm.a
# Shared objects, for user programs. The soname changes with the first number; while that is 0, whenever callers have to
# be compiled again.
SONAME_VERSION = 0
INSTALLED_SHARED_user = libtm-tl2.so.$(VERSION) libtm-2pl.so.$(VERSION)
INSTALLED_SHARED = $(INSTALLED_SHARED_$(HOST))
# <tm/arch.h>, and what its variants share, are for the library's own sources.
INSTALLED_HEADERS = $(filter-out tm/arch/%,$(shell cd include && find tm -name '*.h' | sort))
INSTALLED_HEADERS_PORT = $(shell cd port/$(HOST) && find tm -name '*.h' | sort)
# <tm/htm/xmetatm.h> includes it.
INSTALLED_HEADERS_riscv64 = arch/riscv64/xmetatm.h
# Headers and start code of programs on bare harts.
INSTALLED_HEADERS_bare = $(RUNTIME)/bare.h port/bare/harts.h port/bare/clones.h
INSTALLED_START_bare = $(BARE_START) $(RUNTIME)/link.ld port/bare/clones.ld

# Threads keep pointers to functions of the library, so it stays loaded.
$(BUILD)/libtm-tl2.so.$(VERSION): $(TL2_OBJECTS)
$(BUILD)/libtm-2pl.so.$(VERSION): $(2PL_OBJECTS)
$(BUILD)/libtm-%.so.$(VERSION): stm/shared.map
	$(CC) -shared $(LDFLAGS) -Wl,-soname,libtm-$*.so.$(SONAME_VERSION) -Wl,-Bsymbolic-functions -Wl,-z,defs,-z,nodelete \
		-Wl,--version-script=stm/shared.map $(filter %.o,$^) -o $@

# What -ltm-2pl finds: a linker's script, because a shared object alone cannot make it an error to link with both.
$(BUILD)/libtm-%_nonshared.a: stm/one_library.c
	$(CC) $(CFLAGS) $(if $(filter tl2,$*),$(AS_TL2),$(AS_2PL)) -DTM_SHARED=$* -c $< -o $(@:.a=.o)
	rm -f $@
	$(AR) rcs $@ $(@:.a=.o)

$(BUILD)/libtm-%.so: FORCE
	@mkdir -p $(@D)
	printf '/* GNU ld script */\nEXTERN(tm_shared_$*)\nINPUT(libtm-$*.so.$(SONAME_VERSION) libtm-$*_nonshared.a)\n' >$@

INSTALLED_FOR_LINKING = $(if $(INSTALLED_SHARED),$(foreach name,tl2 2pl,libtm-$(name)_nonshared.a libtm-$(name).so))

# Options for compiling and linking callers. OPTIONS change the inline functions of the headers.
USE_CFLAGS = -I$${includedir} $(USE_CFLAGS_$(HOST)) $(filter -D%,$(OPTIONS))
USE_CFLAGS_user = -pthread
USE_CFLAGS_bare = -ffreestanding $(CFLAGS_bare)
USE_LIBS_user = -pthread
USE_LIBS_bare = $(patsubst %.ld,$${libdir}/tm/%.ld,$(subst port/bare/,,$(subst $(RUNTIME)/,,$(LDFLAGS_bare)))) $(addprefix $${libdir}/tm/,$(notdir $(BARE_START)))

# use,LIBRARY,ALGORITHM: the text of a file for pkg-config.
define use
prefix=$(PREFIX)
libdir=$(LIBDIR)
includedir=$(INCLUDEDIR)

Name: $(1)
Description: Locks and software transactions ($(2))
Version: $(VERSION)
Cflags: $(USE_CFLAGS)
Libs: $(USE_LIBS_$(HOST)) -L$${libdir} $(if $(INSTALLED_SPECS),-B$${libdir}/tm) -l:lib$(1).a
endef

# GCC's driver asks this file what -fgnu-tm stands for when it links: for nothing, as the library is named already.
INSTALLED_SPECS_user = libitm.spec
INSTALLED_SPECS = $(INSTALLED_SPECS_$(HOST))
$(BUILD)/libitm.spec:
	@mkdir -p $(@D)
	echo '*link_itm: %{static: }' >$@

# Options for compiling transactions; man/tm-itm.7 has the reasons. Linking needs none of them.
GNU_TM = -fgnu-tm -fno-ipa-sra -fno-tree-pre -fno-ipa-pure-const

define use_itm
Name: tm-itm
Description: What __transaction_atomic is compiled with; link with this, tm-2pl or tm-tl2
Version: $(VERSION)
Requires: tm
Cflags: $(GNU_TM)
endef

USES = $(addprefix $(BUILD)/,tm.pc tm-2pl.pc tm-tl2.pc tm-itm.pc)
$(BUILD)/tm.pc $(BUILD)/tm-2pl.pc: ALGORITHM = two-phase locking
$(BUILD)/tm-tl2.pc: ALGORITHM = TL2
# Written anew each time, because their contents depend on the command line.
$(USES): FORCE
	@mkdir -p $(@D)
	$(file >$@,$(if $(ALGORITHM),$(call use,$(basename $(@F)),$(ALGORITHM)),$(use_itm)))
FORCE:

# Each name that a page has besides its own gets a page that includes it.
install: $(INSTALLED_LIBRARIES:%=$(BUILD)/%) $(INSTALLED_SHARED:%=$(BUILD)/%) \
		$(addprefix $(BUILD)/,$(INSTALLED_FOR_LINKING) $(INSTALLED_SPECS)) $(filter %.o,$(INSTALLED_START_$(HOST))) $(USES)
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(LIBDIR) $(INSTALLED_LIBRARIES:%=$(BUILD)/%)
	$(if $(INSTALLED_SHARED),$(INSTALL) -m 644 -t $(DESTDIR)$(LIBDIR) $(INSTALLED_FOR_LINKING:%=$(BUILD)/%))
	for library in $(INSTALLED_SHARED); do \
		$(INSTALL) -m 755 -t $(DESTDIR)$(LIBDIR) $(BUILD)/$$library || exit; \
		ln -sf $$library $(DESTDIR)$(LIBDIR)/$${library%.$(VERSION)}.$(SONAME_VERSION) || exit; \
	done
	$(if $(INSTALLED_SHARED),ln -sf libtm-2pl.so $(DESTDIR)$(LIBDIR)/libtm.so)
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(LIBDIR)/pkgconfig $(USES)
	$(if $(INSTALLED_SPECS),$(INSTALL) -D -m 644 -t $(DESTDIR)$(LIBDIR)/tm $(INSTALLED_SPECS:%=$(BUILD)/%))
	$(if $(INSTALLED_START_$(HOST)),$(INSTALL) -D -m 644 -t $(DESTDIR)$(LIBDIR)/tm $(INSTALLED_START_$(HOST)))
	for header in $(INSTALLED_HEADERS:%=include/./%) $(INSTALLED_HEADERS_PORT:%=port/$(HOST)/./%); do \
		$(INSTALL) -D -m 644 $$header $(DESTDIR)$(INCLUDEDIR)/$${header#*/./} || exit; \
	done
	$(if $(INSTALLED_HEADERS_$(ARCH)),$(INSTALL) -D -m 644 -t $(DESTDIR)$(INCLUDEDIR) $(INSTALLED_HEADERS_$(ARCH)))
	$(if $(INSTALLED_HEADERS_$(HOST)),$(INSTALL) -D -m 644 -t $(DESTDIR)$(INCLUDEDIR)/tm $(INSTALLED_HEADERS_$(HOST)))
	for page in man/*.[1-9]; do \
		section=man$${page##*.}; \
		$(INSTALL) -D -m 644 -t $(DESTDIR)$(MANDIR)/$$section $$page || exit; \
		for name in $$(check/man/names $$page); do \
			[ man/$$name.$${page##*.} = $$page ] || \
				echo ".so $$section/$${page##*/}" >$(DESTDIR)$(MANDIR)/$$section/$$name.$${page##*.} || exit; \
		done; \
	done

# The installation is made for this, into a folder of its own.
check-install: $(INSTALLED_LIBRARIES:%=$(BUILD)/%)
	rm -rf $(BUILD)/installed
	$(MAKE) install DESTDIR= PREFIX=$(abspath $(BUILD))/installed
	CC=$(CC) OPTIONS='$(OPTIONS)' check/install/check $(HOST) $(abspath $(BUILD))/installed

check-man:
	check/man/check $(abspath $(BUILD))/man

check-width:
	check/width/check

check-alone:
	check/alone/check

check: check-man check-width check-install check-alone

.PHONY: install check-install check-man check-width check-alone FORCE
