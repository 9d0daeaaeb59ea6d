-- with: keys clock jobs history
-- Moves entries to the end of a queue. ARGV: the namespace's prefix, "queue" or "set" and its key, the queue, milliseconds to keep
-- a history; then for each its entry, and the one that takes its place. Returns 1 for each that was moved, and else 0.
local is_set, from, to = ARGV[2] == 'set', ARGV[3], queue_key(ARGV[4])
local _, score = clock()
local answers = {}
begin_writing()
for i = 6, #ARGV, 2 do
  local there = is_set and redis.call('ZSCORE', from, ARGV[i]) or not is_set and redis.call('LPOS', from, ARGV[i], 'RANK', -1)
  if there then
    -- This may be refused, where the key has another type. So it comes before the entry is taken away.
    redis.call('LPUSH', to, ARGV[i + 1])
    redis.call('SADD', key('queues'), ARGV[4])
    if is_set then redis.call('ZREM', from, ARGV[i]) else redis.call('LREM', from, -1, ARGV[i]) end
    note(jid_of(ARGV[i + 1]), '"kind":"by_hand"', nil, score, ARGV[5])
  end
  answers[#answers + 1] = there and 1 or 0
end
return answers
