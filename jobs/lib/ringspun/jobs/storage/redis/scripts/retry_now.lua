-- with: keys clock jobs priority enqueue history
-- Moves entries from a set into their queues.
-- ARGV: the namespace's prefix, 1 to write times in milliseconds, the set, milliseconds to keep a history, then the
-- entries.
-- Returns 1 for each that was moved, and else 0.
local set = key(ARGV[3])
local _, score, stamp = clock(ARGV[2])
local answers = {}
begin_writing()
for i = 5, #ARGV do
  local entry = ARGV[i]
  local moved = redis.call('ZSCORE', set, entry) and enqueue(entry, stamp)
  if moved then
    redis.call('ZREM', set, entry)
    note(moved['jid'], '"kind":"by_hand"', nil, score, ARGV[4])
  end
  answers[#answers + 1] = moved and 1 or 0
end
deal()
return answers
