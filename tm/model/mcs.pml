/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The MCS lock (tm/include/tm/lock/mcs.h, tm/lock/mcs.c): tm_mcs_lock_try_acquire, tm_mcs_lock_acquire with tm_mcs_lock_wait, and
 * tm_mcs_lock_release with tm_mcs_lock_hand_over. Each thread has one node, for all its rounds.
 *
 * Right: safety THREADS=3
 * Right: progress THREADS=3
 * Right: safety THREADS=3 STORES=3
 * Right: progress STORES=3
 * Wrong: safety NO_WAIT_FOR_LINK: invalid end state
 * Wrong: safety STORES=3 EXCHANGE_WITHOUT_RELEASE: invalid end state
 * Wrong: progress STORES=3 EXCHANGE_WITHOUT_RELEASE: acceptance cycle
 * Wrong: safety STORES=3 TRY_WITHOUT_RELEASE: invalid end state
 * Wrong: safety STORES=3 LINK_WITHOUT_RELEASE: invalid end state
 * Wrong: safety STORES=3 HAND_OVER_WITHOUT_RELEASE: assertion violated (memory[0]==
 * Wrong: safety STORES=3 RELEASE_WITHOUT_RELEASE: assertion violated (memory[0]==
 */

/* After DATA: the lock's word, which is the last node plus 1, and the nodes. */
#define TAIL 1
#define NEXT(self) (2 + 2 * (self))
#define WAITING(self) (3 + 2 * (self))
#define WORDS (2 + 2 * THREADS)
#define FIFO
#define is_free (memory[TAIL] == 0)

#include "section.pml"

#ifdef TRY_WITHOUT_RELEASE
#define before_try(self) settled(self, TAIL)
#else
#define before_try(self) fenced(self)
#endif
#ifdef EXCHANGE_WITHOUT_RELEASE
#define before_exchange(self) settled(self, TAIL)
#else
#define before_exchange(self) fenced(self)
#endif
#ifdef RELEASE_WITHOUT_RELEASE
#define before_release(self) settled(self, TAIL)
#else
#define before_release(self) fenced(self)
#endif
#ifdef LINK_WITHOUT_RELEASE
#define LINK_ORDER 0
#else
#define LINK_ORDER ORDERED
#endif
#ifdef HAND_OVER_WITHOUT_RELEASE
#define HAND_OVER_ORDER 0
#else
#define HAND_OVER_ORDER ORDERED
#endif

inline acquire(self) {
	byte previous;

	atomic { can_store(self) -> store(self, NEXT(self), 0) }
	if
	:: atomic {
		/* tm_mcs_lock_try_acquire, and its caller does not insist */
		if
		:: memory[TAIL] == 0 && before_try(self) -> memory[TAIL] = self + 1; arrive(self); goto acquired
		:: memory[TAIL] != 0
		fi
	}
	atomic { can_store(self) -> store(self, NEXT(self), 0) }
	:: true
	fi;
	atomic {
		before_exchange(self) ->
		previous = memory[TAIL];
		memory[TAIL] = self + 1;
		arrive(self)
	}
	if
	:: previous != 0 ->
		/* tm_mcs_lock_wait */
		atomic { can_store(self) -> store(self, WAITING(self), 1) }
		atomic { can_store(self) -> store_bits(self, NEXT(previous - 1), 255, self + 1, LINK_ORDER); previous = 0 }
		load(self, WAITING(self)) == 0
	:: else
	fi;
acquired:
}

inline release(self) {
	byte next;

	if
	:: load(self, NEXT(self)) == 0 ->
		atomic {
			if
			:: memory[TAIL] == self + 1 && before_release(self) -> memory[TAIL] = 0; goto released
			:: memory[TAIL] != self + 1
			fi
		}
	:: else
	fi;
#ifdef NO_WAIT_FOR_LINK
	if
	:: load(self, NEXT(self)) == 0 -> goto released
	:: else
	fi;
#endif
	/* tm_mcs_lock_hand_over */
	atomic { load(self, NEXT(self)) != 0 -> next = load(self, NEXT(self)) }
	atomic { can_store(self) -> store_bits(self, WAITING(next - 1), 255, 0, HAND_OVER_ORDER); next = 0 }
released:
}

#include "threads.pml"
