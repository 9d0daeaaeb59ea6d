-- with: keys clock jobs history priority find limits
-- Moves entries to the end of a queue. ARGV: the namespace's prefix, "queue" or "set" and its name, the queue, milliseconds to keep
-- a history; then for each its entry, and the one that takes its place. Returns 1 for each that was moved, and else 0;
-- and nothing for the last ones, when it has compared too many.
local is_set, name, to = ARGV[2] == 'set', ARGV[3], ARGV[4]
local _, score = clock()
local answers = {}
begin_writing()
redis.call('SADD', key('queues'), to)
for i = 6, #ARGV, 2 do
  if has_compared_enough() then break end
  local entry = ARGV[i]
  local there = is_set and redis.call('ZSCORE', key(name), entry) or not is_set and stands_in(name, entry)
  if there then
    local pushed = line_up(to, ARGV[i + 1], 'LPUSH')
    if type(pushed) == 'table' then
      deal()
      return redis.error_reply(pushed.err)
    end
    if is_set then
      redis.call('ZREM', key(name), entry)
    else
      remove_from(name, entry)
      if name == QUARANTINE then give_place_back(entry) end
    end
    note(jid_of(ARGV[i + 1]), '"kind":"by_hand"', nil, score, ARGV[5])
  end
  answers[#answers + 1] = there and 1 or 0
end
deal()
return answers
