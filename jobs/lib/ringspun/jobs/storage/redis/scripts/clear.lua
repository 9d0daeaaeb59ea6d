-- with: keys jobs release priority limits
-- Forgets entries, the oldest first. ARGV: the namespace's prefix, "queue" or "set", its name, how many at most. Returns how many it
-- has forgotten, and how many are left.
local name, most = ARGV[3], tonumber(ARGV[4])
local forgotten, left = 0, 0
begin_writing()
if ARGV[2] == 'set' then
  local some = redis.call('ZRANGE', key(name), 0, most - 1)
  for _, entry in ipairs(some) do release_lock_of(entry) end
  redis.call('ZREMRANGEBYRANK', key(name), 0, #some - 1)
  forgotten, left = #some, redis.call('ZCARD', key(name))
else
  sort(name)
  for _, list in ipairs(lists_of_queue(name)) do
    local some = forgotten < most and redis.call('LRANGE', list, forgotten - most, -1) or {}
    for _, entry in ipairs(some) do
      release_lock_of(entry)
      if name == QUARANTINE then give_place_back(entry) end
    end
    redis.call('LTRIM', list, 0, -#some - 1)
    forgotten = forgotten + #some
    left = left + redis.call('LLEN', list)
  end
  forget_levels(name)
end
deal()
return { forgotten, left }
