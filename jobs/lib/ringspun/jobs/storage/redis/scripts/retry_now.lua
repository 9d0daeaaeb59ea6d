-- with: keys clock jobs enqueue
-- Moves entries from a set into their queues.
-- ARGV: the namespace's prefix, 1 to write times in milliseconds, the set, then the entries.
-- Returns 1 for each that was moved, and else 0.
local set = key(ARGV[3])
local _, _, stamp = clock(ARGV[2])
local answers = {}
begin_writing()
for i = 4, #ARGV do
  local entry = ARGV[i]
  local moved = redis.call('ZSCORE', set, entry) and enqueue(entry, stamp)
  if moved then redis.call('ZREM', set, entry) end
  answers[#answers + 1] = moved and 1 or 0
end
return answers
