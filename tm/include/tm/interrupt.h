/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For the entry of interrupt handlers that contain transactions. A host's port calls these functions; programs call the
 * port's own.
 */
#ifndef TM_INTERRUPT_H
#define TM_INTERRUPT_H

#include <tm/port.h>

TM_DECLARATIONS_BEGIN

struct tm_transaction;

/*
 * Makes the context of an interrupt level, created beforehand, the current one. `program_counter` points to that of the
 * interrupted code, and may be set back by a few instructions; it is null if interrupts cannot hit the host's guarded
 * stores. `stack_pointer` is that of the interrupted code.
 *
 * A level is entered only while it is not in use, and left in the reverse order, on the same processor (or thread).
 */
void tm_interrupt_enter(struct tm_transaction *level, uintptr_t *program_counter, uintptr_t stack_pointer);
void tm_interrupt_leave(struct tm_transaction *level);

/*
 * Makes a context with its sets, for a thread or an interrupt level, or reuses one whose thread has gone. Null without
 * memory. May allocate. `levels`: the linked list of interrupt levels that can interrupt it, or null.
 */
struct tm_transaction *tm_transaction_create(bool is_interrupt_level);
void tm_transaction_add_level(struct tm_transaction *transaction, struct tm_transaction *level);

/*
 * Ends a context when its thread ends. It rolls back an open transaction and then returns false. It does not restore
 * the dying stack up to `stack_end`.
 */
bool tm_transaction_destroy(struct tm_transaction *transaction, uintptr_t stack_end);

/*
 * Frees the memory that handlers of a level have freed in their transactions. On the level's own processor, outside of
 * its handlers. May wait.
 */
void tm_level_drain(struct tm_transaction *level);

/* Gives back the memory of all contexts. None of them is in use. */
void tm_contexts_free(void);

TM_DECLARATIONS_END

#endif
