/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The fair queued reader/writer lock (tm/include/tm/lock/queued_rw.h, tm/lock/queued_rw.c). Labels and comments are the functions' names
 * there. Its queue is a fair lock (queued.pml), and here a line of threads.
 *
 * First come, first served: who queues up is served in that order, and nobody passes a writer that is the head of the queue and has said so.
 *
 * Right: safety THREADS=3
 * Right: safety THREADS=3 STORES=3 ROUNDS=1
 * Right: safety STORES=3
 * Right: progress THREADS=3
 * Wrong: safety THREADS=3 READER_STAYS_COUNTED: invalid end state
 * Wrong: safety READER_DOES_NOT_WAIT: assertion violated
 * Wrong: safety WRITER_IGNORES_READERS: assertion violated
 * Wrong: safety WAITING_IGNORED: assertion violated
 * Wrong: safety STORES=3 WRITER_WITHOUT_RELEASE: assertion violated
 */

/* After DATA: the lock's word. */
#define WORD 1
#define WORDS 2
#define SHARED
#define is_free (memory[WORD] == 0 && empty(queue))

/* In the word. */
#define WRITER 1
#define WAITING 2
#define READER 4
#ifdef WAITING_IGNORED
#define WRITER_MASK WRITER
#else
#define WRITER_MASK (WAITING | WRITER)
#endif

#include "section.pml"

#ifdef WRITER_WITHOUT_RELEASE
#define WRITER_ORDER 0
#else
#define WRITER_ORDER ORDERED
#endif

chan queue = [THREADS] of { byte };
/* A writer is the head of the queue and has said so in the word. */
bool is_awaited;

/* tm_queued_lock_acquire and tm_queued_lock_release, of a fair lock */
inline queue_acquire(self) {
	queue!self;
	queue?[eval(self)]
}

inline queue_release(self) {
	atomic { fenced(self) -> queue?eval(self) }
}

inline read_acquire(self) {
	/* tm_queued_rw_lock_read_acquire */
	atomic {
		settled(self, WORD) ->
		memory[WORD] = memory[WORD] + READER;
		if
		:: (memory[WORD] & WRITER_MASK) == 0 -> assert(!is_awaited); goto read_acquired
		:: else
		fi
	}
	/* tm_queued_rw_lock_read_wait */
#ifndef READER_STAYS_COUNTED
	atomic { settled(self, WORD) -> memory[WORD] = memory[WORD] - READER }
#endif
	queue_acquire(self);
#ifndef READER_STAYS_COUNTED
	atomic { settled(self, WORD) -> memory[WORD] = memory[WORD] + READER; assert(!is_awaited) }
#endif
#ifndef READER_DOES_NOT_WAIT
	(load(self, WORD) & WRITER) == 0;
#endif
	queue_release(self);
read_acquired:
}

inline read_release(self) {
	/* tm_queued_rw_lock_read_release */
	atomic { fenced(self) -> memory[WORD] = memory[WORD] - READER }
}

inline acquire(self) {
	/* tm_queued_rw_lock_write_acquire */
	atomic {
		if
		:: memory[WORD] == 0 && settled(self, WORD) -> assert(!is_awaited); memory[WORD] = WRITER; goto acquired
		:: load(self, WORD) != 0
		fi
	}
	/* tm_queued_rw_lock_write_wait */
	queue_acquire(self);
	atomic { settled(self, WORD) -> memory[WORD] = memory[WORD] | WAITING; is_awaited = true }
	atomic {
#ifdef WRITER_IGNORES_READERS
		(memory[WORD] & WRITER_MASK) == WAITING && settled(self, WORD) ->
		memory[WORD] = (memory[WORD] & ~WAITING) | WRITER;
#else
		memory[WORD] == WAITING && settled(self, WORD) ->
		memory[WORD] = WRITER;
#endif
		is_awaited = false
	}
	queue_release(self);
acquired:
}

inline release(self) {
	/* tm_queued_rw_lock_write_release */
	atomic { can_store(self) -> store_bits(self, WORD, WRITER, 0, WRITER_ORDER) }
}

#include "threads.pml"
