/* A send queue that several threads share (kernels/rdma/shared_queue.hpp), in spin's words. Two
 * threads post two entries and one to a ring of two blocks, and wait for the last; a card carries
 * them out.
 *
 * What is written without an order of its own is late: it stays with its writer until `memory`
 * delivers it, in any order. A fence is the wait until it was delivered. So a run is any order of
 * stores and DMA that the fences allow.
 *
 * Each of the names below, defined, plants one fault; check.sh says that spin finds it. */
#define POSTERS 2
#define ENTRIES 3
#define BLOCKS 2
#define ENTRY(position) entry[(position) % BLOCKS]
#define MARK(position) mark[(position) % BLOCKS]

#ifdef ONE_CREDIT_MORE
#define CREDITS (BLOCKS + 1)
#else
#define CREDITS BLOCKS
#endif

byte under_way, reserved, published, polled, completed;
bit ringing, looking;
byte mark[BLOCKS];  /* the end of the range that begins there */
byte entry[BLOCKS]; /* its position + 1 */
byte record, doorbell;
byte completions; /* that the card has written */
bit payload[ENTRIES];

/* Not delivered yet: position + 1, or 0. */
byte late_entry[POSTERS], late_mark[POSTERS], late_record, late_payload;

inline fence(late) { late == 0 }

inline look() {
  atomic { busy = looking; looking = 1 }
  if
  :: busy
  :: else ->
    count = 0;
    do
    :: completions > polled ->
      polled++;
      count++;
      assert(polled <= published) /* it is of an entry that is known to be under way */
    :: else -> break
    od;
    completed = polled;
    under_way = under_way - count;
    looking = 0
  fi
}

inline publish() {
  do
  ::
#ifndef MARK_WITHOUT_FENCE
    fence(late_mark[me]);
#endif
    atomic { busy = ringing; ringing = 1 }
    if
    :: busy -> break
    :: else
    fi;
    end = published;
    begin = end;
    do
    :: MARK(end) > end -> end = MARK(end)
    :: else -> break
    od;
#ifdef OUT_OF_ORDER
    end = (end < position + 1 -> position + 1 : end);
#endif
    if
    :: end != begin ->
#ifndef PUBLISHED_AFTER_DOORBELL
      published = end;
#endif
      late_record = end;
#ifndef DOORBELL_BEFORE_RECORD
      fence(late_record);
#endif
      doorbell = end;
      fence(late_record);
#ifdef PUBLISHED_AFTER_DOORBELL
      published = end;
#endif
    :: else
    fi;
    ringing = 0;
#ifdef NO_SECOND_LOOK
    break
#else
    if
    :: MARK(end) > end
    :: else -> break
    fi
#endif
  od
}

proctype poster(byte me, entries) {
  byte position, begin, end, count;
  bit busy;
  do
  :: entries == 0 -> break
  :: entries > 0 ->
    do
    :: atomic { under_way < CREDITS -> under_way++; break }
    :: completions > polled && !looking -> look()
    od;
    atomic { position = reserved; reserved++ }
    assert(position < completed + BLOCKS);

    late_entry[me] = position + 1;
#ifndef RELEASE_DROPPED
    fence(late_entry[me]);
#endif
    late_mark[me] = position + 1;
    publish();
    atomic { entries--; begin = 0; end = 0; count = 0; busy = 0 }
  od;
  do
  :: completed > position -> break
  :: completions > polled && !looking -> look()
  od;
  assert(payload[position])
}

proctype card() {
  byte seen, next;
  do
  :: doorbell != seen ->
    seen = doorbell;
    assert(record >= seen);
    do
    :: next < record ->
      assert(ENTRY(next) == next + 1);
      late_payload = next + 1;
#ifndef COMPLETION_BEFORE_PAYLOAD
      fence(late_payload);
#endif
      next++;
      completions++;
      fence(late_payload)
    :: else -> break
    od
  :: next == ENTRIES -> break
  od
}

proctype memory() {
end:
  do
  :: late_record != 0 -> atomic { record = late_record; late_record = 0 }
  :: late_payload != 0 -> atomic { payload[late_payload - 1] = 1; late_payload = 0 }
  :: atomic { late_entry[0] != 0 -> ENTRY(late_entry[0] - 1) = late_entry[0]; late_entry[0] = 0 }
  :: atomic { late_entry[1] != 0 -> ENTRY(late_entry[1] - 1) = late_entry[1]; late_entry[1] = 0 }
  :: atomic { late_mark[0] != 0 -> MARK(late_mark[0] - 1) = late_mark[0]; late_mark[0] = 0 }
  :: atomic { late_mark[1] != 0 -> MARK(late_mark[1] - 1) = late_mark[1]; late_mark[1] = 0 }
  od
}

init {
  atomic {
    run poster(0, 2);
    run poster(1, 1);
    run card();
    run memory()
  }
}
