-- with: keys clock jobs history release priority find limits
-- Moves entries to the dead. ARGV: the namespace's prefix, "queue" or "set", its name, milliseconds to keep a history, then the
-- entries. Returns 1 for each that was moved, and else 0; and nothing for the last ones, when it has compared too many.
local is_set, name, dead = ARGV[2] == 'set', ARGV[3], key('dead')
local _, score = clock()
local answers = {}
begin_writing()
-- Raises, before anything is taken away, where the key of the dead has another type.
redis.call('ZCARD', dead)
for i = 5, #ARGV do
  if has_compared_enough() then break end
  local entry = ARGV[i]
  local taken
  if is_set then
    taken = redis.call('ZREM', key(name), entry)
  else
    taken = remove_from(name, entry)
  end
  if taken == 1 then
    release_lock_of(entry)
    if name == QUARANTINE then give_place_back(entry) end
    redis.call('ZADD', dead, score, entry)
    note(jid_of(entry), '"kind":"killed"', nil, score, ARGV[4])
  end
  answers[#answers + 1] = taken
end
deal()
return answers
