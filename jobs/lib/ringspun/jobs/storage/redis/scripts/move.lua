-- with: keys clock jobs history priority
-- Moves entries to the end of a queue. ARGV: the namespace's prefix, "queue" or "set" and its name, the queue, milliseconds to keep
-- a history; then for each its entry, and the one that takes its place. Returns 1 for each that was moved, and else 0.
local is_set, name, to = ARGV[2] == 'set', ARGV[3], ARGV[4]
local _, score = clock()
local answers = {}
begin_writing()
-- Raises, before anything is taken away, where the queue's key has another type.
redis.call('LLEN', queue_key(to))
redis.call('SADD', key('queues'), to)
for i = 6, #ARGV, 2 do
  local taken
  if is_set then
    taken = redis.call('ZREM', key(name), ARGV[i])
  else
    taken = remove_from(name, ARGV[i])
  end
  if taken == 1 then
    line_up(to, ARGV[i + 1], 'LPUSH')
    note(jid_of(ARGV[i + 1]), '"kind":"by_hand"', nil, score, ARGV[5])
  end
  answers[#answers + 1] = taken
end
return answers
